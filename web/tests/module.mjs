// The module in node, the command line beside it, and random scenarios for both.

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

/** Loads the module that `bind` wrote into a directory. */
export function load(directory) {
  globalThis.plaitProgress = () => {};
  const bindings = fs.readFileSync(path.join(directory, "plait.js"), "utf8");
  const plait = vm.runInThisContext(`${bindings}\nwasm_bindgen;`);
  plait.initSync({ module: new WebAssembly.Module(fs.readFileSync(path.join(directory, "plait.wasm"))) });
  return plait;
}

/** Loads `state.js`, also in a node that takes a file `.js` without a package for an older kind of module. */
export function stateModule() {
  const source = fs.readFileSync(new URL("../state.js", import.meta.url), "utf8");
  return import(`data:text/javascript,${encodeURIComponent(source)}`);
}

/** Returns the output of the command line with these arguments. */
export function native(program, command, args, files = {}) {
  const at = fs.mkdtempSync(path.join(process.env.TMPDIR ?? "/tmp", "plait-web-"));
  try {
    for (const [name, text] of Object.entries(files)) fs.writeFileSync(path.join(at, name), text);
    const flags = args.flatMap(([name, text]) => (text === "on" ? [`--${name}`] : [`--${name}`, text]));
    const out = spawnSync(program, [command, ...flags, "--json"], { cwd: at, encoding: "utf8", maxBuffer: 1 << 28 });
    if (out.error) throw out.error;
    return { status: out.status, document: out.stdout === "" ? null : JSON.parse(out.stdout), stderr: out.stderr };
  } finally {
    fs.rmSync(at, { recursive: true });
  }
}

/** Returns a generator of numbers from 0 to 1 (mulberry32). */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const WORKLOADS = [
  "download:256kB", "download:1MB", "upload:300kB", "bulk:1s", "stream:20kB@50ms,for=1s", "burst:15seg",
  "blocks:8KiB@500kbit,for=1s", "web:amazon",
];

/** Returns the arguments and files of a random scenario. */
export function scenario(seed, lists) {
  const next = random(seed);
  const pick = (list) => list[Math.floor(next() * list.length)];
  const whole = (low, high) => Math.floor(low + next() * (high - low + 1));
  const args = [];
  const files = {};
  const count = pick([2, 2, 2, 3, 4]);
  for (let nth = 0; nth < count; nth++) {
    const fields = [`rtt=${whole(5, 200)}ms`];
    const kind = next();
    if (kind < 0.15) {
      const name = `link${nth}.csv`;
      const rows = Array.from({ length: 20 }, (_, second) => `${second + 1},${whole(50, 2500) * 1000}`);
      files[name] = `${rows.join("\n")}\n`;
      fields.push(`trace=${name}`);
    } else if (kind < 0.3) {
      fields.push(`rate=${whole(2, 20)}mbit@0s/${whole(2, 20)}mbit@${whole(100, 900)}ms`);
    } else {
      fields.push(`rate=${whole(10, 600) / 10}mbit`);
    }
    if (next() < 0.5) fields.push(`queue=${pick(["30kB", "60kB", "150kB", "40pkt", "80ms"])}`);
    if (next() < 0.4) fields.push(`loss=${pick(["0.1%", "1%", "3%", "ge:p=1%,r=30%,bad=50%"])}`);
    if (next() < 0.3) fields.push(`jitter=${whole(1, 20)}ms`);
    if (next() < 0.1) fields.push(`down=${whole(100, 400)}ms..${whole(500, 900)}ms`);
    args.push(["path", `p${nth}:${fields.join(",")}`]);
  }
  const names = lists.schedulers.map((it) => it.name);
  args.push(["workload", pick(WORKLOADS)]);
  args.push(["schedulers", [...new Set([pick(names), pick(names)])].join(",")]);
  args.push(["cc", pick(lists.cc.map((it) => it.name).filter((name) => name !== "fixed"))]);
  args.push(["runs", String(whole(1, 3))]);
  args.push(["seed", String(BigInt(whole(1, 2 ** 31)) * BigInt(whole(1, 2 ** 31)))]);
  return { args, files };
}
