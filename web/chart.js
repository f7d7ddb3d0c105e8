// The whole race over time: the readable data of each row, and the data behind a gap.

import { colourOf, fitted } from "./lanes.js";
import { bytesText, timeText } from "./format.js";

const HEIGHT = 220;
const BELOW = 70;
const AXIS = 22;

/** Returns round values from 0 to `most`. */
function ticks(most, count) {
  const raw = most / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= raw);
  const list = [];
  for (let value = 0; value <= most * 1.0001; value += step) list.push(value);
  return list;
}

/** The chart. Its pointer moves the time of the race. */
export class ChartView {
  constructor(canvas, seek) {
    this.canvas = canvas;
    this.still = null;
    const move = (event) => {
      if (!this.reel || (event.type === "pointermove" && event.buttons === 0)) return;
      const box = canvas.getBoundingClientRect();
      const share = (event.clientX - box.left - this.left) / (this.right - this.left);
      seek(Math.min(1, Math.max(0, share)) * this.reel.length);
    };
    canvas.addEventListener("pointerdown", move);
    canvas.addEventListener("pointermove", move);
  }

  show(reel, looks) {
    Object.assign(this, { reel, looks, still: null });
  }

  /** Draws the curves once, and the line at `time` above them. */
  draw(time) {
    if (!this.reel || this.canvas.clientWidth === 0) return;
    const key = `${this.canvas.clientWidth} ${window.devicePixelRatio} ${colourOf("ground")}`;
    if (this.still?.key !== key) {
      const [context, width] = fitted(this.canvas, HEIGHT + BELOW + AXIS);
      this.curves(context, width);
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [this.canvas.width, this.canvas.height];
      copy.getContext("2d").drawImage(this.canvas, 0, 0);
      this.still = { key, copy };
    }
    const [context] = fitted(this.canvas, HEIGHT + BELOW + AXIS);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.still.copy, 0, 0);
    context.restore();
    const x = this.x(time);
    context.strokeStyle = colourOf("text");
    context.beginPath();
    context.moveTo(x, 8);
    context.lineTo(x, HEIGHT + BELOW);
    context.stroke();
  }

  x(time) {
    return this.left + (this.right - this.left) * Math.min(1, time / this.reel.length);
  }

  curves(context, width) {
    const { reel } = this;
    const narrow = width < 560;
    this.left = narrow ? 54 : 62;
    this.right = width - (narrow ? 64 : 96);
    context.font = `${narrow ? 11 : 12}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const upper = (bytes) => HEIGHT - 14 - (HEIGHT - 30) * (bytes / reel.readable);
    const lower = (bytes) => HEIGHT + BELOW - 2 - (BELOW - 16) * (bytes / reel.mostHeld);
    this.axis(context, upper, ticks(reel.readable, 4));
    this.axis(context, lower, [0, reel.mostHeld]);
    context.fillStyle = colourOf("soft");
    context.textAlign = "center";
    for (const value of ticks(reel.length, narrow ? 3 : 6)) {
      context.fillText(value === 0 ? "0" : timeText(value), this.x(value), HEIGHT + BELOW + AXIS / 2 + 2);
    }
    context.textAlign = "left";
    const ends = [];
    for (const film of [...reel.films].reverse()) {
      const { colour, dash } = this.looks.get(film.row);
      context.strokeStyle = colourOf(colour);
      context.setLineDash(dash);
      context.lineWidth = dash.length > 0 ? 1.5 : 2;
      this.curve(context, film, 1, upper);
      if (dash.length === 0) this.curve(context, film, 2, lower);
      context.setLineDash([]);
      ends.push({ film, y: upper(film.received(reel.length)[0]), colour: colourOf(colour) });
    }
    context.lineWidth = 1;
    this.labels(context, ends);
  }

  axis(context, y, values) {
    context.strokeStyle = colourOf("grid");
    context.fillStyle = colourOf("soft");
    context.textAlign = "right";
    for (const value of values) {
      const at = Math.round(y(value)) + 0.5;
      context.beginPath();
      context.moveTo(this.left, at);
      context.lineTo(this.right, at);
      context.stroke();
      context.fillText(value === 0 ? "0" : bytesText(value), this.left - 6, at);
    }
    context.textAlign = "left";
  }

  /** Draws a curve in steps. Of the changes within a pixel it draws the least and the greatest. */
  curve(context, film, part, y) {
    const { receiver, begin } = film;
    context.beginPath();
    context.moveTo(this.x(0), y(0));
    let column = -1;
    let [least, greatest, last] = [Infinity, -Infinity, 0];
    const flush = () => {
      if (column < 0 || least === Infinity) return;
      context.lineTo(column, y(least));
      context.lineTo(column, y(greatest));
      context.lineTo(column, y(last));
    };
    for (let at = 0; at < receiver.length; at += 3) {
      if (receiver[at] - begin > Math.min(this.reel.length, part === 1 ? film.finished : Infinity)) break;
      const x = Math.round(this.x(receiver[at] - begin) * 2) / 2;
      const value = receiver[at + part];
      if (x !== column) {
        flush();
        context.lineTo(x, y(last));
        [column, least, greatest] = [x, Infinity, -Infinity];
      }
      [least, greatest, last] = [Math.min(least, value), Math.max(greatest, value), value];
    }
    flush();
    // A row that has not finished goes on beyond the edge.
    if (film.finished > this.reel.length) context.lineTo(this.right, y(last));
    context.stroke();
  }

  /** Writes the names beside the levels at which the curves end, from the top down and without overlap. */
  labels(context, ends) {
    const finished = ends.map((end) => ({ ...end, x: this.x(end.film.finished), over: end.film.finished <= this.reel.length }));
    finished.sort((a, b) => Math.round((a.y - b.y) / 4) || a.x - b.x);
    let next = -Infinity;
    for (const { film, x, y, colour, over } of finished) {
      context.fillStyle = colour;
      if (over) {
        context.beginPath();
        context.arc(x, y, 3, 0, 2 * Math.PI);
        context.fill();
      }
      next = Math.max(y, next + 15);
      context.fillText(film.row, this.right + 8, next);
    }
  }
}
