// Texts of numbers, and elements of the page.

/** Returns an element. Attributes whose value is a function are listeners. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

/** Returns three digits of a number. */
export function digits(value) {
  if (value === 0) return "0";
  const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 3));
}

export function bytesText(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1e6) return `${digits(bytes / 1e3)} kB`;
  return bytes < 1e9 ? `${digits(bytes / 1e6)} MB` : `${digits(bytes / 1e9)} GB`;
}

export function timeText(us) {
  if (us < 1000) return `${Math.round(us)} us`;
  return us < 1e6 ? `${digits(us / 1e3)} ms` : `${digits(us / 1e6)} s`;
}

/** Returns a time of fixed width for the clock. */
export function clockText(us, end) {
  return end < 2e6 ? `${(us / 1e3).toFixed(1)} ms` : `${(us / 1e6).toFixed(2)} s`;
}

export function rateText(bps) {
  return bps < 1e6 ? `${digits(bps / 1e3)} kbit/s` : bps < 1e9 ? `${digits(bps / 1e6)} Mbit/s` : `${digits(bps / 1e9)} Gbit/s`;
}

const UNITS = { kbit: 1e3, mbit: 1e6, gbit: 1e9, us: 1e-3, ms: 1, s: 1e3, B: 1, kB: 1e3, MB: 1e6, KiB: 1024, MiB: 1048576, "%": 1 };

/** Returns the number of a text such as 20mbit in its base unit, or NaN. */
export function quantityOf(text) {
  const found = /^\s*([\d.]+)\s*([a-zA-Z%]+)\s*$/.exec(text);
  return found && UNITS[found[2]] ? Number(found[1]) * UNITS[found[2]] : NaN;
}

const NICE = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];

function niceSteps(from, to) {
  const steps = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) {
    for (const step of NICE) {
      const value = Number((step * 10 ** power).toPrecision(2));
      if (value >= from && value <= to) steps.push(value);
    }
  }
  return steps;
}

/** The positions of each slider as texts. An empty text leaves the key out. */
export const POSITIONS = {
  rate: niceSteps(0.5, 1000).map((mbit) => (mbit >= 1000 ? `${mbit / 1000}gbit` : `${mbit}mbit`)),
  rtt: niceSteps(1, 800).map((ms) => `${ms}ms`),
  loss: ["", ...niceSteps(0.01, 10).map((share) => `${share}%`)],
  queue: ["", ...niceSteps(10, 10000).map((kb) => (kb >= 1000 ? `${kb / 1000}MB` : `${kb}kB`))],
  jitter: ["", ...niceSteps(1, 100).map((ms) => `${ms}ms`)],
};

/** Returns the position of a slider for a text: the nearest. */
export function positionOf(key, text) {
  const value = quantityOf(text);
  if (Number.isNaN(value)) return 0;
  const distance = (position) => {
    const other = quantityOf(position);
    return Number.isNaN(other) ? (value === 0 ? 0 : Infinity) : Math.abs(Math.log(other / value));
  };
  let best = 0;
  POSITIONS[key].forEach((position, nth, all) => {
    if (distance(position) < distance(all[best])) best = nth;
  });
  return best;
}
