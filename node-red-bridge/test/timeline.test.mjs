// What the editor's bundle contains: the timeline of the console and nothing else of it, and no package that needs a notice and
// has none.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const module = fileURLToPath(new URL("..", import.meta.url));
const shared = `${module}/../console/src/timeline`;
const read = (path) => readFileSync(`${module}/${path}`, "utf8");

/** The files of the bundle, by the folder they are in. */
async function inputs() {
  const { metafile } = await build({ absWorkingDir: module, entryPoints: ["editor-build/editor/main.mjs"], bundle: true, write: false, metafile: true, logLevel: "silent" });
  return Object.keys(metafile.inputs);
}

test("the bundle has the timeline, and nothing else of the console", async () => {
  const files = await inputs();
  const timeline = files.filter((path) => path.startsWith("editor-build/timeline/")).map((path) => path.replace("editor-build/timeline/", "").replace(/\.js$/, ""));
  assert.ok(timeline.includes("timeline") && timeline.includes("resolve") && timeline.includes("cancel"), timeline.join());
  for (const name of timeline) {
    assert.ok(existsSync(`${shared}/${name}.ts`) || existsSync(`${shared}/${name}.tsx`), `${name} is not in console/src/timeline`);
  }
  const others = files.filter((path) => !/^(editor-build|\.\.\/bindings\/dist|node_modules\/(preact|@preact\/signals|@preact\/signals-core))\//.test(path));
  assert.deepEqual(others, []);
  assert.equal(files.filter((path) => path.endsWith("preact.mjs")).length, 1, "one Preact");
});

test("no source of the palette names another folder of the console", () => {
  const files = ["src", "scripts"].flatMap((folder) => readdirSync(`${module}/${folder}`, { recursive: true }).map((name) => `${folder}/${name}`));
  for (const file of [...files.filter((name) => /\.(m?ts|mjs|json)$/.test(name)), "timeline.tsconfig.json"]) {
    const named = [...read(file).matchAll(/console\/src(?:\/[\w.-]+)?|"console", "src", "\w+"/g)].map(([path]) => path.replaceAll('", "', "/").replaceAll('"', ""));
    assert.deepEqual(named.filter((path) => path !== "console/src/timeline"), [], file);
  }
});

test("the palette and the console have the same versions of Preact", () => {
  const [ours, console] = [read("package.json"), read("../console/package.json")].map((text) => JSON.parse(text).devDependencies);
  for (const name of ["preact", "@preact/signals"]) {
    assert.equal(ours[name], console[name], name);
  }
});

test("the bundle's packages are named with their licences", async () => {
  const names = new Set((await inputs()).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter((name) => name !== undefined));
  const notices = read("dist/editor/THIRD-PARTY.txt");
  assert.deepEqual([...names].sort(), ["@preact/signals", "@preact/signals-core", "preact"]);
  for (const name of names) {
    const { version } = JSON.parse(read(`node_modules/${name}/package.json`));
    assert.ok(notices.includes(`${name} ${version} (MIT)\n`), name);
  }
  assert.equal(notices.match(/Permission is hereby granted/g).length, names.size);
});
