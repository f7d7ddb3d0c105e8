// Browsers start no worker from a file. If the site is opened as files, a hidden frame takes its place: the
// search of the theme then works without a server.
(function () {
  if (location.protocol !== "file:") return;
  class FrameWorker extends EventTarget {
    constructor(script) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html>";
      frame.onload = () => {
        const inner = frame.contentWindow;
        inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inner.importScripts = (...sources) =>
          sources.reduce((before, source) => before.then(() => load(inner.document, source)), Promise.resolve());
        load(inner.document, script).then(() => {
          this.inner = inner;
          this.waiting.forEach((data) => this.postMessage(data));
        });
      };
      document.documentElement.append(frame);
    }

    postMessage(data) {
      if (this.inner) this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }

    terminate() {}
  }

  function load(page, source) {
    return new Promise((done, fail) => {
      const script = page.createElement("script");
      script.src = source;
      script.onload = done;
      script.onerror = fail;
      page.head.append(script);
    });
  }

  // The theme's script looks for this name to find its own files.
  window.IFrameWorker = FrameWorker;
  window.Worker = FrameWorker;
})();
