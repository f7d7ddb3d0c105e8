// Runs before the page's own script: notes what is drawn, and whatever is no number.
window.plaitDrawn = { wrong: [], texts: new Map() };
for (const name of ["fillRect", "moveTo", "lineTo", "rect", "arc", "fillText", "clearRect"]) {
  const plain = CanvasRenderingContext2D.prototype[name];
  CanvasRenderingContext2D.prototype[name] = function (...args) {
    const numbers = name === "fillText" ? args.slice(1) : args;
    if (!numbers.every(Number.isFinite)) window.plaitDrawn.wrong.push(`${name}(${args})`);
    if (name === "fillText") {
      const [text, x, y] = args;
      if (/NaN|undefined|null|Infinity/.test(text)) window.plaitDrawn.wrong.push(`text ${text}`);
      const width = this.measureText(text).width;
      const left = { left: x, start: x, center: x - width / 2 }[this.textAlign] ?? x - width;
      const known = window.plaitDrawn.texts.get(this.canvas) || [];
      const axis = this.textAlign === "right" && this.textBaseline === "middle";
      known.push({ text, left, right: left + width, y, axis });
      window.plaitDrawn.texts.set(this.canvas, known);
    }
    return plain.apply(this, args);
  };
}
// A drawing begins anew with its scale.
const scale = CanvasRenderingContext2D.prototype.setTransform;
CanvasRenderingContext2D.prototype.setTransform = function (...args) {
  window.plaitDrawn.texts.delete(this.canvas);
  return scale.apply(this, args);
};
