// Runs the compiled samples and `check-output`. `npm test` compiles them first.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";

import * as bindings from "@redflow/bindings";
import * as switches from "../dist-test/switches.test.js";
import * as samples from "../dist-test/types.test.js";

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");

function checkOutput(input, file = "-") {
  const script = fileURLToPath(new URL("../scripts/check-output.mjs", import.meta.url));
  return spawnSync(process.execPath, [script, file], { input, encoding: "utf8" });
}

test("the package exports its tables, its client and the timeline", () => {
  assert.deepEqual(Object.keys(bindings).sort(), [
    "BRIDGE_PROTOCOL",
    "BRIDGE_TAG",
    "CATALOGUE",
    "CONTRACT_VERSION",
    "CURSOR_START",
    "EDGE_TABLE",
    "EVENTS_PROTOCOL",
    "MAX_CALLS",
    "MAX_REMARKS",
    "MAX_ROW_CHARS",
    "MAX_SOURCES",
    "MAX_STEPS",
    "MAX_TEXT_CHARS",
    "RedflowClient",
    "RedflowError",
    "TOKEN_PROTOCOL_PREFIX",
    "activeCalls",
    "applyEvents",
    "confidences",
    "cutText",
    "emptyTimeline",
    "endOfText",
    "isWaiting",
    "showInvisible",
    "unansweredReason",
    "usedBy",
    "waitingCalls",
  ]);
  assert.ok(samples.rows > 10);
});

test("no type is bigint, because JSON has none", () => {
  assert.doesNotMatch(read("src/types.ts"), /\bbigint\b/);
});

test("no type is any", () => {
  assert.doesNotMatch(read("src/types.ts"), /[:<|] ?any\b/);
});

test("the samples survive a round trip through JSON", () => {
  const { envelope, output, failed, report, event, runs, requests, journal } = samples;
  const { starts, started, deploy, page, detail, apiErrors, eventsRequests, eventsMessages } = samples;
  const sent = [starts, started, deploy, page, detail, apiErrors, eventsRequests, eventsMessages];
  for (const sample of [envelope, output, failed, report, event, runs, requests, journal, ...sent]) {
    assert.deepEqual(JSON.parse(JSON.stringify(sample)), sample);
  }
});

test("the switches of the samples handle known values and throw for unknown ones", () => {
  assert.deepEqual(samples.runs.map(switches.describeRun), ["running", "mail", "JOURNAL_FAILED after 333 ms"]);
  const requests = ["by hand", "call-2 happened", "call-2 It did not happen."];
  assert.deepEqual(samples.requests.map(switches.describeRunRequest), requests);
  assert.equal(switches.sourceOf("JOURNAL_FAILED"), "machine");
  assert.equal(switches.subjectOf("RUN_BLOCKED"), "run");
  assert.equal(switches.isRepeatable("at_most_once"), false);
  assert.equal(switches.responsibleFor("REVISION_CONFLICT"), "flow");
  assert.deepEqual(samples.eventsRequests.map(switches.describeRequest), ["after now", "after 0", "1"]);
  assert.deepEqual(samples.eventsMessages.slice(2).map(switches.describeMessage), [
    "r2 with 1 agents",
    "all until log.2",
    "4",
    "1",
    "STOPPING: Come back.",
  ]);
  assert.equal(switches.codeOf(new bindings.RedflowError(samples.apiErrors[2])), "RUN_OVER");
  assert.equal(switches.codeOf(new Error("RUN_OVER")), null);
  // A newer runtime may send values that no type knows: each switch throws instead of ignoring them.
  const { sourceOf, subjectOf, isRepeatable, locationOf, responsibleFor, canWrite, nameOfSet } = switches;
  for (const unexpected of [sourceOf, subjectOf, isRepeatable, locationOf, responsibleFor, canWrite, nameOfSet]) {
    assert.throws(() => unexpected("OOPS"), /unexpected: OOPS/);
  }
  for (const unexpected of [switches.describeMessage, switches.describeRequest, switches.cursorOf, switches.describeState]) {
    assert.throws(() => unexpected({ type: "oops", state: "oops" }), /unexpected/);
  }
});

test("check-output accepts an AgentOutput", () => {
  for (const sample of [samples.output, samples.failed]) {
    const { status, stderr } = checkOutput(JSON.stringify(sample));
    assert.equal(status, 0, stderr);
  }
});

test("check-output rejects another shape and names the key", () => {
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

test("check-output rejects text that is not JSON and a missing file", () => {
  assert.match(checkOutput('{"payload": 1} {"payload": 2}').stderr, /not one JSON value/);
  assert.equal(checkOutput("").status, 1);
  assert.equal(checkOutput("", "no-such-file.json").status, 1);
});
