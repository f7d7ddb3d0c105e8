// @ts-check
// What every drawing needs: the run, words for numbers, colours, axes, bands.

/** @typedef {{least: (number|null)[], greatest: (number|null)[], last: (number|null)[]}} Band */
/** @typedef {[number, number][]} Sparse bin and amount */
/** @typedef {{name: string, sent: Sparse, cwnd: Band, inflight: Band, srtt_us: Band, queue: Band,
 *   lost: Sparse, lost_acks: Sparse, down: [number, number][]}} Path */
/** @typedef {{kind: string, path: number, boxes: number[]}} Group */
/** @typedef {[number, number, number, number]} Span start, end, path or -1, and 1 if it is shaded */
/** @typedef {{bin_us: number, bins: number, end_us: number, paths: Path[], readable: Band,
 *   held: Band, blocked: {name: string, shares: Sparse}[], marks: Group[],
 *   incidents: [number, number, string][], spans?: Span[]}} Run */
/** @typedef {{ctx: CanvasRenderingContext2D, left: number, right: number, top: number,
 *   bottom: number, x: (us: number) => number}} Frame */
/** @typedef {{canvas: HTMLCanvasElement, output: HTMLOutputElement|null, base: HTMLCanvasElement,
 *   paint: (frame: Frame) => void, read: (us: number) => string}} Plot */

/** @param {string} id */
const byId = (id) => {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return found;
};
/** @type {Run} */
const run = JSON.parse(byId("run").textContent || "");
const end = Math.max(run.end_us, run.bin_us);
const view = { from: 0, to: end };
/** @type {number|null} */
let cursor = null;
/** @type {{x: number, y: number}|null} */
let pointer = null;
/** @type {{start: number, now: number}|null} */
let drag = null;
/** @type {Record<string, boolean>} */
const shown = { sent: true, arrived: true, again: true, copied: true, lost: true, readable: true };

// Words and numbers.
const words = {
  sent: "sent", arrived: "arrived", again: "sent again", copied: "copy of another subflow’s", lost: "lost",
  readable: "readable", free: "not held back",
};
/** @type {Record<string, string>} */
const verbs = { sent: "sent", arrived: "brought", again: "sent again", copied: "sent a copy", lost: "lost" };
/** @param {number} value @param {string[]} units @param {number} [digits] */
const scaled = (value, units, digits = 3) => {
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit + 1 < units.length) {
    value /= 1000;
    unit += 1;
  }
  return `${Number(value.toPrecision(digits))} ${units[unit]}`;
};
/** @param {number} value */
const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB"]);
/** @param {number} value */
const rate = (value) => scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
/** @param {number} us */
const millis = (us) => scaled(us, ["µs", "ms", "s"]);
/** An instant with as many digits as the view can show. @param {number} us */
const instant = (us) => {
  const [unit, name] = view.to >= 1e6 ? [1e6, "s"] : [1e3, "ms"];
  const pixel = (view.to - view.from) / 1000 / unit;
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(pixel))));
  return `${(us / unit).toFixed(digits)} ${name}`;
};
/** Round values between two, `least` apart or more.
 * @param {number} from @param {number} to @param {number} count @param {number} [least] */
const ticks = (from, to, count, least = 1e-3) => {
  const rough = Math.max((to - from) / Math.max(count, 1), least);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) || 10);
  const values = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step / 1e6; at += step) values.push(at);
  return { step, values };
};

// Colours follow the page's style, light or dark.
/** @type {Record<string, string>} */
let colours = {};
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "line", "grid", "text", "soft", "alert"];
  for (let path = 0; path < 8; path++) names.push(`p${path}`);
  colours = Object.fromEntries(names.map((n) => [n, style.getPropertyValue(`--${n}`).trim()]));
};
/** @param {number} path */
const colourOf = (path) => colours[`p${path % 8}`];

// Series.
/** @param {number} us */
const binOf = (us) => Math.min(run.bins - 1, Math.max(0, Math.floor(us / run.bin_us)));
const span = () => [binOf(view.from), binOf(view.to)];
/** @param {Band[]} bands */
const greatest = (bands) => {
  const [first, last] = span();
  let top = 0;
  for (const band of bands) {
    for (let bin = first; bin <= last; bin++) top = Math.max(top, band.greatest[bin] || 0);
  }
  return top;
};
/** The value in a bin; its range where it moved within it.
 * @param {Band} band @param {number} us @param {(value: number) => string} words */
const valueAt = (band, us, words) => {
  const bin = binOf(us);
  const [low, high, last] = [band.least[bin], band.greatest[bin], band.last[bin]];
  if (low === null || high === null || last === null || last === undefined) return "–";
  return high - low > high * 0.02 ? `${words(low)} … ${words(high)}` : words(last);
};

// Parts of drawings.
/** @param {Frame} frame @param {number} low @param {number} high
 * @param {(value: number) => string} words @param {number} [count] */
const axis = (frame, low, high, words, count) => {
  const { ctx, left, right, top, bottom } = frame;
  const wanted = count || Math.max(3, Math.round((bottom - top) / 44));
  // Bytes, microseconds and bits per second have no halves. From 0 on, the topmost value has a label.
  const { step } = ticks(low, high, wanted, 1);
  if (low === 0) high = Math.ceil(high / step - 1e-9) * step;
  const range = Math.max(high - low, 1e-9);
  /** @param {number} value */
  const y = (value) => bottom - ((value - low) / range) * (bottom - top);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const value of ticks(low, high, wanted, step).values) {
    ctx.fillStyle = colours.grid;
    ctx.fillRect(left, Math.round(y(value)), right - left, 1);
    ctx.fillStyle = colours.soft;
    ctx.fillText(value ? words(value) : "0", left - 6, y(value));
  }
  return y;
};
/** @param {Frame} frame @param {Band} band @param {(value: number) => number} y
 * @param {string} colour @param {boolean} [filled] */
const drawBand = (frame, band, y, colour, filled) => {
  const { ctx, x, bottom } = frame;
  const [first, last] = span();
  /** @type {[number, number, number, number, number][]} left, right, and three heights */
  const steps = [];
  for (let bin = first; bin <= last; bin++) {
    const [low, high, value] = [band.least[bin], band.greatest[bin], band.last[bin]];
    if (low === null || high === null || value === null || value === undefined) continue;
    const stop = Math.min((bin + 1) * run.bin_us, end);
    steps.push([x(bin * run.bin_us), x(stop), y(low), y(high), y(value)]);
  }
  if (!steps.length) return;
  ctx.fillStyle = ctx.strokeStyle = colour;
  ctx.globalAlpha = filled ? 0.22 : 0.3;
  ctx.beginPath();
  for (const [from, to, , high] of steps) ctx.lineTo(from, high), ctx.lineTo(to, high);
  if (filled) {
    ctx.lineTo(steps[steps.length - 1][1], bottom);
    ctx.lineTo(steps[0][0], bottom);
  } else {
    for (const [from, to, low] of steps.reverse()) ctx.lineTo(to, low), ctx.lineTo(from, low);
    steps.reverse();
  }
  ctx.fill();
  ctx.globalAlpha = 1;
  if (filled) return;
  ctx.lineWidth = 1.6;
  ctx.lineJoin = "round";
  ctx.beginPath();
  for (const [from, to, , , value] of steps) ctx.lineTo(from, value), ctx.lineTo(to, value);
  ctx.stroke();
  // What holds for less than the eye can see is a dot.
  const [, stop, , , height] = steps[steps.length - 1];
  if (stop - steps[0][0] < 3) ctx.fillRect(Math.round(stop) - 3, Math.round(height) - 2, 4, 4);
};
/** The times at which a path was down. @param {Frame} frame @param {Path} path */
const shadeOutages = ({ ctx, x, left, right, top, bottom }, path) => {
  ctx.fillStyle = colours.alert;
  ctx.globalAlpha = 0.13;
  for (const [from, to] of path.down) {
    const [start, stop] = [Math.max(x(from), left), Math.min(x(to), right)];
    if (stop > start) ctx.fillRect(start, top, stop - start, bottom - top);
  }
  ctx.globalAlpha = 1;
};
/** The incident of a capture that a link has chosen. @type {number|null} */
let chosen = null;
/** The times of incidents; of one path if it has an index. @param {Frame} frame @param {number|null} path */
const shadeSpans = ({ ctx, x, left, right, top, bottom }, path) => {
  /** @type {number[]} */
  const numbered = [];
  (run.spans || []).forEach(([from, to, on, shaded], nth) => {
    if (nth !== chosen && (!shaded || chosen !== null)) return;
    if (path !== null && on !== path) return;
    const start = Math.max(x(from), left);
    const stop = Math.min(Math.max(x(to), x(from) + 1), right);
    if (stop <= start) return;
    ctx.fillStyle = colours.alert;
    ctx.globalAlpha = nth === chosen ? 0.2 : 0.1;
    ctx.fillRect(start, top, stop - start, bottom - top);
    ctx.globalAlpha = 1;
    // The number of an incident is not written over another one.
    if (path !== null || stop - start < 20 || numbered.some((at) => Math.abs(at - start) < 20)) return;
    numbered.push(start);
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    ctx.fillText(String(nth + 1), start + 3, top + 2);
  });
};
/** A mark that points down from the top. @param {Frame} frame @param {number} at @param {string} colour
 * @param {boolean} hollow */
const wedge = ({ ctx, top }, at, colour, hollow) => {
  ctx.beginPath();
  ctx.moveTo(at - 4, top - 8);
  ctx.lineTo(at + 4, top - 8);
  ctx.lineTo(at, top - 1);
  ctx.closePath();
  ctx.lineWidth = 1;
  ctx.strokeStyle = ctx.fillStyle = colour;
  if (hollow) ctx.stroke();
  else ctx.fill();
};
