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

test("the package exports its tables and its client", () => {
  assert.deepEqual(Object.keys(bindings).sort(), [
    "BRIDGE_PROTOCOL",
    "BRIDGE_TAG",
    "CATALOGUE",
    "CONTRACT_VERSION",
    "CURSOR_START",
    "EDGE_TABLE",
    "EVENTS_PROTOCOL",
    "RedflowClient",
    "RedflowError",
    "TOKEN_PROTOCOL_PREFIX",
  ]);
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
  const { starts, started, deploy, page, detail, refused, said, heard } = samples;
  const sent = [starts, started, deploy, page, detail, refused, said, heard];
  for (const sample of [envelope, output, failed, report, event, runs, requests, journal, ...sent]) {
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
  assert.equal(samples.whose("REVISION_CONFLICT"), "flow");
  assert.deepEqual(samples.said.map(samples.wish), ["after now", "after 0", "1"]);
  assert.deepEqual(samples.heard.slice(2).map(samples.tell), [
    "r2 with 1 agents",
    "all until log.2",
    "4",
    "1",
    "STOPPING: Come back.",
  ]);
  assert.equal(samples.caught(new bindings.RedflowError(samples.refused[2])), "RUN_OVER");
  assert.equal(samples.caught(new Error("RUN_OVER")), null);
  // A value no type knows, as a newer runtime may send it, is an error and no silence.
  const { blame, about, mayBeRepeated, place, whose, may, setOf } = samples;
  for (const unexpected of [blame, about, mayBeRepeated, place, whose, may, setOf]) {
    assert.throws(() => unexpected("OOPS"), /unexpected: OOPS/);
  }
  for (const unexpected of [samples.tell, samples.wish, samples.item, samples.stands]) {
    assert.throws(() => unexpected({ type: "oops", state: "oops" }), /unexpected/);
  }
});

test("the README shows the examples that are compiled here", () => {
  for (const example of ["test/readme.ts", "test/readme-client.ts"]) {
    assert.ok(read("README.md").includes("```ts\n" + read(example) + "```\n"), example);
  }
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
