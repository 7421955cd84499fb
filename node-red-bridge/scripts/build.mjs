// Builds the module into an empty dist/: the compiled sources, the html files of the nodes and the editor plugin.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

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

/** Builds the editor plugin: one html file with style and script, and one file of texts for each language. */
async function buildEditor() {
  const [source, output] = [join(module, "src", "editor"), join(module, "editor-build")];
  rmSync(output, { recursive: true, force: true });
  compile(join(source, "tsconfig.json"));
  const entry = join(output, "editor", "main.mjs");
  const script = await build({ entryPoints: [entry], bundle: true, write: false, format: "iife", target: "es2022" });
  const parts = {
    "/* redflow-editor.css */": readFileSync(join(source, "redflow-editor.css"), "utf8"),
    "/* main.mts */": script.outputFiles[0].text,
  };
  let page = readFileSync(join(source, "redflow-editor.html"), "utf8");
  for (const [placeholder, part] of Object.entries(parts)) {
    // Escapes end tags, which would end the element.
    page = page.replace(placeholder, () => part.replace(/<\/(script|style)/gi, "<\\/$1"));
  }
  mkdirSync(join(dist, "editor"), { recursive: true });
  writeFileSync(join(dist, "editor", "redflow-editor.html"), page);
  for (const language of readdirSync(join(source, "locales"))) {
    const folder = join(source, "locales", language);
    const areas = readdirSync(folder).map((name) => [name.replace(/\.json$/, ""), JSON.parse(readFileSync(join(folder, name), "utf8"))]);
    mkdirSync(join(dist, "editor", "locales", language), { recursive: true });
    writeFileSync(join(dist, "editor", "locales", language, "redflow-editor.json"), JSON.stringify(Object.fromEntries(areas)));
  }
}

rmSync(dist, { recursive: true, force: true });
// The types of the protocol, from the sources in this tree.
compile(join(module, "..", "bindings", "tsconfig.json"));
compile(join(module, "tsconfig.json"));
for (const name of readdirSync(join(module, "src", "nodes")).filter((name) => name.endsWith(".html"))) {
  cpSync(join(module, "src", "nodes", name), join(dist, "nodes", name));
}
for (const folder of ["icons", "locales"]) {
  cpSync(join(module, "src", "nodes", folder), join(dist, "nodes", folder), { recursive: true });
}
await buildEditor();
// A set without its script or html file fails here, not only when Node-RED loads the palette.
for (const [type, file] of Object.entries(manifest["node-red"].nodes)) {
  for (const path of [file, file.replace(/\.js$/, ".html")]) {
    if (!existsSync(join(module, path))) {
      console.error(`node-red-bridge: ${path} of ${type} is missing`);
      process.exitCode = 1;
    }
  }
}
