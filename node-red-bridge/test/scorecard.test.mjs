// The rules of the Node-RED flow library's checker (node-red-dev) that need no network, under the checker's names; and the
// files that must not be in the package.
//
// Not tested here: P08 and N01 compare names with the library's whole catalogue. N01 will report another module with Redflow's
// types. We use these types so that flows can be exchanged, and leave a type to a module that has registered it.

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

/** The oldest Node.js of the newest Node-RED, and the maintained major versions of Node-RED. */
const NODE = "22.9.0";
const LINES = ["4.1.0", "5.0.0"];

/** The checker's limit. */
const MAX_DEPENDENCIES = 6;

/** The most bytes of a file and of the tarball. */
const MAX_FILE_BYTES = 400_000;
const MAX_PACKED_BYTES = 500_000;

const LANGUAGES = "(de|en-US|es)";
/** The files that the package may contain. */
const FILES = [
  /^(LICENSE|README\.md|package\.json)$/,
  /^dist\/[a-z-]+(\/[a-z-]+)?\.js$/,
  /^dist\/nodes\/[a-z.-]+\.(js|html)$/,
  /^dist\/nodes\/icons\/redflow-[a-z-]+\.svg$/,
  /^dist\/editor\/(redflow-editor\.html|THIRD-PARTY\.txt)$/,
  new RegExp(`^dist/(editor|nodes)/locales/${LANGUAGES}/[a-z.-]+\\.(json|html)$`),
  /^examples\/\d\d-[a-z-]+\.json$/,
];

/** The tarball that `npm pack` would create from the build. */
function packedFiles() {
  const { status, stdout, stderr } = spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
    cwd: module,
    encoding: "utf8",
    shell: process.platform === "win32",
  });
  assert.equal(status, 0, stderr);
  const output = JSON.parse(stdout);
  // A list; newer versions of npm print an object by name.
  return Array.isArray(output) ? output[0] : Object.values(output)[0];
}

/** Whether a version is in a range of the form `>=1.2.3`. */
function satisfies(range, version) {
  const oldest = /^>=(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(range);
  assert.ok(oldest, `${range} is not of the form >=1.2.3`);
  const [minimum, given] = [oldest.slice(1).map((part) => Number(part ?? 0)), version.split(".").map(Number)];
  const differs = minimum.findIndex((part, at) => part !== given[at]);
  return differs < 0 || given[differs] > minimum[differs];
}

/** The calls of `registerType` in an html file, found as the checker finds them. */
function registrations(page) {
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

test("P01: has a license and contains its text", () => {
  assert.equal(manifest.license, "Apache-2.0");
  assert.equal(read("LICENSE"), read("../LICENSE"));
});

test("P03: the sources name no repository, because a release adds its address", () => {
  for (const key of ["repository", "bugs", "homepage"]) {
    assert.equal(manifest[key], undefined, `${key} is set by cargo xtask package --repository`);
  }
});

test("P04: the name has a scope", () => {
  assert.match(manifest.name, /^@[a-z\d][\w-.]+\/[a-z\d][\w-.]*$/);
});

test("P05: has the keyword of the library", () => {
  assert.ok(manifest.keywords.includes("node-red"));
});

test("P06: supports the maintained versions of Node-RED", () => {
  LINES.forEach((line) => assert.ok(satisfies(manifest["node-red"].version, line), line));
  assert.ok(!satisfies(manifest["node-red"].version, "4.0.9"));
});

test("P07: supports the oldest Node.js of the newest Node-RED", () => {
  assert.ok(satisfies(manifest.engines.node, NODE));
});

test("N01: each set registers one type in a form that the library can read", () => {
  for (const [type, file] of sets) {
    const calls = registrations(pageOf(file));
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

test("N02: every node except config nodes is in an example", () => {
  const used = new Set();
  for (const name of readdirSync(join(module, "examples"))) {
    JSON.parse(read(join("examples", name))).forEach((node) => used.add(node.type));
  }
  const palette = sets.filter(([, file]) => !/category: "config"/.test(pageOf(file))).map(([type]) => type);
  assert.ok(palette.length > 0 && palette.length < sets.length);
  assert.deepEqual(palette.filter((type) => !used.has(type)), []);
});

test("D01 and D03: has few dependencies, each pinned", () => {
  const dependencies = Object.entries(manifest.dependencies);
  assert.ok(dependencies.length <= MAX_DEPENDENCIES);
  // A release checks whether they are the newest versions, as D03 requires.
  dependencies.forEach(([name, version]) => assert.match(version, /^\d+\.\d+\.\d+$/, name));
});

// SECURITY: palette-install
test("nothing runs when it is installed", () => {
  const hooks = ["preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"];
  hooks.forEach((name) => assert.equal(manifest.scripts[name], undefined, name));
  // npm would run a build for this file.
  assert.ok(!existsSync(join(module, "binding.gyp")));
});

// SECURITY: palette-install
test("no package is asked for that somebody else could publish", () => {
  // The release names the packages with the program, not the sources.
  assert.equal(manifest.optionalDependencies, undefined);
  assert.equal(manifest.peerDependencies, undefined);
});

test("the package contains the needed files and no others", (t) => {
  const { files, size, unpackedSize } = packedFiles();
  t.diagnostic(`${files.length} files, ${size} bytes packed, ${unpackedSize} bytes unpacked`);
  const names = files.map((file) => file.path);
  assert.deepEqual(names.filter((name) => !FILES.some((pattern) => pattern.test(name))), []);
  const needed = ["LICENSE", "README.md", "package.json", "dist/editor/THIRD-PARTY.txt", ...Object.values(manifest["node-red"].plugins)];
  needed.push(...sets.flatMap(([, file]) => [file, file.replace(/\.js$/, ".html")]));
  assert.deepEqual(needed.filter((name) => !names.includes(name)), []);
  for (const { path, size: bytes } of files) {
    assert.ok(bytes <= MAX_FILE_BYTES, `${path} has ${bytes} bytes`);
    assert.ok(!/sourceMappingURL|file:\/\/\//.test(read(path)), path);
  }
  assert.ok(size <= MAX_PACKED_BYTES, `${size} bytes`);
  assert.ok(read("README.md").length > 1_000, "the library shows the README");
});
