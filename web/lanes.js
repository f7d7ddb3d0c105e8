// The race: for each scheduler its paths with packets, their queues, and the receiver.

import { CAUSES } from "./film.js";
import { bytesText, element, timeText } from "./format.js";

const LANE = 42;
const TOP = 4;
const PACKET_WIDTH = 3;
/** A lost packet is visible for this time on the screen. */
const LOSS_SECONDS = 0.5;

const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const knownColours = new Map();

/** Returns a colour of the style sheet. */
export function colourOf(name) {
  const key = `${name} ${darkScheme.matches}`;
  if (!knownColours.has(key)) {
    knownColours.set(key, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return knownColours.get(key);
}

/** Fits a canvas to its place, and returns its context, cleared, in CSS pixels. */
export function fitted(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const size = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return [context, width];
}

/** The drawing of one row. */
export class LaneView {
  constructor(reel, film, colour) {
    Object.assign(this, { reel, film, colour });
    this.place = element("span", { class: "place" });
    this.state = element("span", { class: "state" });
    this.amount = element("span", { class: "amount" });
    this.chip = element("i", { "aria-hidden": "true" });
    this.canvas = element("canvas", { role: "img" });
    const head = element("div", { class: "lane-head" }, this.chip, element("b", {}, film.row), this.place, this.state, this.amount);
    this.root = element("div", { class: "lane" }, head, this.canvas);
    this.canvas.setAttribute("aria-label", `${film.row}: packets on ${reel.paths.join(" and ")}, queues, and data at the receiver`);
  }

  get height() {
    return TOP + LANE * this.reel.paths.length;
  }

  /** Draws the state at `time`; `speed` is simulated time over time on the screen. */
  draw(time, speed) {
    if (this.canvas.clientWidth === 0) return;
    const [context, width] = fitted(this.canvas, this.height);
    const narrow = width < 560;
    const receiver = narrow ? 74 : 150;
    const names = narrow ? 40 : 64;
    const plan = { narrow, names, queue: names + Math.round(width * (narrow ? 0.2 : 0.18)), wire: width - receiver - 10, receiver, width };
    this.colours = { ...Object.fromEntries(["text", "soft", "line", "raised", "alert", "held", "ground"].map((name) => [name, colourOf(name)])), row: colourOf(this.colour) };
    this.reel.paths.forEach((name, path) => this.drawPath(context, plan, name, path, time));
    this.drawPackets(context, plan, time, speed);
    this.drawReceiver(context, plan, time);
    this.tell(time);
  }

  /** Writes the head of the lane. */
  tell(time) {
    const { film, reel } = this;
    const [readable, held] = film.received(time);
    const over = time >= film.finished && film.about.complete;
    const place = over && reel.places.get(film);
    this.chip.style.background = this.colours.row;
    this.place.textContent = place ? `${["", "first", "second", "third"][place] ?? `${place}th`}: ${timeText(film.finished)}` : "";
    const cause = over || time > film.length ? "" : CAUSES[film.cause(time)];
    this.state.textContent = cause || (time >= film.length && !film.about.complete ? film.about.broke ?? "not finished" : "");
    this.amount.textContent = `${bytesText(readable)} readable${held > 0 ? `, ${bytesText(held)} blocked` : ""}`;
  }

  drawPath(context, plan, name, path, time) {
    const { colours } = this;
    const middle = TOP + LANE * path + LANE / 2;
    context.font = `${plan.narrow ? 11 : 12}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.fillStyle = colourOf(`p${path}`);
    context.fillText(shortened(context, name, plan.names - 6), 0, middle);
    context.fillStyle = colours.raised;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(plan.names + 0.5, middle - 9.5, plan.queue - plan.names - 1, 19, 3);
    context.fill();
    context.stroke();
    context.beginPath();
    context.moveTo(plan.queue, middle + 0.5);
    context.lineTo(plan.wire, middle + 0.5);
    context.stroke();
    const [queue] = this.film.sample(time, path);
    context.fillStyle = colours.soft;
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "right";
    if (queue > 0) context.fillText(bytesText(queue), plan.queue - 3, middle + 16);
    context.textAlign = "left";
  }

  drawPackets(context, plan, time, speed) {
    const { reel, colours } = this;
    const paths = reel.paths.length;
    const colour = reel.paths.map((_, path) => colourOf(`p${path}`));
    const queued = new Array(paths).fill(0);
    const after = Math.max(LOSS_SECONDS * speed * 1e6, 1);
    const waiting = [];
    this.film.each(time, after, (packet) => {
      const { path } = packet;
      if (path >= paths) return;
      const middle = TOP + LANE * path + LANE / 2;
      const wire = reel.wire[packet.data ? path : paths + path];
      if (packet.fate > 1) {
        this.drawLoss(context, plan, packet, middle, time, after);
        return;
      }
      // The run has ended before a packet without an end arrives. A packet leaves the queue when only the shortest time of the path is left.
      const end = packet.end === Infinity ? packet.sent + wire : packet.end;
      if (end < time) return;
      const leaves = Math.max(packet.sent, end - wire);
      if (!packet.data) {
        const x = plan.wire - (plan.wire - plan.queue) * Math.min(1, Math.max(0, (time - packet.sent) / (end - packet.sent)));
        context.fillStyle = colours.soft;
        context.fillRect(x - 2, middle + 9, 5, 2);
      } else if (time < leaves) {
        waiting.push({ path, carry: packet.carry, len: packet.len, leaves });
      } else {
        const x = plan.queue + (plan.wire - plan.queue) * Math.min(1, (time - leaves) / wire);
        this.drawPacket(context, x - PACKET_WIDTH, middle, packet.len, packet.carry, colour[path]);
      }
    });
    waiting.sort((a, b) => a.leaves - b.leaves);
    for (const { path, carry, len } of waiting) {
      const room = plan.queue - plan.names - 8;
      const step = PACKET_WIDTH + 1;
      const x = plan.queue - 4 - PACKET_WIDTH - (queued[path]++ % Math.floor(room / step)) * step;
      this.drawPacket(context, x, TOP + LANE * path + LANE / 2, len, carry, colour[path]);
    }
  }

  drawPacket(context, x, middle, len, carry, colour) {
    const height = len > 0 ? 13 : 5;
    context.fillStyle = colour;
    context.fillRect(x, middle - height / 2, PACKET_WIDTH, height);
    if (carry > 0) {
      // Data that was sent before has an open box.
      context.fillStyle = this.colours.ground;
      context.fillRect(x + 1, middle - height / 2 + 2, PACKET_WIDTH - 2, height - 4);
    }
  }

  drawLoss(context, plan, packet, middle, time, after) {
    const age = (time - packet.end) / after;
    if (age < 0 || age > 1 || !packet.data) return;
    const inQueue = packet.fate === 3 || packet.fate === 4;
    const x = inQueue ? plan.names - 8 : plan.queue + (plan.wire - plan.queue) * (0.15 + 0.1 * age);
    const y = middle - 6 + 14 * age;
    context.strokeStyle = this.colours.alert;
    context.globalAlpha = 1 - age;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 4, y + 4);
    context.moveTo(x + 4, y - 4);
    context.lineTo(x - 4, y + 4);
    context.stroke();
    context.lineWidth = 1;
    context.globalAlpha = 1;
  }

  /** Draws the readable data, and the data behind a gap above it. */
  drawReceiver(context, plan, time) {
    const { colours, reel } = this;
    const [readable, held] = this.film.received(time);
    const left = plan.width - plan.receiver;
    const bar = 14;
    const middle = TOP + (this.height - TOP) / 2;
    const row = (y, share, colour, label, amount) => {
      context.fillStyle = colours.raised;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.roundRect(left + 0.5, y + 0.5, plan.receiver - 1, bar, 3);
      context.fill();
      context.stroke();
      if (share > 0) {
        context.fillStyle = colour;
        context.beginPath();
        context.roundRect(left + 1, y + 1, Math.max(2, (plan.receiver - 2) * Math.min(1, share)), bar - 1, 2.5);
        context.fill();
      }
      context.fillStyle = colours.soft;
      context.font = "10px system-ui, sans-serif";
      context.fillText(plan.narrow ? amount : `${label} ${amount}`, left + 2, y + bar + 8);
    };
    const share = readable / reel.readable;
    row(middle - 29, share, colours.row, "readable", `${Math.floor(100 * share)} %`);
    row(middle + 2, held / reel.mostHeld, colours.held, "blocked", held > 0 ? bytesText(held) : "0");
    context.strokeStyle = colours.line;
    context.beginPath();
    context.moveTo(plan.wire + 4.5, TOP + 8);
    context.lineTo(plan.wire + 4.5, this.height - 8);
    context.stroke();
  }
}

function shortened(context, text, width) {
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > width) shown = `${shown.slice(0, -2)}…`;
  return shown;
}
