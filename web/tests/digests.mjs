// Compares the module with the command line: digests of random scenarios, single runs, and texts of errors.
// node digests.mjs DIRECTORY PLAIT [NUMBER] [FIRST SEED]

import assert from "node:assert/strict";
import { load, native, scenario, stateModule } from "./module.mjs";

const [directory, program, number = "40", first = "1"] = process.argv.slice(2);
const plait = load(directory);
const { addressOf, linkOf, moreFlags, pathText, requestOf, stateOf } = await stateModule();
const lists = JSON.parse(plait.lists());
const request = (args, files = {}) => JSON.stringify({ arguments: args, files });

let rows = 0;
for (let nth = 0; nth < Number(number); nth++) {
  const seed = Number(first) + nth;
  const { args, files } = scenario(seed, lists);
  const place = `scenario ${seed}: ${JSON.stringify(args)}`;
  const expected = native(program, "compare", args, files);
  assert.ok(expected.document, `${place}: ${expected.stderr}`);
  const answer = JSON.parse(plait.compare(request(args, files)));
  assert.equal(answer.digest, expected.document.digest, place);
  assert.equal(answer.command, expected.document.command, place);
  rows += expected.document.rows.length;
  // The fields of a link have everything that its text has.
  const again = args.map(([name, text]) => [name, name === "path" ? pathText(linkOf(text)) : text]);
  assert.equal(JSON.parse(plait.check(request(again, files))).command, answer.command, place);
}
assert.ok(rows >= 3 * Number(number), `${rows} rows`);
console.log(`ok    ${number} random scenarios, ${rows} rows: the digests are those of the command line`);

// Single runs, which the page draws: the hash of `plait run`, and records that agree with themselves.
let packets = 0;
for (let nth = 0; nth < Math.max(4, Number(number) / 5); nth++) {
  const seed = Number(first) + nth;
  const { args, files } = scenario(seed, lists);
  const place = `run ${seed}: ${JSON.stringify(args)}`;
  const one = args.map(([name, text]) => [name, name === "schedulers" ? text.split(",")[0] : text]);
  // A comparison in which nothing else is random has random timing of the hosts.
  const micros = native(program, "compare", args, files).document.points[0].host_jitter_us;
  const jitter = micros === undefined ? [] : [["host-jitter", `${micros}us`]];
  const race = plait.run(request(args, files), 0);
  const about = JSON.parse(race.about());
  const alone = one.filter(([name]) => name !== "runs");
  const expected = native(program, "run", [...alone, ...jitter], files).document;
  assert.equal(about.segment_hash, expected.segment_hash, place);
  assert.equal(about.complete, expected.complete, place);
  packets += check(race, about, expected, place);
}
assert.ok(packets > 1000, `${packets} packets`);
console.log(`ok    ${packets} packets of single runs: hashes and sent bytes are those of \`plait run\``);

/** Checks the records of a run. Returns the number of its packets. */
function check(race, about, expected, place) {
  const words = race.packets();
  const begin = Math.floor(about.begin_ms * 1000);
  const end = Math.ceil(about.end_ms * 1000);
  const sent = about.paths.map(() => 0);
  let before = 0;
  for (let at = 0; at < words.length; at += 5) {
    const [from, to, , len, flags] = words.subarray(at, at + 5);
    const fate = (flags >> 8) & 15;
    assert.ok(from >= before && from <= end, place);
    assert.ok(fate === 0 ? to === 0xffffffff : to >= from && to <= end, `${place}: ${from} to ${to}, fate ${fate}`);
    if (flags & 16 && from >= begin) sent[flags & 15] += len;
    before = from;
  }
  assert.deepEqual(sent, expected.per_path.map((path) => path.sent_bytes), place);
  const receiver = race.receiver();
  for (let at = 3; at < receiver.length; at += 3) {
    assert.ok(receiver[at] > receiver[at - 3] && receiver[at + 1] >= receiver[at - 2], place);
  }
  const samples = race.samples();
  assert.equal(samples.length % (1 + 3 * about.paths.length), 0, place);
  return words.length / 5;
}

// The address has the whole state, a trace too, and flags are divided as a shell does.
assert.deepEqual(moreFlags("--goal thrifty --exact --expect 'minrtt.completion_ms < 9000' --rcvbuf=1MB"), [
  ["goal", "thrifty"], ["exact", "on"], ["expect", "minrtt.completion_ms < 9000"], ["rcvbuf", "1MB"],
]);
const state = await stateOf("#path=a:rtt=20ms,trace=t.csv,loss=ge:p=1%25,r=30%25,bad=50%25,down=1s..2s&path=lte-att&schedulers=ecf:beta=0.5,x=1,minrtt&seed=9");
state.files = { "t.csv": "1,500000\n2,900000\n" };
state.more = "--rcvbuf 1MB";
assert.deepEqual(state.schedulers, ["ecf:beta=0.5,x=1", "minrtt"]);
const restored = await stateOf(`#${await addressOf(state)}`);
assert.deepEqual(restored, state);
assert.equal(requestOf(restored), requestOf(state));
assert.deepEqual(JSON.parse(requestOf(state)).arguments[0], ["path", "a:rtt=20ms,trace=t.csv,loss=ge:p=1%,r=30%,bad=50%,down=1s..2s"]);
const further = await stateOf(`#${["a:rtt=1ms", "b", "c", "d", "e:rtt=2ms"].map((it) => `path=${it}`).join("&")}&rcvbuf=1MB&exact&x%27y=it%27s+so`);
assert.deepEqual(further.links.map((link) => link.name), ["a", "b", "c", "d"]);
assert.deepEqual(moreFlags(further.more), [["path", "e:rtt=2ms"], ["rcvbuf", "1MB"], ["exact", "on"], ["x'y", "it's so"]]);
assert.equal(further.more, "--path=e:rtt=2ms --rcvbuf=1MB --exact '--x'\\''y=it'\\''s so'");
console.log("ok    the address has the whole state");

// The call in Python names every setting that differs from its default.
const call = JSON.parse(plait.check(request([
  ["path", "a:rtt=20ms,rate=9mbit"], ["path", "lte-att"], ["workload", "download:64kB"], ["schedulers", "ecf:beta=0.5,minrtt"],
  ["seed", "18446744073709551615"], ["exact", "on"], ["idle-restart", "off"], ["expect", "minrtt.completion_ms < 9000"], ["expect", "minrtt.goodput_mbps > 1"],
]))).python;
assert.equal(call, `plait.compare(
    paths=[
        "a:rtt=20ms,rate=9mbit",
        "lte-att",
    ],
    workload="download:64kB",
    schedulers=["ecf:beta=0.5", "minrtt"],
    runs=30,
    seed=18446744073709551615,
    idle_restart="off",
    exact=True,
    expect=["minrtt.completion_ms < 9000", "minrtt.goodput_mbps > 1"],
)`);
console.log("ok    the call in Python has paths, schedulers and settings");

// Errors have the same texts.
const good = [["path", "a:rtt=20ms,rate=9mbit"], ["path", "b:rtt=40ms,rate=3mbit"], ["workload", "download:64kB"]];
const wrong = [
  [["path", "a:rtt=20,rate=9mbit"], ...good.slice(1)],
  [["path", "a:rtt=20ms,rat=9mbit"], ...good.slice(1)],
  [["path", "wifi-hom"], ...good.slice(1)],
  [good[0], good[0], good[2]],
  [["path", "a:rtt=20ms,trace=missing.csv"], ...good.slice(1)],
  [good[0], good[1], ["workload", "download:0"]],
  [good[0], good[1], ["workload", "downlod:64kB"]],
  [...good, ["schedulers", "ecff"]],
  [...good, ["schedulers", "ecf:bta=1"]],
  [...good, ["cc", "cubik"]],
  [...good, ["runs", "0"]],
  [...good, ["seed", "-1"]],
];
for (const args of wrong) {
  const place = JSON.stringify(args);
  const expected = native(program, "compare", args);
  assert.equal(expected.status, 2, place);
  let text = null;
  try {
    plait.compare(request(args));
  } catch (error) {
    text = error.message;
  }
  assert.ok(text !== null, `${place}: no error`);
  assert.ok(expected.stderr.includes(text), `${place}:\n${text}\n--- the command line:\n${expected.stderr}`);
}
console.log(`ok    ${wrong.length} errors have the texts of the command line`);
