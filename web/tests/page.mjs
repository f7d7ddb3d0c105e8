// Opens the page in a headless browser: from a file and from a loopback server, light and dark, wide and on a phone.
// node page.mjs DIRECTORY PLAIT [PICTURES]

import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import zlib from "node:zlib";
import { Browser, installed } from "./browser.mjs";
import { native } from "./module.mjs";

const [directory, program, pictures] = process.argv.slice(2);
const page = path.resolve(directory, "race.html");
const LOOKS = [
  { name: "wide-light", scheme: "light", width: 1400 },
  { name: "wide-dark", scheme: "dark", width: 1400 },
  { name: "phone-light", scheme: "light", width: 390, height: 844, mobile: true },
  { name: "phone-dark", scheme: "dark", width: 390, height: 844, mobile: true },
];
const FIRST = [
  ["path", "wifi:rtt=22ms,rate=20mbit,queue=60kB,loss=0.1%"], ["path", "lte:rtt=60ms,rate=8mbit,queue=150kB"],
  ["workload", "download:2MB"], ["schedulers", "minrtt,ecf,slot"], ["runs", "10"], ["seed", "1"],
];
const SCENARIOS = [
  FIRST,
  [["path", "wifi:rtt=20ms,rate=30mbit,jitter=5ms"], ["path", "lte:rtt=70ms,rate=12mbit,loss=ge:p=1%,r=30%,bad=50%"], ["path", "sat:rtt=550ms,rate=25mbit"],
    ["workload", "stream:20kB@50ms,for=2s"], ["schedulers", "ecf:beta=0.5,blest,slot"], ["cc", "bbr"], ["runs", "3"], ["seed", "18446744073709551615"]],
  [["path", "a:rtt=15ms,rate=12mbit@0s/3mbit@500ms,down=300ms..400ms"], ["path", "b:rtt=40ms,rate=6mbit,queue=40pkt"], ["path", "c:rtt=90ms,rate=4mbit"], ["path", "d:rtt=5ms,rate=2mbit"],
    ["workload", "upload:600kB"], ["schedulers", "roundrobin,redundant"], ["cc", "olia"], ["runs", "2"], ["seed", "7"], ["rcvbuf", "200kB"]],
];
const DONE = "document.getElementById('digest').textContent.length === 64 && !document.body.classList.contains('busy')";
const text = (id) => `document.getElementById(${JSON.stringify(id)}).textContent`;
// Limits of the page that is shipped. A page of the tests compiles in less time, and is larger and slower.
const shipped = Boolean(process.env.SHIPPED);
const FIRST_ANSWER_MS = shipped ? 2000 : Infinity;
const MAX_COMPRESSED_BYTES = shipped ? 1_000_000 : Infinity;

/** Returns the address of a scenario. */
function address(base, args, more = {}) {
  const known = ["path", "workload", "schedulers", "cc", "runs", "seed"];
  const parts = new URLSearchParams(args.filter(([name]) => known.includes(name)));
  const flags = args.filter(([name]) => !known.includes(name));
  if (flags.length > 0) parts.append("more", flags.map(([name, value]) => `--${name} ${value}`).join(" "));
  for (const [name, value] of Object.entries(more)) parts.append(name, value);
  return `${base}#${parts}`;
}

/** Reads the page: what overlaps its width, empty drawings, and contrast of texts. */
const PROBE = `(() => {
  const wrong = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) wrong.push("the page is wider than the window: " + document.documentElement.scrollWidth);
  const visible = (node) => { const box = node.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const drawn = (canvas) => new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
  for (const canvas of document.querySelectorAll("canvas")) if (!visible(canvas) || drawn(canvas) < 5) wrong.push("an empty drawing: " + canvas.getAttribute("aria-label"));
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => channels(colour).slice(0, 3).map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, n) => sum + c * [0.2126, 0.7152, 0.0722][n], 0);
  const ground = (node) => { for (let at = node; at; at = at.parentElement) { const colour = getComputedStyle(at).backgroundColor; if ((channels(colour)[3] ?? 1) > 0.9) return colour; } return "rgb(255, 255, 255)"; };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = new Set();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (node.textContent.trim() === "" || parent.closest("script, noscript, style, svg, option") || !visible(parent)) continue;
    texts.add(parent);
  }
  for (const node of texts) {
    const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) wrong.push("contrast " + ratio.toFixed(2) + ": " + node.textContent.trim().slice(0, 40));
    if (node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).display !== "inline" && !node.closest(".scroll")) wrong.push("cut: " + node.textContent.trim().slice(0, 40));
  }
  for (const node of document.querySelectorAll("input:not([type=hidden]), select, button")) {
    const named = node.labels?.length > 0 || node.getAttribute("aria-label") || node.textContent.trim();
    if (!visible(node)) wrong.push("a control that is not visible: " + node.outerHTML.slice(0, 60));
    if (!named) wrong.push("a control without a name: " + node.outerHTML.slice(0, 60));
  }
  return { wrong, texts: texts.size };
})()`;

const served = http.createServer((request, response) => {
  const found = new URL(request.url, "http://127.0.0.1").pathname === "/race.html";
  response.writeHead(found ? 200 : 404, { "content-type": "text/html; charset=utf-8" });
  response.end(found ? fs.readFileSync(page) : "");
});

async function main() {
  const compressed = zlib.gzipSync(fs.readFileSync(page), { level: 9 }).length;
  assert.ok(compressed <= MAX_COMPRESSED_BYTES, `${compressed} bytes compressed`);
  console.log(`${shipped ? "ok    " : ""}the page has ${compressed} bytes compressed`);
  await new Promise((resolve) => served.listen(0, "127.0.0.1", resolve));
  const bases = [`file://${page}`, `http://127.0.0.1:${served.address().port}/race.html`];
  const browser = new Browser(installed());
  try {
    await browser.start();
    for (const base of bases) await digests(browser, base);
    await looks(browser, bases[0]);
    await controls(browser, bases[0]);
    await traces(browser, bases[0]);
    await mistakes(browser, bases[0]);
  } finally {
    await browser.close();
    served.close();
  }
}

function nothingWrong(browser, place) {
  assert.deepEqual(browser.complaints(), [], place);
}

/** Every scenario has the digest of the command line. */
async function digests(browser, base) {
  const expected = SCENARIOS.map((args) => native(program, "compare", args).document);
  for (const [nth, args] of SCENARIOS.entries()) {
    const begin = performance.now();
    await browser.open(nth === 0 ? base : address(base, args), LOOKS[0]);
    await browser.until(DONE);
    const took = Math.round(performance.now() - begin);
    if (nth === 0) {
      console.log(`${shipped ? "ok    " : ""}${base.split(":")[0]}: the first answer after ${took} ms`);
      assert.ok(took <= FIRST_ANSWER_MS, `${took} ms`);
    }
    const place = `${base}: scenario ${nth}`;
    assert.equal(await browser.evaluate(text("digest")), expected[nth].digest, place);
    const command = (await browser.evaluate(text("command"))).replace(/ \\\n {2}/g, " ");
    assert.equal(command, expected[nth].command, place);
    const python = await browser.evaluate(text("python"));
    for (const [name, value] of args) if (name !== "schedulers") assert.ok(python.includes(value.replace(/,rate=.*/s, "")), `${place}: ${value} in ${python}`);
    const rows = await browser.evaluate("document.querySelectorAll('#table tbody tr').length");
    assert.equal(rows, expected[nth].rows.length, place);
    nothingWrong(browser, place);
  }
  console.log(`ok    ${base.split(":")[0]}: ${SCENARIOS.length} scenarios have the digest of the command line`);
}

/** The page in each look has no overlap, contrast and names. */
async function looks(browser, base) {
  for (const look of LOOKS) {
    for (const [nth, args] of SCENARIOS.entries()) {
      await browser.open(address(base, args, { at: "400" }), look);
      await browser.until(DONE);
      await browser.evaluate("document.querySelectorAll('details').forEach((it) => (it.open = true))");
      await browser.evaluate("new Promise((done) => setTimeout(done, 100))");
      const seen = await browser.evaluate(PROBE);
      const place = `${look.name}, scenario ${nth}`;
      assert.deepEqual(seen.wrong, [], place);
      assert.ok(seen.texts > 60, place);
      if (pictures) await browser.picture(path.join(pictures, `${look.name}-${nth}.png`));
      nothingWrong(browser, place);
    }
  }
  console.log(`ok    ${LOOKS.length * SCENARIOS.length} views: nothing is cut, every text has a contrast of 4.5, every control is visible and has a name`);
}

/** Keys, sliders, the player and the address. */
async function controls(browser, base) {
  await browser.open(base, { ...LOOKS[0], still: false });
  await browser.until(DONE);
  await browser.until(`parseFloat(${text("clock")}) > 0.05`);
  assert.equal(await browser.evaluate(text("play")), "Stop");
  await browser.evaluate("document.activeElement.blur()");
  await browser.press(" ", "Space");
  assert.equal(await browser.evaluate(text("play")), "Play");
  await browser.press("End");
  const lanes = "Array.from(document.querySelectorAll('.lane .place'), (it) => it.textContent)";
  const places = await browser.evaluate(lanes);
  assert.equal(places.filter((it) => it.startsWith("first:")).length, 1, places);
  await browser.press("Home");
  await browser.press("ArrowRight");
  await browser.until("location.hash.includes('at=')");
  // A slider by keys: the state, the digest and the address follow.
  const digest = await browser.evaluate(text("digest"));
  await browser.evaluate("document.querySelector('[aria-label=\"RTT of wifi\"]').focus()");
  await browser.press("ArrowRight");
  await browser.until(`${DONE} && ${text("digest")} !== ${JSON.stringify(digest)}`);
  const changed = await browser.evaluate("document.querySelector('[aria-label=\"RTT of wifi as text\"]').value");
  assert.notEqual(changed, "22ms");
  const args = FIRST.map(([name, value]) => [name, value.replace("rtt=22ms", `rtt=${changed}`)]);
  const expected = native(program, "compare", args).document.digest;
  assert.equal(await browser.evaluate(text("digest")), expected);
  // The address shows the same scenario to someone else.
  const shared = await browser.evaluate("location.href");
  await browser.open(shared, LOOKS[2]);
  await browser.until(DONE);
  assert.equal(await browser.evaluate(text("digest")), expected);
  // Links are added and removed.
  await browser.evaluate("document.getElementById('add').click()");
  await browser.until(`${DONE} && document.querySelectorAll('.card').length === 3 && ${text("digest")} !== ${JSON.stringify(expected)}`);
  await browser.evaluate("document.querySelectorAll('.card button.quiet')[2].click()");
  await browser.until(`${DONE} && ${text("digest")} === ${JSON.stringify(expected)}`);
  nothingWrong(browser, "controls");
  console.log("ok    keys, sliders, links and the address work");
}

/** A dropped trace gives the digest of the command line, and is in the address. */
async function traces(browser, base) {
  const trace = Array.from({ length: 12 }, (_, second) => `${second + 1},${(second % 4) * 400000 + 200000}\n`).join("");
  await browser.open(base, LOOKS[0]);
  await browser.until(DONE);
  const digest = await browser.evaluate(text("digest"));
  const drop = (name, content) => `(() => {
    const data = new DataTransfer();
    data.items.add(new File([${JSON.stringify(content)}], ${JSON.stringify(name)}));
    document.querySelectorAll(".card")[1].dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  })()`;
  await browser.evaluate(drop("lte 4g.csv", trace));
  await browser.until(`${DONE} && ${text("digest")} !== ${JSON.stringify(digest)}`);
  const args = FIRST.map(([name, value]) => [name, value.replace("lte:rtt=60ms,rate=8mbit", "lte:rtt=60ms,trace=lte_4g.csv")]);
  const expected = native(program, "compare", args, { "lte_4g.csv": trace }).document;
  assert.equal(await browser.evaluate(text("digest")), expected.digest);
  await browser.until("document.querySelector('.trace').textContent.includes('mean')");
  await browser.open(await browser.evaluate("location.href"), LOOKS[2]);
  await browser.until(DONE);
  assert.equal(await browser.evaluate(text("digest")), expected.digest);
  // A trace that is too long for the address is named, and works here.
  let word = 1;
  const long = Array.from({ length: 40000 }, (_, second) => `${second + 1},${(word = (word * 48271) % 2147483647)}\n`).join("");
  await browser.evaluate(drop("long.csv", long));
  await browser.until(`${DONE} && ${text("link-note")}.includes("long.csv") && ${text("digest")} !== ${JSON.stringify(expected.digest)}`);
  assert.ok((await browser.evaluate("location.href.length")) < 2000);
  await browser.evaluate(drop("notes.txt", "no trace\n"));
  await browser.until("!document.getElementById('error').hidden");
  const said = native(program, "compare", args.map(([name, value]) => [name, value.replace("lte_4g.csv", "notes.txt")]), { "notes.txt": "no trace\n" });
  assert.ok(said.stderr.includes(await browser.evaluate(text("error"))), said.stderr);
  nothingWrong(browser, "traces");
  console.log("ok    a trace file works, and travels in the address");
}

/** Mistakes have the text of the command line, and a correction removes it. */
async function mistakes(browser, base) {
  await browser.open(base, LOOKS[0]);
  await browser.until(DONE);
  const type = (label, value) => `(() => { const field = document.querySelector('[aria-label=${JSON.stringify(label)}]'); field.value = ${JSON.stringify(value)}; field.dispatchEvent(new Event("input", { bubbles: true })); })()`;
  await browser.evaluate(type("RTT of wifi as text", "22"));
  await browser.until("!document.getElementById('error').hidden");
  const wrong = FIRST.map(([name, value]) => [name, value.replace("rtt=22ms", "rtt=22")]);
  const said = native(program, "compare", wrong).stderr;
  assert.ok(said.includes(await browser.evaluate(text("error"))), said);
  assert.equal(await browser.evaluate(text("digest")), "");
  await browser.evaluate(type("RTT of wifi as text", "22ms"));
  await browser.until(`${DONE} && document.getElementById('error').hidden`);
  nothingWrong(browser, "mistakes");
  console.log("ok    a mistake has the text of the command line");
}

await main();
