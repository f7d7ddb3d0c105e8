(() => {
  const wrong = [];
  const channel = (value) => {
    const share = value / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const numbers = (colour) => (colour.match(/[\d.]+/g) || [0, 0, 0]).slice(0, 3).map(Number);
  const light = (rgb) => rgb.reduce((sum, value, at) => sum + [0.2126, 0.7152, 0.0722][at] * channel(value), 0);
  const contrast = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = numbers(getComputedStyle(document.body).backgroundColor);
  const drawings = Array.from(document.querySelectorAll('svg.plot'));
  for (const drawing of drawings) {
    const name = drawing.querySelector('title').textContent;
    const frame = drawing.getBoundingClientRect();
    const boxes = Array.from(drawing.querySelectorAll('text'), (text) => [text, text.getBoundingClientRect()]);
    boxes.forEach(([text, box], at) => {
      const says = text.textContent;
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        wrong.push(`${name}: "${says}" goes beyond the drawing`);
      }
      for (const [other, there] of boxes.slice(0, at)) {
        // Boxes of lines of text are a little higher than its letters.
        if (box.left < there.right && there.left < box.right && box.top + 2 < there.bottom && there.top + 2 < box.bottom) {
          wrong.push(`${name}: "${says}" on "${other.textContent}"`);
        }
      }
      let behind = ground;
      const cell = text.previousElementSibling;
      if (text.classList.contains('h') && cell) {
        const colour = numbers(getComputedStyle(cell).fill);
        const share = Number(getComputedStyle(cell).opacity);
        behind = colour.map((value, i) => value * share + ground[i] * (1 - share));
      }
      const seen = contrast(numbers(getComputedStyle(text).fill), behind);
      if (seen < 4.5) wrong.push(`${name}: "${says}" has a contrast of ${seen.toFixed(1)}`);
    });
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    wrong.push(`the page is ${document.documentElement.scrollWidth} wide on a screen of ${innerWidth}`);
  }
  return { wrong, drawings: drawings.length };
})()
