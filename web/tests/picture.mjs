// Draws the page for its documentation: node picture.mjs DIRECTORY FILE

import path from "node:path";
import { Browser, installed } from "./browser.mjs";

const [directory, file] = process.argv.slice(2);
const browser = new Browser(installed());
try {
  await browser.start();
  await browser.open(`file://${path.resolve(directory, "race.html")}#at=300`, { scheme: "light", width: 1400, height: 1130 });
  await browser.until("document.getElementById('digest').textContent.length === 64 && !document.body.classList.contains('busy')");
  await browser.until("document.getElementById('clock').textContent === '300.0 ms'");
  await browser.picture(file, false);
} finally {
  await browser.close();
}
