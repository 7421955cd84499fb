// Builds the module into an empty dist/: the compiled sources, the html files of the nodes and the editor plugin.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { englishTexts, pageOf, scriptOf } from "./node-html.mjs";

const module = fileURLToPath(new URL("..", import.meta.url));
const dist = join(module, "dist");
const manifest = JSON.parse(readFileSync(join(module, "package.json"), "utf8"));
/** The sources of the timeline. */
const timeline = join(module, "..", "console", "src", "timeline");
/** The node types of the palette, which `cargo xtask codegen` writes. */
const nodes = JSON.parse(readFileSync(join(module, "..", "schemas", "nodes.json"), "utf8"));

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
  // The timeline, which the console has too. Its files are modules; those of this package are not.
  mkdirSync(join(output, "timeline"), { recursive: true });
  writeFileSync(join(output, "timeline", "package.json"), '{ "type": "module" }\n');
  compile(join(module, "timeline.tsconfig.json"));
  compile(join(source, "tsconfig.json"));
  const entry = join(output, "editor", "main.mjs");
  const script = await build({ entryPoints: [entry], bundle: true, write: false, format: "iife", target: "es2022", metafile: true });
  const styles = [join(timeline, "timeline.css"), join(source, "redflow-editor.css")];
  const parts = {
    "/* redflow-editor.css */": styles.map((path) => readFileSync(path, "utf8")).join(""),
    "/* main.mts */": script.outputFiles[0].text,
  };
  let page = readFileSync(join(source, "redflow-editor.html"), "utf8");
  for (const [placeholder, part] of Object.entries(parts)) {
    // Escapes end tags, which would end the element.
    page = page.replace(placeholder, () => part.replace(/<\/(script|style)/gi, "<\\/$1"));
  }
  mkdirSync(join(dist, "editor"), { recursive: true });
  writeFileSync(join(dist, "editor", "THIRD-PARTY.txt"), notices(Object.keys(script.metafile.inputs)));
  writeFileSync(join(dist, "editor", "redflow-editor.html"), page);
  for (const language of readdirSync(join(source, "locales"))) {
    const folder = join(source, "locales", language);
    const areas = readdirSync(folder).map((name) => [name.replace(/\.json$/, ""), JSON.parse(readFileSync(join(folder, name), "utf8"))]);
    const texts = merge(Object.fromEntries(areas), timelineTexts(language));
    if (language === "en-US") {
      merge(texts.nodes, englishTexts(nodes));
      merge(texts.phrases, createRequire(import.meta.url)(join(dist, "sentence.js")).ENGLISH);
    }
    mkdirSync(join(dist, "editor", "locales", language), { recursive: true });
    writeFileSync(join(dist, "editor", "locales", language, "redflow-editor.json"), JSON.stringify(texts));
  }
}

/** The licences of the packages in the bundle that are not ours. */
function notices(inputs) {
  const names = inputs.map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  const texts = [...new Set(names)].filter((name) => name !== undefined && !name.startsWith("@redflow/")).sort((a, b) => (a < b ? -1 : 1)).map((name) => {
    const folder = join(module, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, "LICENSE"), "utf8").trim()}\n`;
  });
  return `redflow-editor.html contains code of these packages.\n\n${texts.join("\n")}`;
}

/** The texts of the timeline as Node-RED needs them: a tree, with the places of values between underscores. */
function timelineTexts(language) {
  const words = JSON.parse(readFileSync(join(timeline, "words", `${language.slice(0, 2)}.json`), "utf8"));
  const tree = {};
  for (const [key, value] of Object.entries(words)) {
    const written = value.replace(/\{(\w+)\}/g, "__$1__");
    merge(tree, key.split(".").reduceRight((inner, name) => ({ [name]: inner }), written));
  }
  return tree;
}

/** Adds the entries of a tree to another one. */
function merge(tree, added) {
  for (const [key, value] of Object.entries(added)) {
    tree[key] = typeof value === "object" ? merge(tree[key] ?? {}, value) : value;
  }
  return tree;
}

/** Builds the html file of each node, and the script of each node that has none of its own. */
function buildNodes() {
  const source = join(module, "src", "nodes");
  const part = (name) => (existsSync(join(source, name)) ? readFileSync(join(source, name), "utf8") : undefined);
  for (const node of nodes) {
    const [form, definition] = [part(`${node.type}.form.html`), part(`${node.type}.definition.mjs`)];
    const help = part(`locales/en-US/${node.type}.html`);
    if (help === undefined) {
      console.error(`node-red-bridge: write the help of ${node.type} in src/nodes/locales/en-US/${node.type}.html`);
      process.exitCode = 1;
      continue;
    }
    writeFileSync(join(dist, "nodes", `${node.type}.html`), pageOf(node, { form, help, definition }));
    const [script, generated] = [join(dist, "nodes", `${node.type}.js`), scriptOf(node)];
    if (generated !== undefined && !existsSync(script)) {
      writeFileSync(script, generated);
    }
  }
  cpSync(join(source, "icons"), join(dist, "nodes", "icons"), { recursive: true });
  for (const language of readdirSync(join(source, "locales")).filter((language) => language !== "en-US")) {
    cpSync(join(source, "locales", language), join(dist, "nodes", "locales", language), { recursive: true });
  }
}

rmSync(dist, { recursive: true, force: true });
// The types of the protocol, from the sources in this tree.
compile(join(module, "..", "bindings", "tsconfig.json"));
compile(join(module, "tsconfig.json"));
buildNodes();
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
