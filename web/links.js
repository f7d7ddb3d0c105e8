// The cards of the links: a slider and a text for each key, and a place for a trace.

import { MAX_LINKS, SLIDERS } from "./state.js";
import { POSITIONS, element, positionOf, quantityOf, rateText, timeText } from "./format.js";

const LABELS = { rate: "Rate", rtt: "RTT", loss: "Loss", queue: "Queue", jitter: "Jitter" };
const EMPTY = { loss: "none", queue: "100 ms", jitter: "none", rate: "", rtt: "" };
const NAMES = ["wifi", "lte", "dsl", "sat"];
const MAX_TRACE_BYTES = 64 << 20;

/** Shows the links, and changes the state when the user does. */
export class LinkCards {
  /** `changed` is called after each change; `describe` returns a promise of the description of a trace. */
  constructor(place, add, changed, describe) {
    Object.assign(this, { place, add, changed, describe });
    add.addEventListener("click", () => {
      const used = this.state.links.map((link) => link.name);
      const name = NAMES.find((name) => !used.includes(name)) ?? `link${used.length + 1}`;
      this.state.links.push({ name, rate: "10mbit", rtt: "40ms", loss: "", queue: "", jitter: "", trace: "", extra: "" });
      this.show(this.state);
      this.place.lastElementChild.querySelector("input").focus();
      changed();
    });
  }

  show(state) {
    this.state = state;
    this.place.replaceChildren(...state.links.map((link, nth) => this.card(link, nth)));
    this.add.disabled = state.links.length >= MAX_LINKS;
  }

  card(link, nth) {
    const name = element("input", {
      type: "text", class: "name", value: link.name, spellcheck: "false", "aria-label": `Name of link ${nth + 1}`,
      input: (event) => ((link.name = event.target.value), this.changed()),
    });
    const remove = element("button", {
      type: "button", class: "quiet", "aria-label": `Remove link ${link.name}`, disabled: this.state.links.length <= 1,
      click: () => {
        this.state.links.splice(nth, 1);
        this.show(this.state);
        this.add.focus();
        this.changed();
      },
    }, "Remove");
    const file = element("input", {
      type: "file", class: "file", "aria-label": `Trace file for link ${link.name}`,
      change: (event) => this.take(link, event.target.files[0]),
    });
    const pick = element("label", { class: "button" }, link.trace === "" ? "Trace…" : "Other trace…", file);
    const head = element("div", { class: "card-head" }, element("i", { "aria-hidden": "true", style: `background: var(--p${nth})` }), name, pick, remove);
    const rows = SLIDERS.filter((key) => key !== "rate" || link.trace === "").map((key) => this.slider(link, key));
    if (link.trace !== "") rows.unshift(this.trace(link));
    const extra = link.extra === "" ? undefined : this.extra(link);
    const card = element("div", {
      class: "card", role: "group", "aria-label": `Link ${link.name}`,
      dragover: (event) => (event.preventDefault(), card.classList.add("over")),
      dragleave: () => card.classList.remove("over"),
      drop: (event) => {
        event.preventDefault();
        card.classList.remove("over");
        this.take(link, event.dataTransfer.files[0]);
      },
    }, head, ...rows, extra);
    return card;
  }

  slider(link, key) {
    const positions = POSITIONS[key];
    const label = LABELS[key];
    const text = element("input", {
      type: "text", class: "value", value: link[key], placeholder: EMPTY[key], spellcheck: "false", "aria-label": `${label} of ${link.name} as text`,
      input: () => {
        link[key] = text.value;
        range.value = positionOf(key, text.value);
        this.changed();
      },
    });
    const range = element("input", {
      type: "range", min: 0, max: positions.length - 1, step: 1, value: positionOf(key, link[key]), "aria-label": `${label} of ${link.name}`,
      input: () => {
        link[key] = positions[range.value];
        text.value = link[key];
        range.setAttribute("aria-valuetext", link[key] || EMPTY[key]);
        this.changed();
      },
    });
    range.setAttribute("aria-valuetext", link[key] || EMPTY[key]);
    const name = element("span", { "aria-hidden": "true" }, label);
    // Steps of a rate, and models of loss, have no place on a slider.
    if (link[key] !== "" && Number.isNaN(quantityOf(link[key]))) return element("div", { class: "slide wide" }, name, text);
    return element("div", { class: "slide" }, name, range, text);
  }

  extra(link) {
    const text = element("input", {
      type: "text", value: link.extra, spellcheck: "false", "aria-label": `Further keys of ${link.name}`,
      input: () => ((link.extra = text.value), this.changed()),
    });
    return element("div", { class: "slide wide" }, element("span", { "aria-hidden": "true" }, "More"), text);
  }

  /** Returns the row of a trace with a drawing of its rate. */
  trace(link) {
    const note = element("span", { class: "note" }, "…");
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawing.setAttribute("viewBox", "0 0 100 24");
    drawing.setAttribute("preserveAspectRatio", "none");
    drawing.setAttribute("aria-hidden", "true");
    const remove = element("button", {
      type: "button", class: "quiet", "aria-label": `Remove the trace of ${link.name}`,
      click: () => {
        link.trace = "";
        if (link.rate === "") link.rate = "10mbit";
        this.show(this.state);
        this.changed();
      },
    }, "×");
    const text = this.state.files[link.trace];
    if (text === undefined) {
      note.textContent = "drop the file here";
    } else {
      this.describe(link.trace, text).then(
        (trace) => {
          note.textContent = `mean ${rateText(trace.mean_bps)}, ${timeText(trace.duration_ms * 1e3)}`;
          const most = Math.max(1, ...trace.rate_bps);
          const step = 100 / trace.rate_bps.length;
          const points = trace.rate_bps.map((bps, at) => `L${at * step} ${24 - (22 * bps) / most}H${(at + 1) * step}`);
          const area = document.createElementNS("http://www.w3.org/2000/svg", "path");
          area.setAttribute("d", `M0 24${points.join("")}V24Z`);
          drawing.replaceChildren(area);
        },
        (error) => (note.textContent = error.message),
      );
    }
    return element("div", { class: "trace" }, element("span", {}, link.trace), note, remove, drawing);
  }

  async take(link, file) {
    if (!file) return;
    const name = file.name.replace(/[,:\s&*]/g, "_");
    link.trace = name;
    this.state.files[name] = file.size > MAX_TRACE_BYTES ? "" : await file.text();
    this.show(this.state);
    this.changed();
  }
}
