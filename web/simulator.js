// The simulator in a Web Worker.

/** Returns the compiled module, which stands in the page as compressed base64. */
export async function compiledModule() {
  const text = document.getElementById("module").textContent;
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

/** An error of the simulator: the text is that of the command line. */
export class PlaitError extends Error {}
/** The end of a call that a later one has replaced. */
export class Replaced extends Error {}

/** A worker that does one thing after the other. */
export class Simulator {
  constructor(module) {
    this.module = module;
    this.source = URL.createObjectURL(
      new Blob([document.getElementById("worker").textContent], { type: "text/javascript" }),
    );
    this.waiting = new Map();
    this.next = 1;
    this.start();
  }

  start() {
    this.worker = new Worker(this.source);
    this.worker.onmessage = ({ data }) => this.answered(data);
    this.worker.onerror = (event) => this.fail(new PlaitError(`the worker: ${event.message}`));
    this.worker.postMessage({ module: this.module });
  }

  /** Ends everything that has no answer yet. */
  replace() {
    if (this.waiting.size === 0) return;
    this.worker.terminate();
    this.fail(new Replaced());
    this.start();
  }

  fail(error) {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  call(call, args, progress) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, progress });
      this.worker.postMessage({ id, call, args });
    });
  }

  answered(data) {
    const waiting = this.waiting.get(data.id);
    if (!waiting) return;
    if (data.total !== undefined) {
      waiting.progress?.(data.done, data.total);
      return;
    }
    this.waiting.delete(data.id);
    if (data.error === undefined) waiting.resolve(data.value);
    else waiting.reject(new PlaitError(data.error));
    if (data.broken) {
      // The memory of a module that has trapped is in no known state.
      this.worker.terminate();
      this.fail(new Replaced());
      this.start();
    }
  }
}
