// The state of the page: links, traffic and view. It is in the address (after #), so that a link shows the same.

/** Keys of a link with a slider, in the order of the page. */
export const SLIDERS = ["rate", "rtt", "loss", "queue", "jitter"];
/** Greatest length of a trace in an address, in characters. */
const MAX_FILE_CHARACTERS = 100_000;
/** Parameters that belong to the value of `loss` before them. */
const OF_LOSS = ["p", "r", "bad", "good", "1-h", "1-k", "h", "k"];

export const MAX_LINKS = 4;

/** Keys of an address with one value, each a field of the state. */
const FIELDS = ["workload", "cc", "runs", "seed", "more", "speed", "at"];

/** Returns the state of a page without an address. */
export function firstState() {
  return {
    links: [
      { name: "wifi", rate: "20mbit", rtt: "22ms", loss: "0.1%", queue: "60kB", jitter: "", trace: "", extra: "" },
      { name: "lte", rate: "8mbit", rtt: "60ms", loss: "", queue: "150kB", jitter: "", trace: "", extra: "" },
    ],
    workload: "download:2MB",
    schedulers: ["minrtt", "ecf", "slot"],
    cc: "cubic",
    runs: "10",
    seed: "1",
    more: "",
    files: {},
    speed: "",
    at: "",
  };
}

/** Returns a link as the text of `--path`. */
export function pathText(link) {
  const fields = [];
  const add = (key, text) => text.trim() !== "" && fields.push(`${key}=${text.trim()}`);
  add("rtt", link.rtt);
  if (link.trace === "") add("rate", link.rate);
  else add("trace", link.trace);
  add("queue", link.queue);
  add("loss", link.loss);
  add("jitter", link.jitter);
  if (link.extra.trim() !== "") fields.push(link.extra.trim());
  return `${link.name.trim()}:${fields.join(",")}`;
}

/** Reads the text of `--path`. Keys without a slider become `extra`. */
export function linkOf(text) {
  const colon = text.indexOf(":");
  const name = colon < 0 ? text : text.slice(0, colon);
  const link = { name, rate: "", rtt: "", loss: "", queue: "", jitter: "", trace: "", extra: "" };
  if (colon < 0) link.extra = `profile=${name}`;
  let last = "";
  const pieces = colon < 0 ? [] : text.slice(colon + 1).split(",");
  for (const piece of pieces) {
    const equals = piece.indexOf("=");
    const key = equals < 0 ? piece : piece.slice(0, equals);
    if (last === "loss" && OF_LOSS.includes(key)) link.loss += `,${piece}`;
    else if (equals > 0 && (SLIDERS.includes(key) || key === "trace") && link[key] === "") {
      link[key] = piece.slice(equals + 1);
      last = key;
    } else {
      link.extra += (link.extra === "" ? "" : ",") + piece;
      last = "";
    }
  }
  return link;
}

/** Divides a line into words as a shell does, for quotes and backslashes. */
export function wordsOf(line) {
  const words = [];
  const pattern = /(?:[^\s'"\\]|'[^']*'|"(?:[^"\\]|\\.)*"|\\.)+/g;
  for (const [word] of line.matchAll(pattern)) {
    words.push(word.replace(/'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)/g, (_, a, b, c) => a ?? b?.replace(/\\(.)/g, "$1") ?? c));
  }
  return words;
}

/** Returns a word of such a line, in quotes if it needs them. */
const quoted = (word) => (/^[\w.,:=%@*/+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Returns the flags of the field `more` as pairs. A flag without a value is a switch. */
export function moreFlags(line) {
  const words = wordsOf(line);
  const flags = [];
  for (let at = 0; at < words.length; at++) {
    const [name, value] = words[at].replace(/^--/, "").split(/=(.*)/s);
    const after = words[at + 1];
    if (value !== undefined) flags.push([name, value]);
    else if (after !== undefined && !after.startsWith("--")) flags.push([name, words[++at]]);
    else flags.push([name, "on"]);
  }
  return flags;
}

/** Returns the request for the simulator. */
export function requestOf(state) {
  const args = state.links.map((link) => ["path", pathText(link)]);
  args.push(["workload", state.workload], ["schedulers", state.schedulers.join(",")]);
  args.push(["cc", state.cc], ["runs", state.runs], ["seed", state.seed], ...moreFlags(state.more));
  const named = state.links.map((link) => link.trace);
  const files = Object.fromEntries(Object.entries(state.files).filter(([name]) => named.includes(name)));
  // An empty list of schedulers is an error. Other empty fields have their default.
  const given = args.filter(([name, text]) => name === "schedulers" || text.trim() !== "");
  return JSON.stringify({ arguments: given, files });
}

/** Returns the part of the address behind #. Sets `left` to the names of traces that are too long for it. */
export async function addressOf(state, left = []) {
  const parts = new URLSearchParams();
  for (const link of state.links) parts.append("path", pathText(link));
  for (const key of FIELDS) {
    if (state[key] !== "") parts.append(key, state[key]);
  }
  parts.append("schedulers", state.schedulers.join(","));
  for (const [name, text] of Object.entries(state.files)) {
    if (!state.links.some((link) => link.trace === name)) continue;
    const packed = await packedText(text);
    if (packed.length > MAX_FILE_CHARACTERS) left.push(name);
    else parts.append("file", `${name}*${packed}`);
  }
  // These characters are allowed behind #, and an address is easier to read with them.
  return parts.toString().replace(/%(3A|2C|3D|40|2F|2A)/g, (code) => decodeURIComponent(code));
}

/** Reads the part of an address behind #. */
export async function stateOf(address) {
  const parts = new URLSearchParams(address.replace(/^#/, ""));
  const state = firstState();
  const paths = parts.getAll("path");
  if (paths.length > 0) state.links = paths.slice(0, MAX_LINKS).map(linkOf);
  for (const key of FIELDS) {
    if (parts.has(key)) state[key] = parts.get(key);
  }
  if (parts.has("schedulers")) state.schedulers = schedulerList(parts.get("schedulers"));
  for (const file of parts.getAll("file")) {
    const star = file.indexOf("*");
    if (star > 0) state.files[file.slice(0, star)] = await unpackedText(file.slice(star + 1));
  }
  // The simulator takes all else as a flag, or reports that there is no such flag.
  const others = paths.slice(MAX_LINKS).map((text) => ["path", text]);
  others.push(...[...parts].filter(([key]) => ![...FIELDS, "path", "schedulers", "file"].includes(key)));
  const flags = others.map(([key, text]) => quoted(text === "" ? `--${key}` : `--${key}=${text}`));
  state.more = [state.more, ...flags].join(" ").trim();
  return state;
}

/** Divides a list of schedulers. A parameter such as `x=2` belongs to the scheduler before it. */
export function schedulerList(text) {
  const list = [];
  for (const piece of text.split(",").filter((piece) => piece.trim() !== "")) {
    if (list.length > 0 && /^[\w-]+=/.test(piece)) list[list.length - 1] += `,${piece}`;
    else list.push(piece.trim());
  }
  return list;
}

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function packedText(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("gzip"));
  let plain = "";
  for (const byte of bytes) plain += String.fromCharCode(byte);
  return btoa(plain).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

async function unpackedText(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
    return new TextDecoder().decode(await through(bytes, new DecompressionStream("gzip")));
  } catch {
    // The simulator reports that the file is no trace.
    return "";
  }
}
