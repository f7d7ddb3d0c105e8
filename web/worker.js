// The worker: the bindings of the module stand above this. The page sends { id, call, args }, and first the compiled
// module. An answer is { id, value } or { id, error }; progress of a comparison is { id, done, total }.

let current = 0;
self.plaitProgress = (done, total) => self.postMessage({ id: current, done, total });

const answers = {
  lists: () => JSON.parse(wasm_bindgen.lists()),
  check: (request) => JSON.parse(wasm_bindgen.check(request)),
  compare: (request) => JSON.parse(wasm_bindgen.compare(request)),
  trace: (name, text) => JSON.parse(wasm_bindgen.trace(name, text)),
  run: (request, row) => {
    const race = wasm_bindgen.run(request, row);
    try {
      return {
        about: JSON.parse(race.about()),
        packets: race.packets(),
        receiver: race.receiver(),
        samples: race.samples(),
        blocked: race.blocked(),
      };
    } finally {
      race.free();
    }
  },
};

self.onmessage = ({ data }) => {
  if (data.module) {
    wasm_bindgen.initSync({ module: data.module });
    return;
  }
  current = data.id;
  try {
    const value = answers[data.call](...data.args);
    const owned = Object.values(value).filter((part) => part instanceof Uint32Array);
    self.postMessage({ id: data.id, value }, owned.map((part) => part.buffer));
  } catch (error) {
    self.postMessage({ id: data.id, error: String(error.message ?? error), broken: error instanceof WebAssembly.RuntimeError });
  }
};
