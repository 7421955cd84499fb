// npm run check-output -- FILE.json
//
// Whether the JSON that `redflow run --json` printed is an AgentOutput: it is written into a TypeScript file
// as a literal and compiled under this package's strict settings, so unknown keys are errors too. `-` reads
// stdin. Exit code 1: it is none; 2: called wrongly.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const bindings = fileURLToPath(new URL("..", import.meta.url));

/** The complaint, or null if all is well. */
function check(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `not one JSON value: ${error.message}`;
  }
  const parent = join(bindings, "dist-test");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "output-"));
  try {
    const literal = JSON.stringify(value, null, 2);
    const source =
      'import type { AgentOutput } from "../../src/index.js";\n' + `export const output: AgentOutput = ${literal};\n`;
    const settings = {
      extends: "../../tsconfig.json",
      compilerOptions: { noEmit: true, rootDir: "../.." },
      files: ["output.ts"],
      include: [],
    };
    writeFileSync(join(folder, "output.ts"), source);
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
    const compiler = join(bindings, "node_modules", "typescript", "bin", "tsc");
    const done = spawnSync(process.execPath, [compiler, "--pretty", "false", "-p", "."], { cwd: folder, encoding: "utf8" });
    if (done.error) {
      return `the compiler did not start: ${done.error.message}`;
    }
    return done.status === 0 ? null : `not an AgentOutput:\n${done.stdout}${done.stderr}`.trimEnd();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const [file, ...rest] = process.argv.slice(2);
if (file === undefined || rest.length > 0) {
  console.error("Usage: npm run check-output -- FILE.json   (`-` reads stdin)");
  process.exitCode = 2;
} else {
  const name = file === "-" ? "stdin" : file;
  try {
    const complaint = check(readFileSync(file === "-" ? 0 : file, "utf8"));
    if (complaint === null) {
      console.log(`${name}: an AgentOutput`);
    } else {
      console.error(`${name}: ${complaint}`);
      process.exitCode = 1;
    }
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    process.exitCode = 1;
  }
}
