// Builds the module into dist/: the compiled sources, and each node's html beside its script. Starts from nothing.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const module = fileURLToPath(new URL("..", import.meta.url));
const dist = join(module, "dist");
const manifest = JSON.parse(readFileSync(join(module, "package.json"), "utf8"));

const typescript = dirname(createRequire(import.meta.url).resolve("typescript/package.json"));

function compile(project) {
  const run = [join(typescript, "bin", "tsc"), "-p", project];
  const { status } = spawnSync(process.execPath, run, { cwd: module, stdio: "inherit" });
  if (status !== 0) {
    process.exit(status ?? 1);
  }
}

rmSync(dist, { recursive: true, force: true });
// The types of the protocol come from there, as they are in this tree now.
compile(join(module, "..", "bindings", "tsconfig.build.json"));
compile(join(module, "tsconfig.json"));
for (const name of readdirSync(join(module, "src", "nodes")).filter((name) => name.endsWith(".html"))) {
  cpSync(join(module, "src", "nodes", name), join(dist, "nodes", name));
}
for (const folder of [join("nodes", "icons"), "editor"]) {
  cpSync(join(module, "src", folder), join(dist, folder), { recursive: true });
}
// Node-RED would say so only when it loads the palette: a set whose script or page is missing is a mistake here.
for (const [type, file] of Object.entries(manifest["node-red"].nodes)) {
  for (const path of [file, file.replace(/\.js$/, ".html")]) {
    if (!existsSync(join(module, path))) {
      console.error(`node-red-bridge: ${path} of ${type} is missing`);
      process.exitCode = 1;
    }
  }
}
