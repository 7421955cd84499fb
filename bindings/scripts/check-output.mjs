// npm run check-output -- FILE.json
//
// Checks whether the JSON of `redflow run --json` is an AgentOutput. Writes it as a literal into a TypeScript file and
// compiles that with this package's strict settings, so unknown keys are errors too. `-` reads stdin. Exit code 1: it
// is not an AgentOutput; 2: wrong arguments.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const bindings = fileURLToPath(new URL("..", import.meta.url));

/** The problem as text, or null. */
function findProblem(text) {
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
    const source = `import type { AgentOutput } from "../../src/index.js";\nexport const output: AgentOutput = ${literal};\n`;
    const settings = {
      extends: "../../tsconfig.json",
      compilerOptions: { noEmit: true, rootDir: "../.." },
      files: ["output.ts"],
      include: [],
    };
    writeFileSync(join(folder, "output.ts"), source);
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
    const compiler = join(bindings, "node_modules", "typescript", "bin", "tsc");
    const result = spawnSync(process.execPath, [compiler, "--pretty", "false", "-p", "."], { cwd: folder, encoding: "utf8" });
    if (result.error) {
      return `the compiler did not start: ${result.error.message}`;
    }
    return result.status === 0 ? null : `not an AgentOutput:\n${result.stdout}${result.stderr}`.trimEnd();
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
    const problem = findProblem(readFileSync(file === "-" ? 0 : file, "utf8"));
    if (problem === null) {
      console.log(`${name}: an AgentOutput`);
    } else {
      console.error(`${name}: ${problem}`);
      process.exitCode = 1;
    }
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    process.exitCode = 1;
  }
}
