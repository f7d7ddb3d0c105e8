// The table of `compare`, and the lines that repeat it.

import { element } from "./format.js";

/** Shows the answer to a comparison. */
export function showTable(place, answer, looks) {
  const { parts } = answer;
  const heading = ({ title, number }) => element("th", { scope: "col", class: number ? "n" : "" }, title);
  const head = element("tr", {}, ...parts.headings.map(heading));
  const rows = parts.rows.map((row) => {
    const cells = row.cells.map((text, at) => {
      const number = parts.headings[at].number ? "n" : "";
      if (at > 0) return element("td", { class: number }, text);
      const found = /^(\d+)\s+(.*)$/.exec(text);
      const name = found ? found[2] : text;
      const chip = element("i", { "aria-hidden": "true", style: `background: var(--${looks.get(name)?.colour ?? "soft"})` });
      return element("th", { scope: "row" }, element("span", { class: "group" }, found ? found[1] : ""), chip, name);
    });
    return element("tr", { class: row.emphasis }, ...cells);
  });
  const table = element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
  const scroll = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of the comparison" }, table);
  const failures = answer.failures.map((text) => element("p", { class: "limit" }, text));
  place.replaceChildren(
    element("p", { class: "title" }, parts.title),
    scroll,
    element("p", { class: "verdict" }, parts.verdict),
    ...parts.limits.map((text) => element("p", { class: "limit" }, text)),
    ...failures,
    element("p", { class: "hint" }, parts.legend),
  );
}

/** Copies a text, and says so on the button. */
export async function copyFrom(button, text) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select the text to copy it";
  }
  setTimeout(() => (button.textContent = before), 2000);
}
