// @ts-check
"use strict";
(() => {
  /** @typedef {{least: (number|null)[], greatest: (number|null)[], last: (number|null)[]}} Band */
  /** @typedef {[number, number][]} Sparse bin and amount */
  /** @typedef {{name: string, sent: Sparse, cwnd: Band, inflight: Band, srtt_us: Band, queue: Band,
   *   lost: Sparse, lost_acks: Sparse}} Path */
  /** @typedef {{kind: string, path: number, boxes: number[]}} Group */
  /** @typedef {{bin_us: number, bins: number, end_us: number, paths: Path[], readable: Band,
   *   held: Band, blocked: {name: string, shares: Sparse}[], marks: Group[],
   *   incidents: [number, number, string][]}} Run */
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
  const shown = { sent: true, arrived: true, again: true, copied: true, readable: true };

  // Words and numbers.
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
  /** An instant with as many digits as the view can tell apart. @param {number} us */
  const instant = (us) => {
    const [unit, name] = view.to >= 1e6 ? [1e6, "s"] : [1e3, "ms"];
    const pixel = (view.to - view.from) / 1000 / unit;
    const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(pixel))));
    return `${(us / unit).toFixed(digits)} ${name}`;
  };
  /** Round values between two. @param {number} from @param {number} to @param {number} count */
  const ticks = (from, to, count) => {
    const rough = Math.max((to - from) / Math.max(count, 1), 1e-9);
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
    const range = Math.max(high - low, 1e-9);
    /** @param {number} value */
    const y = (value) => bottom - ((value - low) / range) * (bottom - top);
    const wanted = count || Math.max(3, Math.round((bottom - top) / 44));
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const value of ticks(low, high, wanted).values) {
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

  // Drawings.
  const sequence = {
    /** @type {{low: number, high: number, y: (value: number) => number}} */
    scale: { low: 0, high: 1, y: () => 0 },
    /** @param {Frame} frame */
    paint: (frame) => {
      const { ctx, x } = frame;
      const seen = run.marks.filter((group) => shown[group.kind]);
      let [low, high] = [Infinity, 0];
      const first = run.readable.last[binOf(view.from)];
      if (shown.readable && first !== null && first !== undefined) low = high = first;
      if (shown.readable) high = Math.max(high, greatest([run.readable]));
      for (const { boxes } of seen) {
        for (let at = 0; at < boxes.length; at += 4) {
          if (boxes[at] + boxes[at + 1] < view.from || boxes[at] > view.to) continue;
          low = Math.min(low, boxes[at + 2]);
          high = Math.max(high, boxes[at + 2] + boxes[at + 3]);
        }
      }
      if (low > high) [low, high] = [0, 1];
      const y = axis(frame, low, Math.max(high, low + 1), bytes);
      sequence.scale = { low, high, y };
      // Under the marks: where what arrives is readable at once, its path stays visible.
      if (shown.readable) drawBand(frame, run.readable, y, colours.text);
      const order = ["arrived", "sent", "copied", "again"];
      seen.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
      for (const { kind, path, boxes } of seen) {
        ctx.fillStyle = ctx.strokeStyle = colourOf(path);
        ctx.globalAlpha = kind === "arrived" ? 0.6 : 1;
        ctx.lineWidth = 1.3;
        let inView = 0;
        for (let at = 0; at < boxes.length; at += 4) {
          if (boxes[at] >= view.from && boxes[at] <= view.to) inView += 1;
        }
        const size = inView < 80 ? 3.5 : inView < 300 ? 2.2 : 1.4;
        for (let at = 0; at < boxes.length; at += 4) {
          const [left, right] = [x(boxes[at]), x(boxes[at] + boxes[at + 1])];
          if (right < frame.left || left > frame.right) continue;
          const [top, bottom] = [y(boxes[at + 2] + boxes[at + 3]), y(boxes[at + 2])];
          if (kind === "sent" || kind === "arrived") {
            ctx.fillRect(left - 0.8, top, Math.max(right - left, 1.6), Math.max(bottom - top, 1.6));
            continue;
          }
          const [cx, cy] = [(left + right) / 2, (top + bottom) / 2];
          ctx.beginPath();
          if (kind === "again") {
            ctx.moveTo(cx - size, cy - size), ctx.lineTo(cx + size, cy + size);
            ctx.moveTo(cx - size, cy + size), ctx.lineTo(cx + size, cy - size);
          } else {
            ctx.moveTo(cx, cy - size), ctx.lineTo(cx + size, cy), ctx.lineTo(cx, cy + size);
            ctx.lineTo(cx - size, cy), ctx.closePath();
          }
          ctx.stroke();
        }
      }
      ctx.globalAlpha = 1;
    },
    /** What was sent or arrived next to the pointer. */
    near: () => {
      const plot = plots[0];
      if (!pointer || !plot || plot.canvas.dataset.plot !== "sequence") return "";
      const frame = frameOf(plot);
      let [best, words] = [12 * 12, ""];
      for (const { kind, path, boxes } of run.marks) {
        if (!shown[kind]) continue;
        for (let at = 0; at < boxes.length; at += 4) {
          const [left, right] = [frame.x(boxes[at]), frame.x(boxes[at] + boxes[at + 1])];
          const top = sequence.scale.y(boxes[at + 2] + boxes[at + 3]);
          const bottom = sequence.scale.y(boxes[at + 2]);
          const dx = Math.max(left - pointer.x, 0, pointer.x - right);
          const dy = Math.max(top - pointer.y, 0, pointer.y - bottom);
          if (dx * dx + dy * dy >= best) continue;
          best = dx * dx + dy * dy;
          const verb = { sent: "sent", again: "sent again", copied: "sent a copy" }[kind] || "got";
          const range = `${boxes[at + 2]}–${boxes[at + 2] + boxes[at + 3]}`;
          words = ` · ${run.paths[path].name} ${verb} ${range} at ${instant(boxes[at])}`;
        }
      }
      return words;
    },
    /** @param {number} us */
    read: (us) => `readable ${valueAt(run.readable, us, bytes)}${sequence.near()}`,
  };

  /** Payload by path in dense bins. */
  const sent = run.paths.map((path) => {
    const dense = new Float64Array(run.bins);
    for (const [bin, amount] of path.sent) dense[bin] = amount;
    return dense;
  });
  /** Bins that one bar takes: bars neither too thin nor too many. */
  const perBar = () => Math.max(1, Math.ceil((view.to - view.from) / run.bin_us / 120));
  /** Rate of each path in the bar of a bin. @param {number} bar @param {number} size */
  const bar = (bar, size) => {
    const [first, stop] = [bar * size, Math.min((bar + 1) * size, run.bins)];
    const us = Math.max(Math.min(stop * run.bin_us, end) - first * run.bin_us, run.bin_us);
    return sent.map((dense) => (dense.subarray(first, stop).reduce((a, b) => a + b, 0) * 8e6) / us);
  };
  const rates = {
    /** @param {Frame} frame */
    paint: (frame) => {
      const { ctx, x } = frame;
      const size = perBar();
      const [first, last] = span().map((bin) => Math.floor(bin / size));
      const bars = [];
      for (let at = first; at <= last; at++) bars.push(bar(at, size));
      const sums = bars.map((paths) => paths.reduce((a, b) => a + b, 0));
      const y = axis(frame, 0, Math.max(...sums, 1), (value) => rate(value));
      bars.forEach((paths, nth) => {
        const left = x((first + nth) * size * run.bin_us);
        const right = x(Math.min((first + nth + 1) * size * run.bin_us, end));
        let below = 0;
        paths.forEach((value, path) => {
          ctx.fillStyle = colourOf(path);
          ctx.fillRect(left, y(below + value), Math.max(right - left - 0.7, 0.7), y(below) - y(below + value));
          below += value;
        });
      });
    },
    /** @param {number} us */
    read: (us) => {
      const size = perBar();
      const paths = bar(Math.floor(binOf(us) / size), size);
      const each = paths.map((value, path) => `${run.paths[path].name} ${rate(value)}`);
      return each.join(" · ");
    },
  };

  const held = {
    /** @param {Frame} frame */
    paint: (frame) => {
      const y = axis(frame, 0, Math.max(greatest([run.held]), 1000), bytes);
      drawBand(frame, run.held, y, colours.text, true);
      drawBand(frame, run.held, y, colours.soft);
    },
    /** @param {number} us */
    read: (us) => valueAt(run.held, us, bytes),
  };

  const blocked = {
    /** @param {Frame} frame */
    paint: ({ ctx, left, right, top, bottom, x }) => {
      const height = (bottom - top) / Math.max(run.blocked.length, 1);
      const narrow = right < 420;
      run.blocked.forEach(({ name, shares }, lane) => {
        const base = top + (lane + 1) * height;
        ctx.fillStyle = colours.grid;
        ctx.fillRect(left, base - 1, right - left, 1);
        ctx.fillStyle = colours.soft;
        for (const [bin, share] of shares) {
          // Whole pixels, so that neighbours leave no seam.
          const from = Math.round(x(bin * run.bin_us));
          const to = Math.max(Math.round(x((bin + 1) * run.bin_us)), from + 1);
          if (to < left || from > right) continue;
          const tall = (height - 15) * Math.min(share / 1000, 1);
          ctx.fillRect(from, base - 1 - tall, to - from, tall);
        }
        ctx.textAlign = "left";
        ctx.textBaseline = "top";
        ctx.fillStyle = colours.text;
        ctx.fillText(name, narrow ? 4 : left + 4, base - height + 1);
      });
    },
    /** @param {number} us */
    read: (us) => {
      const bin = binOf(us);
      const held = run.blocked.map(({ name, shares }) => {
        const found = shares.find(([at]) => at === bin);
        return found ? `${name} ${Math.min(100, Math.round(found[1] / 10))} %` : "";
      });
      return held.filter(Boolean).join(" · ") || "not held back";
    },
  };

  /** @param {number} index */
  const windowOf = (index) => ({
    /** @param {Frame} frame */
    paint: (frame) => {
      const path = run.paths[index];
      const { ctx, x, top, bottom, left, right } = frame;
      const y = axis(frame, 0, Math.max(greatest([path.cwnd, path.inflight]), 1), bytes);
      drawBand(frame, path.inflight, y, colourOf(index), true);
      drawBand(frame, path.cwnd, y, colourOf(index));
      /** @type {[Sparse, boolean][]} */
      const drops = [[path.lost_acks, true], [path.lost, false]];
      for (const [sparse, hollow] of drops) {
        for (const [bin] of sparse) {
          const at = x((bin + 0.5) * run.bin_us);
          if (at >= left && at <= right) wedge(frame, at, colours.alert, hollow);
        }
      }
      // Each has its line; its word only where that is not over another.
      let worded = left;
      ctx.textBaseline = "top";
      for (const [us, on, what] of run.incidents) {
        const at = Math.round(x(us));
        if (on !== index || at < left || at > right) continue;
        ctx.fillStyle = what === "up" ? colours.soft : colours.alert;
        ctx.fillRect(at, top, what === "timeout" ? 2 : 1, bottom - top);
        const word = what === "timeout" ? "RTO" : what;
        const width = ctx.measureText(word).width;
        const from = at + 4 + width > right ? at - 3 - width : at + 4;
        if (from < worded) continue;
        ctx.textAlign = "left";
        ctx.fillText(word, from, top + 1);
        worded = from + width + 3;
      }
    },
    /** @param {number} us */
    read: (us) => {
      const path = run.paths[index];
      const bin = binOf(us);
      /** @param {Sparse} sparse */
      const count = (sparse) => (sparse.find(([at]) => at === bin) || [0, 0])[1];
      const [lost, acks] = [count(path.lost), count(path.lost_acks)];
      return `cwnd ${valueAt(path.cwnd, us, bytes)} · in flight ${valueAt(path.inflight, us, bytes)}` +
        (lost ? ` · ${lost} lost` : "") + (acks ? ` · ${acks} ACKs lost` : "");
    },
  });
  /** @param {number} index @param {"srtt_us"|"queue"} which @param {(value: number) => string} words */
  const lineOf = (index, which, words) => ({
    /** @param {Frame} frame */
    paint: (frame) => {
      const band = run.paths[index][which];
      const y = axis(frame, 0, Math.max(greatest([band]), 1), words);
      drawBand(frame, band, y, colourOf(index));
    },
    /** @param {number} us */
    read: (us) => valueAt(run.paths[index][which], us, words),
  });
  const ruler = {
    /** @param {Frame} frame */
    paint: ({ ctx, left, right, x }) => {
      const { step, values } = ticks(view.from, view.to, Math.max(2, Math.floor((right - left) / 110)));
      const [unit, name] = view.to >= 1e6 ? [1e6, "s"] : [1e3, "ms"];
      const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
      ctx.textAlign = "center";
      ctx.textBaseline = "top";
      ctx.fillStyle = colours.soft;
      for (const value of values) {
        ctx.fillRect(Math.round(x(value)), 0, 1, 5);
        const text = value ? `${(value / unit).toFixed(digits)} ${name}` : "0";
        const half = ctx.measureText(text).width / 2;
        ctx.fillText(text, Math.min(x(value), right + 8 - half), 8);
      }
    },
    read: () => "",
  };

  /** @param {string} name */
  const kindOf = (name) => {
    const [kind, index] = name.split("-");
    switch (kind) {
      case "sequence": return sequence;
      case "rate": return rates;
      case "held": return held;
      case "blocked": return blocked;
      case "window": return windowOf(Number(index));
      case "srtt": return lineOf(Number(index), "srtt_us", millis);
      case "queue": return lineOf(Number(index), "queue", bytes);
      default: return ruler;
    }
  };
  const charts = byId("charts");
  /** @type {Plot[]} */
  const plots = Array.from(charts.querySelectorAll("canvas"), (canvas) => {
    const figure = canvas.closest("figure");
    const output = figure ? figure.querySelector("output") : null;
    if (canvas.dataset.plot === "blocked") canvas.style.height = `${run.blocked.length * 32 + 15}px`;
    const { paint, read } = kindOf(canvas.dataset.plot || "");
    return { canvas, output, base: document.createElement("canvas"), paint, read };
  });

  /** @param {Plot} plot @returns {Frame} */
  const frameOf = ({ canvas, base }) => {
    const ctx = base.getContext("2d");
    if (!ctx) throw new Error("no canvas");
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const left = width < 480 ? 56 : 78;
    const right = width - 10;
    /** @param {number} us */
    const x = (us) => left + ((us - view.from) / (view.to - view.from)) * (right - left);
    return { ctx, left, right, top: 10, bottom: height - 5, x };
  };

  /** Draws everything but the cursor. @param {Plot} plot */
  const paintBase = (plot) => {
    const { canvas, base } = plot;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = base.width = Math.max(1, Math.round(canvas.clientWidth * ratio));
    canvas.height = base.height = Math.max(1, Math.round(canvas.clientHeight * ratio));
    const frame = frameOf(plot);
    const { ctx, left, right, top, bottom, x } = frame;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = "11px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
    if (plot.canvas.dataset.plot === "ruler") return plot.paint(frame);
    ctx.fillStyle = colours.grid;
    for (const at of ticks(view.from, view.to, Math.max(2, Math.floor((right - left) / 110))).values) {
      ctx.fillRect(Math.round(x(at)), top, 1, bottom - top);
    }
    // Marks at the top and names at the sides may lie outside; what is drawn over time may not.
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, 0, right + 6, bottom + 5);
    ctx.clip();
    plot.paint(frame);
    ctx.restore();
    ctx.fillStyle = colours.ground;
    ctx.fillRect(right + 6, 0, 10, bottom + 5);
    return undefined;
  };

  /** @param {Plot} plot */
  const paintCursor = (plot) => {
    const { canvas, base } = plot;
    const ctx = canvas.getContext("2d");
    if (!ctx) return;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.drawImage(base, 0, 0);
    const ratio = window.devicePixelRatio || 1;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const frame = frameOf(plot);
    if (drag && Math.abs(drag.now - drag.start) > 4) {
      ctx.globalAlpha = 0.18;
      ctx.fillStyle = colours.soft;
      ctx.fillRect(Math.min(drag.start, drag.now), 0, Math.abs(drag.now - drag.start), canvas.height);
      ctx.globalAlpha = 1;
    }
    if (cursor !== null && cursor >= view.from && cursor <= view.to) {
      ctx.fillStyle = colours.text;
      ctx.fillRect(frame.x(cursor) - 0.5, 0, 1, canvas.clientHeight);
    }
    if (plot.output) plot.output.textContent = cursor === null ? "" : plot.read(cursor);
  };

  let waiting = false;
  let stale = true;
  const drawNow = () => {
    waiting = false;
    if (stale) plots.forEach(paintBase);
    stale = false;
    plots.forEach(paintCursor);
    const range = `${instant(view.from)} to ${instant(view.to)}`;
    byId("time").textContent = cursor === null ? range : `at ${instant(cursor)}`;
  };
  /** @param {boolean} everything */
  const draw = (everything) => {
    stale = stale || everything;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(drawNow);
  };
  /** @param {number} from @param {number} to */
  const look = (from, to) => {
    const least = Math.min(end, Math.max(run.bin_us * 4, 1));
    const length = Math.min(end, Math.max(to - from, least));
    view.from = Math.min(Math.max(0, from), end - length);
    view.to = view.from + length;
    draw(true);
  };
  /** @param {number} factor */
  const zoom = (factor) => {
    const middle = cursor === null ? (view.from + view.to) / 2 : cursor;
    look(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
  };
  /** @param {Plot} plot @param {PointerEvent|MouseEvent} event */
  const timeAt = (plot, event) => {
    const { left, right } = frameOf(plot);
    const share = (event.offsetX - left) / (right - left);
    return Math.min(view.to, Math.max(view.from, view.from + share * (view.to - view.from)));
  };

  for (const plot of plots) {
    const { canvas } = plot;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) {
        drag = { start: event.offsetX, now: event.offsetX };
        canvas.setPointerCapture(event.pointerId);
      }
      cursor = timeAt(plot, event);
      draw(false);
    });
    canvas.addEventListener("pointermove", (event) => {
      cursor = timeAt(plot, event);
      pointer = plot === plots[0] ? { x: event.offsetX, y: event.offsetY } : null;
      if (drag) drag.now = event.offsetX;
      draw(false);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const { left, right } = frameOf(plot);
      const moved = Math.abs(drag.now - drag.start) > 6;
      const [from, to] = [drag.start, event.offsetX].sort((a, b) => a - b).map((at) =>
        view.from + ((Math.min(Math.max(at, left), right) - left) / (right - left)) * (view.to - view.from));
      drag = null;
      if (moved) look(from, to);
      else draw(false);
    });
    canvas.addEventListener("pointercancel", () => { drag = null; draw(false); });
    canvas.addEventListener("pointerleave", (event) => {
      pointer = null;
      if (event.pointerType === "mouse" && !drag) cursor = null;
      draw(false);
    });
    canvas.addEventListener("dblclick", () => look(0, end));
    canvas.addEventListener("keydown", (event) => {
      const step = (view.to - view.from) / 200;
      const at = cursor === null ? view.from : cursor;
      if (event.key === "ArrowLeft") cursor = Math.max(0, at - step);
      else if (event.key === "ArrowRight") cursor = Math.min(end, at + step);
      else if (event.key === "+" || event.key === "=") return zoom(0.5);
      else if (event.key === "-") return zoom(2);
      else if (event.key === "Escape") return look(0, end);
      else return undefined;
      event.preventDefault();
      const length = view.to - view.from;
      if (cursor < view.from) look(cursor, cursor + length);
      else if (cursor > view.to) look(cursor - length, cursor);
      return draw(false);
    });
  }
  byId("closer").addEventListener("click", () => zoom(0.5));
  byId("wider").addEventListener("click", () => zoom(2));
  byId("whole").addEventListener("click", () => look(0, end));

  // The key: paths by colour, kinds that can be hidden.
  const key = byId("key");
  /** @param {Element} swatch @param {number} path */
  const tint = (swatch, path) => {
    if (swatch instanceof HTMLElement) swatch.style.background = `var(--p${path % 8})`;
  };
  run.paths.forEach((path, index) => {
    const entry = document.createElement("span");
    const swatch = document.createElement("i");
    tint(swatch, index);
    entry.append(swatch, ` ${path.name}`);
    key.append(entry);
  });
  /** @type {[string, string][]} */
  const kinds = [["sent", "▌ sent"], ["arrived", "░ arrived"], ["again", "× sent again"],
    ["copied", "◇ copy of another subflow’s"], ["readable", "━ readable"]];
  for (const [kind, name] of kinds) {
    if (kind !== "readable" && !run.marks.some((group) => group.kind === kind)) continue;
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    box.addEventListener("change", () => { shown[kind] = box.checked; draw(true); });
    label.append(box, name);
    key.append(label);
  }
  for (const swatch of charts.querySelectorAll("h3[data-path] i")) {
    tint(swatch, Number(swatch.parentElement?.dataset.path));
  }

  const copy = byId("copy");
  copy.hidden = !navigator.clipboard;
  copy.addEventListener("click", () => {
    navigator.clipboard.writeText(byId("command").textContent || "").then(
      () => { copy.textContent = "Copied"; },
      () => { copy.textContent = "Select it to copy"; },
    );
  });

  charts.querySelector(".ruler")?.removeAttribute("hidden");
  readColours();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    draw(true);
  });
  new ResizeObserver(() => draw(true)).observe(charts);
  // At once, for pages that are printed or kept in the background.
  drawNow();
})();
