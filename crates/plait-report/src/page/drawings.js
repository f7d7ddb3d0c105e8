// @ts-check
// The drawings: each paints itself and reads its values at an instant.
const sequence = {
  /** @type {{low: number, high: number, y: (value: number) => number}} */
  scale: { low: 0, high: 1, y: () => 0 },
  /** @param {Frame} frame */
  paint: (frame) => {
    const { ctx, x } = frame;
    shadeSpans(frame, null);
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
    const order = ["arrived", "sent", "copied", "again", "lost"];
    seen.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
    for (const { kind, path, boxes } of seen) {
      ctx.fillStyle = ctx.strokeStyle = kind === "lost" ? colours.alert : colourOf(path);
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
        if (kind === "lost") {
          ctx.moveTo(cx - size, cy - size), ctx.lineTo(cx + size, cy - size);
          ctx.lineTo(cx, cy + size), ctx.closePath(), ctx.fill();
          continue;
        }
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
    let [best, found] = [12 * 12, ""];
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
        const range = `${boxes[at + 2]}–${boxes[at + 2] + boxes[at + 3]}`;
        found = ` · ${run.paths[path].name} ${verbs[kind]} ${range} at ${instant(boxes[at])}`;
      }
    }
    return found;
  },
  /** @param {number} us */
  read: (us) => `${words.readable} ${valueAt(run.readable, us, bytes)}${sequence.near()}`,
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
    return held.filter(Boolean).join(" · ") || words.free;
  },
};

/** @param {number} index */
const windowOf = (index) => ({
  /** @param {Frame} frame */
  paint: (frame) => {
    const path = run.paths[index];
    const { ctx, x, top, bottom, left, right } = frame;
    shadeOutages(frame, path);
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
    const down = path.down.some(([from, to]) => us >= from && us < to);
    return `cwnd ${valueAt(path.cwnd, us, bytes)} · in flight ${valueAt(path.inflight, us, bytes)}` +
      (down ? " · path down" : "") +
      (lost ? ` · ${lost} lost` : "") + (acks ? ` · ${acks} ACKs lost` : "");
  },
});
/** @param {number} index @param {"srtt_us"|"queue"} which @param {(value: number) => string} words */
const lineOf = (index, which, words) => ({
  /** @param {Frame} frame */
  paint: (frame) => {
    const band = run.paths[index][which];
    shadeOutages(frame, run.paths[index]);
    const y = axis(frame, 0, Math.max(greatest([band]), 1), words);
    drawBand(frame, band, y, colourOf(index));
  },
  /** @param {number} us */
  read: (us) => valueAt(run.paths[index][which], us, words),
});
/** Labels that fit under a drawing. @param {number} left @param {number} right */
const timeTicks = (left, right) => Math.max(3, Math.floor((right - left) / 95));
const ruler = {
  /** @param {Frame} frame */
  paint: ({ ctx, left, right, x }) => {
    const { step, values } = ticks(view.from, view.to, timeTicks(left, right));
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

/** @typedef {{paint: (frame: Frame) => void, read: (us: number) => string}} Kind */
/** Each drawing by its name; some are made for a path. @type {Record<string, (index: number) => Kind>} */
const drawings = {
  sequence: () => sequence,
  rate: () => rates,
  held: () => held,
  blocked: () => blocked,
  window: windowOf,
  srtt: (index) => lineOf(index, "srtt_us", millis),
  queue: (index) => lineOf(index, "queue", bytes),
  ruler: () => ruler,
};
/** @param {string} name */
const kindOf = (name) => {
  const [kind, index] = name.split("-");
  return drawings[kind](Number(index));
};
