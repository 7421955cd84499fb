// What the Node-RED flow library asks of a package, as its checker (node-red-dev) does, for every rule that can be judged
// without the network; and what must not be in the package. The rules have the checker's names.
//
// Not judged here: P08 and N01 compare names with the library's whole catalogue. N01 will be told of any other module
// with Redflow's types: the types are Redflow's, so that flows can be exchanged, and such a module stands aside.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { parse } from "acorn";

const module = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(join(module, path), "utf8");
const manifest = JSON.parse(read("package.json"));
const sets = Object.entries(manifest["node-red"].nodes);

/** The oldest Node.js of the newest Node-RED, and the lines of Node-RED that are maintained. */
const NODE = "22.9.0";
const LINES = ["4.1.0", "5.0.0"];

/** The checker's bound. */
const MOST_DEPENDENCIES = 6;

/** Bytes of a file, and of all of them as they are downloaded. */
const MOST_OF_A_FILE = 400_000;
const MOST_PACKED = 500_000;

const LANGUAGES = "(de|en-US|es)";
/** All that may be in the package. */
const FILES = [
  /^(LICENSE|README\.md|package\.json)$/,
  /^dist\/[a-z-]+(\/[a-z-]+)?\.js$/,
  /^dist\/nodes\/[a-z.-]+\.(js|html)$/,
  /^dist\/nodes\/icons\/redflow-[a-z-]+\.svg$/,
  /^dist\/editor\/redflow-editor\.html$/,
  new RegExp(`^dist/(editor|nodes)/locales/${LANGUAGES}/[a-z.-]+\\.(json|html)$`),
  /^examples\/\d\d-[a-z-]+\.json$/,
];

/** What `npm pack` would make, of what is built. */
function packed() {
  const { status, stdout, stderr } = spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: module,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  assert.equal(status, 0, stderr);
  const told = JSON.parse(stdout);
  // A list; of newer versions of npm an object by name.
  return Array.isArray(told) ? told[0] : Object.values(told)[0];
}

/** Whether a version is in a range, of the only form that is used here. */
function isFrom(range, version) {
  const oldest = /^>=(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(range);
  assert.ok(oldest, `${range} is not of the form >=1.2.3`);
  const [least, given] = [oldest.slice(1).map((part) => Number(part ?? 0)), version.split(".").map(Number)];
  const differs = least.findIndex((part, at) => part !== given[at]);
  return differs < 0 || given[differs] > least[differs];
}

/** The calls of `registerType` in a page, found as the checker finds them. */
function registered(page) {
  const scripts = [...page.matchAll(/<script.+?type=['"]text\/javascript['"].*?>([\S\s]*?)<\/script>/gi)];
  const calls = [];
  const visit = (part) => {
    if (Array.isArray(part)) {
      part.forEach(visit);
    } else if (part !== null && typeof part === "object") {
      if (part.type === "CallExpression" && part.callee.property?.name === "registerType") {
        calls.push(part.arguments);
      }
      Object.values(part).forEach(visit);
    }
  };
  scripts.forEach(([, script]) => visit(parse(script, { ecmaVersion: "latest" })));
  return calls;
}

function pageOf(file) {
  return read(file.replace(/\.js$/, ".html"));
}

test("P01: it has a licence, and carries its text", () => {
  assert.equal(manifest.license, "Apache-2.0");
  assert.equal(read("LICENSE"), read("../LICENSE"));
});

test("P03 waits: a release adds the repository's address, which no source invents", () => {
  for (const key of ["repository", "bugs", "homepage"]) {
    assert.equal(manifest[key], undefined, `${key} is set by cargo xtask package --repository`);
  }
});

test("P04: its name has a scope", () => {
  assert.match(manifest.name, /^@[a-z\d][\w-.]+\/[a-z\d][\w-.]*$/);
});

test("P05: the library finds it by its keyword", () => {
  assert.ok(manifest.keywords.includes("node-red"));
});

test("P06: it says with which Node-RED it works, and the maintained lines are among them", () => {
  LINES.forEach((line) => assert.ok(isFrom(manifest["node-red"].version, line), line));
  assert.ok(!isFrom(manifest["node-red"].version, "4.0.9"));
});

test("P07: it accepts the oldest Node.js of the newest Node-RED", () => {
  assert.ok(isFrom(manifest.engines.node, NODE));
});

test("N01: each set has one type, registered in a way that the library can read", () => {
  for (const [type, file] of sets) {
    const calls = registered(pageOf(file));
    assert.equal(calls.length, 1, type);
    const [name, definition] = calls[0];
    assert.equal(name.type, "Literal", type);
    assert.equal(name.value, type);
    assert.equal(definition.type, "ObjectExpression", type);
    const properties = Object.fromEntries(definition.properties.map((property) => [property.key.name, property.value]));
    for (const key of ["category", "color", "icon", "inputs", "outputs"]) {
      assert.ok(properties[key] === undefined || properties[key].type === "Literal", `${type}: ${key} is not inline`);
    }
    for (const key of ["defaults", "credentials"]) {
      assert.ok(properties[key] === undefined || properties[key].type === "ObjectExpression", `${type}: ${key} is not inline`);
    }
  }
});

test("N02: every node that is no configuration is in an example", () => {
  const used = new Set();
  for (const name of readdirSync(join(module, "examples"))) {
    JSON.parse(read(join("examples", name))).forEach((node) => used.add(node.type));
  }
  const palette = sets.filter(([, file]) => !/category: "config"/.test(pageOf(file))).map(([type]) => type);
  assert.ok(palette.length > 0 && palette.length < sets.length);
  assert.deepEqual(palette.filter((type) => !used.has(type)), []);
});

test("D01 and D03: few dependencies, each pinned", () => {
  const dependencies = Object.entries(manifest.dependencies);
  assert.ok(dependencies.length <= MOST_DEPENDENCIES);
  // Whether they are the newest of their kind, as D03 wants, is looked at when a release is made.
  dependencies.forEach(([name, version]) => assert.match(version, /^\d+\.\d+\.\d+$/, name));
});

test("nothing runs when it is installed", () => {
  const hooks = ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"];
  hooks.forEach((name) => assert.equal(manifest.scripts[name], undefined, name));
  // npm would run a build of its own for this file.
  assert.ok(!existsSync(join(module, "binding.gyp")));
});

test("no package is asked for that somebody else could publish", () => {
  // The packages with the program are named by the release that publishes them, not by the sources.
  assert.equal(manifest.optionalDependencies, undefined);
  assert.equal(manifest.peerDependencies, undefined);
});

test("the package holds what it needs and nothing else", (t) => {
  const { files, size, unpackedSize } = packed();
  t.diagnostic(`${files.length} files, ${size} bytes packed, ${unpackedSize} bytes unpacked`);
  const names = files.map((file) => file.path);
  assert.deepEqual(names.filter((name) => !FILES.some((pattern) => pattern.test(name))), []);
  const wanted = ["LICENSE", "README.md", "package.json", ...Object.values(manifest["node-red"].plugins)];
  wanted.push(...sets.flatMap(([, file]) => [file, file.replace(/\.js$/, ".html")]));
  assert.deepEqual(wanted.filter((name) => !names.includes(name)), []);
  for (const { path, size: bytes } of files) {
    assert.ok(bytes <= MOST_OF_A_FILE, `${path} has ${bytes} bytes`);
    assert.ok(!/sourceMappingURL|file:\/\/\//.test(read(path)), path);
  }
  assert.ok(size <= MOST_PACKED, `${size} bytes`);
  assert.ok(read("README.md").length > 1_000, "the library shows the README");
});
