// The page: reads the address, keeps the state, asks the simulator, and plays the race.

import { addressOf, requestOf, stateOf } from "./state.js";
import { PlaitError, Replaced, Simulator, compiledModule } from "./simulator.js";
import { clockText, element, timeText } from "./format.js";
import { LinkCards } from "./links.js";
import { Film, Reel } from "./film.js";
import { LaneView } from "./lanes.js";
import { ChartView } from "./chart.js";
import { copyFrom, showTable } from "./table.js";

const at = (id) => document.getElementById(id);
/** Waits after a change before the simulator runs, in ms. */
const PAUSE_MS = 120;
/** A race takes this time on the screen unless the user chooses a speed. */
const WATCH_SECONDS = 12;
const COLOURS = ["s0", "s1", "s2", "s3", "s4", "s5"];
const FIRST_TEXTS = { download: "download:2MB", upload: "upload:1MB", bulk: "bulk:3s", stream: "stream:30kB@50ms,for=3s", blocks: "blocks:8KiB@4mbit,for=3s", video: "video:paper,for=20s", maps: "maps:20s" };

/** The running page. */
class Page {
  constructor(state, module) {
    this.state = state;
    this.runner = new Simulator(module);
    this.tables = new Simulator(module);
    this.time = 0;
    this.playing = false;
    this.views = [];
    this.cards = new LinkCards(at("links"), at("add"), () => this.changed(), (name, text) => {
      this.reader ??= new Simulator(module);
      return this.reader.call("trace", [name, text]);
    });
    this.chart = new ChartView(at("chart"), (time) => this.seek(time));
  }

  async start() {
    this.lists = await this.runner.call("lists", []);
    this.fillChoices();
    this.listen();
    this.show();
    // On a phone, the race is nearer to the links.
    at("traffic").open = matchMedia("(min-width: 901px)").matches;
    at("footer").textContent = `plait ${this.lists.version}`;
    await this.update();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (this.state.at !== "") this.seek(Number(this.state.at) * 1000);
    else if (!still && this.reel) this.play(true);
  }

  fillChoices() {
    at("kind").replaceChildren(...this.lists.workloads.map(({ name }) => element("option", { value: name }, name)));
    at("cc").replaceChildren(...this.lists.cc.filter(({ name }) => name !== "fixed").map(({ name }) => element("option", { value: name }, name)));
  }

  /** Shows the state in every field. */
  show() {
    const { state } = this;
    this.cards.show(state);
    for (const key of ["workload", "runs", "seed", "more"]) at(key).value = state[key];
    if (![...at("cc").options].some((option) => option.value === state.cc)) at("cc").append(element("option", { value: state.cc }, state.cc));
    at("cc").value = state.cc;
    this.showKind();
    const names = this.lists.schedulers.map(({ name }) => name);
    const own = state.schedulers.filter((name) => !names.includes(name));
    const box = (name, idea) => {
      const input = element("input", {
        type: "checkbox", value: name, checked: state.schedulers.includes(name),
        change: () => {
          const boxes = [...at("schedulers").querySelectorAll("input")];
          state.schedulers = boxes.filter((it) => it.checked).map((it) => it.value);
          this.changed();
        },
      });
      return element("label", { title: idea }, input, name);
    };
    const boxes = [...this.lists.schedulers.map(({ name, idea }) => box(name, idea)), ...own.map((name) => box(name, name))];
    at("schedulers").replaceChildren(...boxes);
  }

  showKind() {
    const kind = this.state.workload.split(":")[0];
    const known = this.lists.workloads.find(({ name }) => name === kind);
    at("kind").value = known ? kind : "";
    at("workload-idea").textContent = known ? `${known.grammar}: ${known.idea}` : "";
  }

  listen() {
    const { state } = this;
    at("setup").addEventListener("submit", (event) => event.preventDefault());
    for (const key of ["workload", "runs", "seed", "more", "cc"]) {
      at(key).addEventListener("input", () => {
        state[key] = at(key).value;
        if (key === "workload") this.showKind();
        this.changed();
      });
    }
    at("kind").addEventListener("change", () => {
      const { name, example } = this.lists.workloads.find(({ name }) => name === at("kind").value);
      state.workload = FIRST_TEXTS[name] ?? example;
      at("workload").value = state.workload;
      this.showKind();
      this.changed();
    });
    at("play").addEventListener("click", () => this.play(!this.playing));
    at("again").addEventListener("click", () => this.seek(0));
    at("time").addEventListener("input", () => this.seek((at("time").value / 1000) * (this.reel?.length ?? 0)));
    at("speed").addEventListener("input", () => {
      state.speed = String(Number((10 ** (at("speed").value / 15 - 3)).toPrecision(2)));
      this.showSpeed();
      this.keep();
    });
    at("copy-command").addEventListener("click", (event) => copyFrom(event.target, at("command").textContent));
    at("copy-python").addEventListener("click", (event) => copyFrom(event.target, at("python").textContent));
    at("copy-link").addEventListener("click", (event) => copyFrom(event.target, location.href));
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => this.draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    window.addEventListener("hashchange", async () => {
      if (location.hash === this.written) return;
      Object.assign(this.state, await stateOf(location.hash));
      this.show();
      await this.update();
      if (this.state.at !== "") this.seek(Number(this.state.at) * 1000);
    });
    // A file that misses its link must not replace the page.
    for (const name of ["dragover", "drop"]) window.addEventListener(name, (event) => event.preventDefault());
  }

  key(event) {
    const tag = event.target.tagName;
    if (event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT", "BUTTON", "SUMMARY"].includes(tag) || event.target.closest(".scroll") || !this.reel) return;
    const step = this.reel.length / 100;
    const moves = { ArrowLeft: this.time - step, ArrowRight: this.time + step, Home: 0, End: this.reel.length };
    if (event.key === " ") this.play(!this.playing);
    else if (event.key in moves) this.seek(moves[event.key]);
    else return;
    event.preventDefault();
  }

  /** Writes the state into the address. */
  async keep() {
    const left = [];
    this.written = `#${await addressOf(this.state, left)}`;
    history.replaceState(null, "", this.written);
    at("link-note").textContent =
      left.length === 0 ? "The address of the page has the whole scenario." : `The address has everything except ${left.join(", ")}, which is too long for it: send the file too.`;
  }

  changed() {
    this.state.at = "";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.update(), PAUSE_MS);
  }

  /** Runs the scenario of the state: first the race, and beside it the comparison. */
  async update() {
    this.keep();
    this.tables.replace();
    this.runner.replace();
    const request = requestOf(this.state);
    at("links-short").textContent = this.state.links.map((link) => link.name).join(", ");
    at("traffic-short").textContent = `${this.state.workload}; ${this.state.schedulers.join(", ")}`;
    document.body.classList.add("busy");
    try {
      const lines = await this.runner.call("check", [request]);
      at("error").hidden = true;
      document.body.classList.remove("stale");
      this.showLines(lines);
      const table = this.compare(request);
      await this.race(request, lines);
      await table;
      document.body.classList.remove("busy");
    } catch (error) {
      this.failed(error);
    }
  }

  failed(error) {
    if (error instanceof Replaced) return;
    this.play(false);
    document.body.classList.remove("busy");
    // The results are those of an earlier scenario.
    document.body.classList.add("stale");
    for (const id of ["digest", "command", "python"]) at(id).textContent = "";
    at("error").hidden = false;
    at("error").textContent = error.message;
    if (!(error instanceof PlaitError)) throw error;
  }

  showLines(lines) {
    // A line for each flag, unless a quoted text would be broken.
    at("command").textContent = lines.command.includes("'") ? lines.command : lines.command.replace(/ --/g, " \\\n  --");
    at("python").textContent = lines.python;
    this.looks = new Map();
    let next = 0;
    lines.rows.forEach((row) => {
      const path = lines.paths.indexOf(row.replace(/^tcp:/, ""));
      const single = row.startsWith("tcp:");
      this.looks.set(row, single ? { colour: `p${path}`, dash: [4, 3] } : { colour: COLOURS[next++ % COLOURS.length], dash: [] });
    });
  }

  async compare(request) {
    const progress = at("progress");
    progress.value = 0;
    at("digest").textContent = "…";
    const answer = await this.tables.call("compare", [request], (done, total) => (progress.value = done / total));
    progress.value = 1;
    showTable(at("table"), answer, this.looks);
    at("digest").textContent = answer.digest;
  }

  async race(request, lines) {
    const calls = lines.rows.map((row, nth) => this.runner.call("run", [request, nth]));
    const results = await Promise.all(calls);
    const films = results.map((result) => new Film(result.about.row, result));
    const shown = films.filter((film) => lines.paths.length === 1 || !film.row.startsWith("tcp:"));
    this.reel = new Reel(films, shown);
    this.views = shown.map((film) => new LaneView(this.reel, film, this.looks.get(film.row).colour));
    at("lanes").replaceChildren(...this.views.map((view) => view.root));
    this.chart.show(this.reel, this.looks);
    const full = films.find((film) => film.about.recorded_until_ms !== null);
    at("race-note").textContent =
      `${this.state.workload}, the first run, seed ${this.state.seed}.` +
      (full ? ` Packets are drawn up to ${timeText(full.about.recorded_until_ms * 1e3)}; later ones are too many.` : "");
    this.showSpeed();
    this.move(this.over || (this.playing && this.time >= this.reel.length) ? 0 : this.time);
    // A race that was played to its end begins again with the new scenario.
    if (this.over) this.play(true);
    this.over = false;
  }

  /** Returns simulated time over time on the screen. */
  get rate() {
    const chosen = Number(this.state.speed);
    return chosen > 0 ? chosen : this.reel.length / 1e6 / WATCH_SECONDS;
  }

  showSpeed() {
    const rate = this.rate;
    at("speed").value = Math.round((Math.log10(rate) + 3) * 15);
    at("speed-text").textContent = rate >= 1 ? `${Number(rate.toPrecision(2))}x` : `1/${Math.round(1 / rate)}`;
  }

  play(on) {
    this.playing = on && this.reel !== undefined;
    at("play").textContent = this.playing ? "Stop" : "Play";
    if (!this.playing) return;
    if (this.time >= this.reel.length) this.time = 0;
    let before = null;
    const frame = (now) => {
      if (!this.playing || this.frame !== frame) return;
      const passed = before === null ? 0 : Math.min(now - before, 100);
      before = now;
      this.move(this.time + passed * 1e3 * this.rate);
      this.over = this.time >= this.reel.length;
      if (this.over) this.play(false);
      else requestAnimationFrame(frame);
    };
    this.frame = frame;
    requestAnimationFrame(frame);
  }

  /** Goes to a time and keeps it in the address. */
  seek(time) {
    this.over = false;
    this.move(time);
    clearTimeout(this.keeper);
    this.keeper = setTimeout(() => {
      this.state.at = this.playing ? "" : String(Number((this.time / 1000).toFixed(3)));
      this.keep();
    }, 300);
  }

  move(time) {
    if (!this.reel) return;
    this.time = Math.min(this.reel.length, Math.max(0, time));
    at("time").value = Math.round((this.time / this.reel.length) * 1000);
    const text = clockText(this.time, this.reel.length);
    at("clock").textContent = text;
    at("time").setAttribute("aria-valuetext", text);
    this.draw();
  }

  draw() {
    if (!this.reel) return;
    for (const view of this.views) view.draw(this.time, this.rate);
    this.chart.draw(this.time);
  }
}

const failedToStart = (error) => {
  at("error").hidden = false;
  at("error").textContent = `The simulator cannot start here: ${error.message}`;
  throw error;
};
Promise.all([stateOf(location.hash), compiledModule()])
  .then(([state, module]) => new Page(state, module).start())
  .catch(failedToStart);
