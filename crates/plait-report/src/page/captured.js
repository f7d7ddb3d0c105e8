// @ts-check
// The drawings of a capture that a run does not have, and its words.
/** @typedef {{unacked: Band, again: Sparse, rtt_us: [number, number, number][]}} CapturedPath */
/** @type {{at_receiver: boolean, unacked: Band, window: Band|null, paths: CapturedPath[]}} */
const captured = /** @type {any} */ (run);
Object.assign(words, { readable: "acknowledged", free: "no incident", copied: "reinjected" });
Object.assign(verbs, { copied: "reinjected" });
if (captured.at_receiver) {
  words.sent = "arrived";
  verbs.sent = "brought";
}

/** The smallest value in view. @param {Band} band */
const least = (band) => {
  const [first, last] = span();
  let bottom = Infinity;
  for (let bin = first; bin <= last; bin++) bottom = Math.min(bottom, band.least[bin] ?? Infinity);
  return bottom;
};
const unacked = {
  /** @param {Frame} frame */
  paint: (frame) => {
    shadeSpans(frame, null);
    const most = Math.max(greatest([captured.unacked]), 1000);
    // A window that is far away would press the data to the ground.
    const highest = captured.window ? greatest([captured.window]) : 0;
    const near = captured.window !== null && least(captured.window) <= 2 * most;
    const top = near ? Math.min(highest, (highest <= 2 * most ? 2 : 1.3) * most) : 0;
    const y = axis(frame, 0, Math.max(most, top), bytes);
    drawBand(frame, captured.unacked, y, colours.text, true);
    drawBand(frame, captured.unacked, y, colours.soft);
    if (near && captured.window) drawBand(frame, captured.window, y, colours.alert);
  },
  /** @param {number} us */
  read: (us) => valueAt(captured.unacked, us, bytes) +
    (captured.window ? ` · window ${valueAt(captured.window, us, bytes)}` : ""),
};
/** @param {number} index */
const flightOf = (index) => ({
  /** @param {Frame} frame */
  paint: (frame) => {
    const path = captured.paths[index];
    const { x, left, right } = frame;
    shadeSpans(frame, index);
    const y = axis(frame, 0, Math.max(greatest([path.unacked]), 1), bytes);
    drawBand(frame, path.unacked, y, colourOf(index), true);
    drawBand(frame, path.unacked, y, colourOf(index));
    for (const [bin] of path.again) {
      const at = x((bin + 0.5) * run.bin_us);
      if (at >= left && at <= right) wedge(frame, at, colours.alert, false);
    }
  },
  /** @param {number} us */
  read: (us) => {
    const path = captured.paths[index];
    const found = path.again.find(([bin]) => bin === binOf(us));
    return valueAt(path.unacked, us, bytes) + (found ? ` · ${found[1]} sent again` : "");
  },
});
/** @param {number} index */
const rttOf = (index) => ({
  /** @param {Frame} frame */
  paint: (frame) => {
    const { ctx, x, left, right } = frame;
    shadeSpans(frame, index);
    const [first, last] = span();
    const trips = captured.paths[index].rtt_us.filter(([bin]) => bin >= first && bin <= last);
    // A few round trips through an outage would press the others to the ground.
    const highs = trips.map(([, , high]) => high).sort((a, b) => a - b);
    const usual = 3 * (highs[Math.floor(highs.length * 0.95)] || 1);
    const top = Math.min(highs[highs.length - 1] || 1, usual);
    const y = axis(frame, 0, top, millis);
    const width = Math.max(2, x(run.bin_us) - x(0));
    for (const [bin, low, high] of trips) {
      const at = x((bin + 0.5) * run.bin_us) - width / 2;
      if (at + width < left || at > right) continue;
      if (high > top) wedge(frame, at + width / 2, colourOf(index), true);
      if (low > top) continue;
      ctx.fillStyle = colourOf(index);
      const upper = y(Math.min(high, top));
      ctx.fillRect(at, upper - 1, width, y(low) - upper + 2);
    }
  },
  /** @param {number} us */
  read: (us) => {
    const found = captured.paths[index].rtt_us.find(([bin]) => bin === binOf(us));
    if (!found) return "–";
    const [, low, high] = found;
    return high - low > high * 0.02 ? `${millis(low)} … ${millis(high)}` : millis(high);
  },
});
Object.assign(drawings, { unacked: () => unacked, flight: flightOf, rtt: rttOf });
