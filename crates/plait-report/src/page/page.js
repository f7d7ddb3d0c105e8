// @ts-check
// The page: drawings on their canvases, pointer, keys, the key of the marks.
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
  const left = width < 480 ? 70 : 78;
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
  for (const at of ticks(view.from, view.to, timeTicks(left, right)).values) {
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
const lookAtAll = () => { chosen = null; look(0, end); };
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
  canvas.addEventListener("dblclick", lookAtAll);
  canvas.addEventListener("keydown", (event) => {
    const step = (view.to - view.from) / 200;
    const at = cursor === null ? view.from : cursor;
    if (event.key === "ArrowLeft") cursor = Math.max(0, at - step);
    else if (event.key === "ArrowRight") cursor = Math.min(end, at + step);
    else if (event.key === "+" || event.key === "=") return zoom(0.5);
    else if (event.key === "-") return zoom(2);
    else if (event.key === "Escape") return lookAtAll();
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
byId("whole").addEventListener("click", lookAtAll);

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
/** @type {[string, string, string][]} kind, what it is, and its mark as the outline of a shape */
const kinds = [
  ["sent", words.sent, "M1 9h6v3h-6zM9 4h6v3h-6z"],
  ["arrived", words.arrived, "M1 9h6v3h-6zM9 4h6v3h-6z"],
  ["again", words.again, "M4 4l8 8M12 4l-8 8"],
  ["copied", words.copied, "M8 3l5 5l-5 5l-5 -5z"],
  ["lost", words.lost, "M3 4h10l-5 9z"],
  ["readable", words.readable, "M0 12h6v-7h10"],
];
for (const [kind, name, shape] of kinds) {
  const isThere = kind === "readable" ? run.readable.last.some((value) => value !== null)
    : run.marks.some((group) => group.kind === kind);
  if (!isThere) continue;
  const label = document.createElement("label");
  const box = document.createElement("input");
  box.type = "checkbox";
  box.checked = true;
  box.addEventListener("change", () => { shown[kind] = box.checked; draw(true); });
  const picture = document.createRange().createContextualFragment(
    `<svg viewBox="0 0 16 16" aria-hidden="true" class="mark-${kind}"><path d="${shape}"/></svg>`);
  label.append(box, picture, name);
  key.append(label);
}
for (const swatch of charts.querySelectorAll("h3[data-path] i")) {
  tint(swatch, Number(swatch.parentElement?.dataset.path));
}

// A line that is too long breaks between words, not after their hyphens.
for (const line of document.querySelectorAll("main code")) {
  line.replaceChildren(...(line.textContent || "").split(" ").flatMap((word, nth) => {
    const whole = document.createElement("span");
    whole.textContent = word;
    return nth ? [" ", whole] : [whole];
  }));
}
const command = byId("command");
const copy = byId("copy");
copy.hidden = !navigator.clipboard;
copy.addEventListener("click", () => {
  navigator.clipboard.writeText(command.textContent || "").then(
    () => { copy.textContent = "Copied"; },
    () => { copy.textContent = "Select it to copy"; },
  );
});

// A link may say where to look: run.html#at=540ms, or #incident=2 of a capture.
const pointed = () => {
  const [, nth] = /^#incident=(\d+)$/.exec(location.hash) || [];
  const span = nth && run.spans ? run.spans[Number(nth) - 1] : null;
  if (span) {
    const room = Math.max((span[1] - span[0]) * 0.15, run.bin_us);
    chosen = Number(nth) - 1;
    look(span[0] - room, span[1] + room);
    charts.scrollIntoView();
  }
  const [, number, name] = /^#at=([\d.]+)(us|ms|s)$/.exec(location.hash) || [];
  const unit = { us: 1, ms: 1e3, s: 1e6 }[name || ""];
  if (unit) cursor = Math.min(end, Number(number) * unit || 0);
};
pointed();
window.addEventListener("hashchange", () => { pointed(); draw(false); });
// A link that was followed before leads there again.
document.addEventListener("click", ({ target }) => {
  const link = target instanceof Element ? target.closest("a[href^='#']") : null;
  if (link && link.getAttribute("href") === location.hash) pointed();
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
