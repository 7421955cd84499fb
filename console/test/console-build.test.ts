// The files that the sidecar embeds: complete, small enough, equal byte for byte, and within the content security policy.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import type { WordFile } from "../src/words.js";
import { EN } from "../src/words/en.js";

const FOLDER = join(import.meta.dirname, "..");
const FILES = ["console.css", "console.js", "icon.svg", "index.html", "words.de.json", "words.es.json"];

test("two builds are equal byte for byte, with names without hashes", (t) => {
  const folders = [0, 1].map(() => mkdtempSync(join(tmpdir(), "redflow-console-")));
  t.after(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));
  for (const folder of folders) {
    execFileSync(process.execPath, [join(FOLDER, "scripts", "build.mjs"), folder], { stdio: "pipe" });
    assert.deepEqual(readdirSync(folder).toSorted(), FILES);
  }
  const [first = "", second = ""] = folders;
  for (const name of FILES) {
    assert.ok(readFileSync(join(first, name)).equals(readFileSync(join(second, name))), name);
  }
  const page = readFileSync(join(first, "index.html"), "utf8");
  assert.doesNotMatch(page, /<script>|<style|style=|\son\w+=|https?:\/\/|="\//);
  assert.deepEqual([...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, address]) => address), ["console/{digest}/icon.svg", "console/{digest}/console.css", "console/{digest}/console.js"]);
  // A file of words has no keys. Its texts stand in the order of the English ones in the script.
  for (const language of ["de", "es"]) {
    const { texts, phrases } = JSON.parse(readFileSync(join(first, `words.${language}.json`), "utf8")) as WordFile;
    const own = JSON.parse(readFileSync(join(FOLDER, "src", "words", `${language}.json`), "utf8")) as Record<string, string>;
    const keys = Object.keys(EN);
    assert.deepEqual(Object.fromEntries(keys.map((key, index) => [key, texts[index]]).filter(([key]) => !String(key).startsWith("timeline."))), own);
    assert.equal(texts.length, keys.length);
    assert.ok(Object.keys(phrases).length > 100 && Object.values(phrases).every((phrase) => phrase !== ""));
  }
  const script = readFileSync(join(first, "console.js"), "utf8");
  // Readable stack traces: our own functions keep their names, and lines are short.
  assert.match(script, /^function SignIn\(/m);
  // The notices are made of these lines.
  for (const name of ["preact", "@preact/signals", "@dagrejs/dagre", "diff"]) {
    assert.match(script, new RegExp(`^// node_modules/${name}/\\S+$`, "m"));
  }
  assert.ok(!script.includes(FOLDER), "no path of this machine");
});

test("an interrupted build leaves no result", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "redflow-console-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const result = join(folder, "dist");
  const build = spawn(process.execPath, [join(FOLDER, "scripts", "build.mjs"), result], { stdio: "ignore" });
  const ended = once(build, "exit");
  while (build.exitCode === null && !readdirSync(folder, { recursive: true, encoding: "utf8" }).some((name) => name.endsWith("console.js"))) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  build.kill("SIGKILL");
  await ended;
  // A build that was faster is complete.
  assert.deepEqual(existsSync(result) ? readdirSync(result).toSorted() : FILES, FILES);
});

test("no source makes markup of a text, or loads anything from elsewhere", () => {
  const sources = readdirSync(join(FOLDER, "src"), { recursive: true, encoding: "utf8" }).filter((name) => /\.(tsx?|css)$/.test(name));
  for (const name of sources) {
    const source = readFileSync(join(FOLDER, "src", name), "utf8");
    assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, name);
    assert.doesNotMatch(source, /https?:\/\/|url\(/, name);
  }
});
