// Extracts the examples of README.md and of the doc comments in src/ as dist-test/examples/FILE-NUMBER.ts, so that the
// tests compile and run them. An example that imports something is a whole module. Any other is the body of a function.

import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, extname } from "node:path";

const root = new URL("../", import.meta.url);
const target = new URL("dist-test/examples/", root);

/** What a doc comment need not repeat. The block inside lets an example make a `client` of its own. */
const BEFORE = `import { CURSOR_START, RedflowClient, RedflowError } from "@redflow/bindings";

declare const console: { log(...values: unknown[]): void };

export async function run(client: RedflowClient, url: string, token: string): Promise<void> {{
`;
const AFTER = "}}\n";

/** The fenced TypeScript of a text, without the stars of its comment. */
function examplesOf(text) {
  const blocks = [...text.matchAll(/^[ *]*```ts\n(.*?)^[ *]*```$/gms)].map(([, code]) => code.replaceAll(/^ +\* ?/gm, ""));
  return blocks.map((code) => (code.startsWith("import ") ? code : BEFORE + code + AFTER));
}

const sources = readdirSync(new URL("src/", root)).map((name) => `src/${name}`);
rmSync(target, { recursive: true, force: true });
mkdirSync(target, { recursive: true });
for (const path of ["README.md", ...sources]) {
  const stem = basename(path, extname(path)).toLowerCase();
  for (const [index, code] of examplesOf(readFileSync(new URL(path, root), "utf8")).entries()) {
    writeFileSync(new URL(`${stem}-${index + 1}.ts`, target), code);
  }
}
