// What the page shows: which drawings lack a colour that they should have, what does not fit, what
// cannot be read. A promise, kept once what was asked for is drawn.
new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const wrong = window.plaitDrawn.wrong.slice();
  const run = JSON.parse(document.getElementById("run").textContent);
  const style = getComputedStyle(document.documentElement);
  const rgb = (name) => {
    const hex = style.getPropertyValue(`--${name}`).trim();
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  const some = (band) => band.last.some((value) => value !== null);
  const carried = run.paths.map((path, index) => (path.sent.length ? [`p${index}`] : [])).flat();
  const wanted = (plot) => {
    const [kind, index] = plot.split("-");
    switch (kind) {
      case "sequence": return run.marks.some(({ kind }) => kind === "lost") ? [...carried, "alert"] : carried;
      case "rate": return carried;
      case "held": return ["soft"];
      case "blocked": return run.blocked.length ? ["soft"] : [];
      case "window": return some(run.paths[index].cwnd) ? [`p${index}`] : [];
      case "srtt": return some(run.paths[index].srtt_us) ? [`p${index}`] : [];
      case "flight": return run.paths[index].unacked.greatest.some((value) => value > 0) ? [`p${index}`] : [];
      case "rtt": return run.paths[index].rtt_us.length ? [`p${index}`] : [];
      case "queue": return some(run.paths[index].queue) ? [`p${index}`] : [];
      default: return ["soft"];
    }
  };
  const canvases = Array.from(document.querySelectorAll("canvas[data-plot]"));
  const plots = canvases.map((canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height)
      .getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const missing = wanted(canvas.dataset.plot).filter((name) => {
      const colour = rgb(name);
      for (let at = 0; at < data.length; at += 4) {
        const near = colour.every((value, nth) => Math.abs(data[at + nth] - value) < 24);
        if (near && data[at + 3] > 120) return false;
      }
      return true;
    });
    return { plot: canvas.dataset.plot, missing };
  });

  // Every drawing has labels, none twice on an axis, none over another.
  const texts = Array.from(window.plaitDrawn.texts.values());
  if (texts.length !== canvases.length) wrong.push(`${texts.length} drawings have words`);
  for (const all of texts) {
    all.forEach((a, nth) => all.slice(nth + 1).forEach((b) => {
      const over = Math.abs(a.y - b.y) < 9 && a.left < b.right && b.left < a.right;
      if (over) wrong.push(`${a.text} over ${b.text}`);
      if (a.axis && b.axis && a.text === b.text) wrong.push(`${a.text} twice`);
    }));
  }

  // Words can be told from the ground (WCAG 2.2, 1.4.3 and 1.4.11).
  const light = (colour) => colour.map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, nth) => sum + value * [0.2126, 0.7152, 0.0722][nth], 0);
  const contrast = (a, b) => {
    const [low, high] = [light(rgb(a)), light(rgb(b))].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const least = { text: 4.5, soft: 4.5, alert: 4.5 };
  for (let path = 0; path < 8; path++) least[`p${path}`] = 3;
  for (const [name, ratio] of Object.entries(least)) {
    if (contrast(name, "ground") < ratio) wrong.push(`${name} is too faint`);
  }

  // Nothing wider than the screen but tables, which scroll within themselves.
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("scrolls sideways");
  for (const element of document.querySelectorAll("main *")) {
    if (element.closest(".scroll")) continue;
    if (element.getBoundingClientRect().right > innerWidth + 1) wrong.push(element.outerHTML.slice(0, 90));
  }
  const shown = document.querySelector("main").innerText;
  const odd = shown.match(/.{0,30}(NaN|undefined|Infinity|\bnull\b).{0,30}/);
  if (odd) wrong.push(odd[0]);

  const table = Array.from(document.querySelectorAll("table"))
    .find(({ caption }) => caption.textContent === "What each path did");
  done({
    wrong,
    plots,
    pathRows: table ? table.tBodies[0].rows.length : 0,
    tiles: document.querySelectorAll(".tiles dd").length,
    time: document.getElementById("time").textContent,
    ground: getComputedStyle(document.body).backgroundColor,
  });
})))
