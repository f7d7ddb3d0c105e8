// Prints the digests of comparisons: reads a list of scenarios from the standard input, each a list of arguments.
// node digest.mjs DIRECTORY

import fs from "node:fs";
import { load } from "./module.mjs";

const plait = load(process.argv[2]);
for (const args of JSON.parse(fs.readFileSync(0, "utf8"))) {
  console.log(JSON.parse(plait.compare(JSON.stringify({ arguments: args, files: {} }))).digest);
}
