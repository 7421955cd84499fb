// What only a running program can tell. Run by `npm test` after everything has compiled.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";

import * as bindings from "@redflow/bindings";
import { answer, line } from "../dist-test/readme.js";
import * as samples from "../dist-test/types.test.js";

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

function checkOutput(input, file = "-") {
  const script = fileURLToPath(new URL("../scripts/check-output.mjs", import.meta.url));
  return spawnSync(process.execPath, [script, file], { input, encoding: "utf8" });
}

test("the package exports its tables", () => {
  assert.deepEqual(Object.keys(bindings).sort(), ["CATALOGUE", "CONTRACT_VERSION", "EDGE_TABLE"]);
  assert.ok(samples.rows > 10);
});

test("numbers are numbers: JSON has no bigint", () => {
  assert.doesNotMatch(read("src/types.ts"), /\bbigint\b/);
});

test("no type is any", () => {
  assert.doesNotMatch(read("src/types.ts"), /[:<|] ?any\b/);
});

test("the samples are what JSON keeps of them", () => {
  const { envelope, output, failed, report, event, runs, requests, journal } = samples;
  for (const sample of [envelope, output, failed, report, event, runs, requests, journal]) {
    assert.deepEqual(JSON.parse(JSON.stringify(sample)), sample);
  }
});

test("the switches of the samples say what they should", () => {
  assert.deepEqual(samples.runs.map(samples.inList), ["running", "mail", "JOURNAL_FAILED after 333 ms"]);
  const asked = ["by hand", "call-2 happened", "call-2 It did not happen."];
  assert.deepEqual(samples.requests.map(samples.asked), asked);
  assert.equal(samples.blame("JOURNAL_FAILED"), "machine");
  assert.equal(samples.about("RUN_BLOCKED"), "run");
  assert.equal(samples.mayBeRepeated("at_most_once"), false);
  // A value no type knows, as a newer runtime may send it, is an error and no silence.
  for (const unexpected of [samples.blame, samples.about, samples.mayBeRepeated, samples.place]) {
    assert.throws(() => unexpected("OOPS"), /unexpected: OOPS/);
  }
});

test("the README shows the example that is compiled here", () => {
  assert.ok(read("README.md").includes("```ts\n" + read("test/readme.ts") + "```\n"));
  assert.equal(answer(samples.output), "42");
  assert.equal(answer(samples.failed), "TOOL_INPUT_INVALID: The tool input breaks the tool's schema.");
  assert.equal(line(samples.event), "run_started");
});

test("check-output takes what fits", () => {
  for (const sample of [samples.output, samples.failed]) {
    const { status, stderr } = checkOutput(JSON.stringify(sample));
    assert.equal(status, 0, stderr);
  }
});

test("check-output refuses what does not fit and says where", () => {
  const without = structuredClone(samples.output);
  delete without.agentResult.stopReason;
  const extra = structuredClone(samples.output);
  extra.envelope.thoughts = "hidden";
  const deep = structuredClone(samples.output);
  deep.envelope.tools.history[0].durationMs = "3";
  const code = structuredClone(samples.failed);
  code.error.code = "OOPS";
  for (const [sample, word] of [
    [without, /stopReason/],
    [extra, /thoughts/],
    [deep, /durationMs|string/],
    [code, /OOPS/],
    [[], /payload/],
  ]) {
    const { status, stderr } = checkOutput(JSON.stringify(sample));
    assert.equal(status, 1, stderr);
    assert.match(stderr, word);
  }
});

test("check-output refuses what is no JSON, or not there", () => {
  assert.match(checkOutput('{"payload": 1} {"payload": 2}').stderr, /not one JSON value/);
  assert.equal(checkOutput("").status, 1);
  assert.equal(checkOutput("", "no-such-file.json").status, 1);
});
