// Bundles the tests and runs them. A test that is TypeScript imports the sources as they are.

import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = fileURLToPath(new URL("..", import.meta.url));
const output = join(folder, "test-build");
const names = process.argv.slice(2);
const files = readdirSync(join(folder, "test")).filter(
  (name) => /\.test\.(tsx?|mjs)$/.test(name) && (names.length === 0 || names.some((part) => name.includes(part))),
);

rmSync(output, { recursive: true, force: true });
await build({
  absWorkingDir: folder,
  entryPoints: files.map((name) => join(folder, "test", name)),
  outdir: output,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  // One copy of Preact for all modules of a test.
  splitting: false,
  platform: "node",
  format: "esm",
  target: "node20",
  jsx: "automatic",
  jsxImportSource: "preact",
  external: ["happy-dom"],
  mainFields: ["module", "main"],
  conditions: ["import"],
  define: { "import.meta.dirname": JSON.stringify(join(folder, "test")) },
  logLevel: "warning",
});
const tests = readdirSync(output).filter((name) => name.endsWith(".test.mjs"));
// No test takes long. One that hangs must not hang the others.
const run = ["--test", "--test-timeout=60000", ...tests.map((name) => join(output, name))];
process.exitCode = spawnSync(process.execPath, run, { cwd: folder, stdio: "inherit" }).status ?? 1;
