// A headless browser, controlled over its DevTools protocol: JSON messages, each ended by a zero byte, on two pipes.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];
const SILENCE_MS = 120_000;

/** Returns the name of an installed browser, or undefined. */
export function installed() {
  return NAMES.find((name) => spawnSync(name, ["--version"]).status === 0);
}

export class Browser {
  constructor(name) {
    this.profile = fs.mkdtempSync(path.join(os.tmpdir(), "plait-browser-"));
    // The sandbox is unavailable as root and in most containers.
    const flags = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--no-first-run", "--disable-gpu",
      "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--disable-extensions", "--mute-audio", `--user-data-dir=${this.profile}`];
    this.child = spawn(name, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.ended = new Promise((resolve) => this.child.on("exit", resolve));
    this.waiting = new Map();
    this.next = 1;
    this.events = [];
    let rest = "";
    this.child.stdio[4].setEncoding("utf8").on("data", (text) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      messages.forEach((message) => this.take(JSON.parse(message)));
    });
  }

  take(message) {
    const waiting = this.waiting.get(message.id);
    if (waiting) {
      this.waiting.delete(message.id);
      if (message.error) waiting.reject(new Error(`${waiting.method}: ${message.error.message}`));
      else waiting.resolve(message.result);
      return;
    }
    this.events.push(message);
  }

  call(method, params = {}) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer to ${method}`)), SILENCE_MS);
      const settle = (end) => (value) => (clearTimeout(timer), end(value));
      this.waiting.set(id, { method, resolve: settle(resolve), reject: settle(reject) });
      const request = { id, method, params, ...(this.session ? { sessionId: this.session } : {}) };
      this.child.stdio[3].write(`${JSON.stringify(request)}\0`);
    });
  }

  async start() {
    const { targetId } = await this.call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.call("Target.attachToTarget", { targetId, flatten: true });
    this.session = sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await this.call(`${domain}.enable`);
  }

  /** Opens an address and waits until it is loaded. */
  async open(url, { scheme, width, height = 900, mobile = false, still = true }) {
    const features = [{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: still ? "reduce" : "no-preference" }];
    await this.call("Emulation.setEmulatedMedia", { features });
    await this.call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile });
    await this.call("Emulation.setTouchEmulationEnabled", { enabled: mobile });
    // The same address with another state behind # would not load anew.
    await this.call("Page.navigate", { url: "about:blank" });
    await this.until("location.href === 'about:blank' && document.readyState === 'complete'");
    this.events = [];
    await this.call("Page.navigate", { url });
    await this.until("location.href !== 'about:blank' && document.readyState === 'complete'");
  }

  /** Returns the value of an expression in the page, once its promise is resolved. */
  async evaluate(expression) {
    const answer = await this.call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails));
    return answer.result.value;
  }

  /** Waits until an expression is true. */
  async until(expression, seconds = 60) {
    const end = Date.now() + seconds * 1000;
    while (!(await this.evaluate(`Boolean(${expression})`))) {
      if (Date.now() > end) throw new Error(`after ${seconds} s it is still false: ${expression}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async press(key, code = key) {
    const text = key.length === 1 ? key : undefined;
    for (const type of ["keyDown", "keyUp"]) await this.call("Input.dispatchKeyEvent", { type, key, code, text });
  }

  /** Writes a picture of the whole page. */
  async picture(file, whole = true) {
    const { data } = await this.call("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole, ...(whole ? { clip: await this.size() } : {}) });
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, Buffer.from(data, "base64"));
  }

  async size() {
    const { cssContentSize } = await this.call("Page.getLayoutMetrics");
    return { x: 0, y: 0, width: cssContentSize.width, height: cssContentSize.height, scale: 1 };
  }

  /** Returns errors of the page since it was opened, and requests to the network. */
  complaints() {
    const methods = ["Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Inspector.targetCrashed", "Network.webSocketCreated"];
    return this.events.flatMap(({ method, params }) => {
      if (methods.includes(method)) return [JSON.stringify(params)];
      const url = method === "Network.requestWillBeSent" ? params.request.url : "";
      return /^https?:/.test(url) && !url.startsWith("http://127.0.0.1") ? [`asked for ${url}`] : [];
    });
  }

  async close() {
    this.session = undefined;
    await this.call("Browser.close").catch(() => this.child.kill());
    await this.ended;
    fs.rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
