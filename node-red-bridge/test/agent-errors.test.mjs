// The errors of an agent: order, groups and limits; their explanations.

import assert from "node:assert/strict";
import test from "node:test";
import { MAX_GROUPS, MAX_RUNS_NAMED, countOf, errorsOf, waitingRun } from "../editor-build/editor/agent-errors.mjs";
import { RequestCache } from "../editor-build/editor/explanations.mjs";
import { parseBlocks } from "../editor-build/editor/help-markdown.mjs";

const run = (runId, code, endedAt, status = "failed") => ({ runId, code, endedAt, startedAt: endedAt - 5, status });
const problem = (code, severity, id = "agent", more = {}) => ({
  ...{ code, severity, message: "m", help: "h", node: { id, type: "t", name: "" }, port: null, target: null, pointer: null },
  ...more,
});
const codes = (groups) => groups.map(({ code, count }) => [code, count]);

test("lists current errors, then current warnings, then past errors, newest first", () => {
  const now = [problem("SESSION_SHARED", "warning"), problem("MODEL_MISSING", "error"), problem("NEEDS_NODE_RED", "info")];
  const runs = [run("r2", "INVALID_JSON", 20), run("r1", "TIMEOUT", 10), run("r0", undefined, 5, "completed")];
  const groups = errorsOf(now, runs, [{ at: 15, code: "QUEUE_FULL", message: "full" }], "agent");
  assert.deepEqual(codes(groups), [["MODEL_MISSING", 1], ["SESSION_SHARED", 1], ["INVALID_JSON", 1], ["QUEUE_FULL", 1], ["TIMEOUT", 1]]);
  assert.deepEqual(groups.map(({ at }) => at), [undefined, undefined, 20, 15, 10]);
  assert.deepEqual(groups[2].runs, [{ id: "r2", at: 20 }]);
  assert.equal(groups[3].message, "full");
  // Warnings do not count.
  assert.equal(countOf(groups), 4);
});

test("lists a service that fails now as a current warning", () => {
  const lasting = { code: "MEMORY_ERROR", message: "Redis cannot be reached" };
  const groups = errorsOf([problem("MODEL_MISSING", "error")], [run("r", "TIMEOUT", 10)], [lasting, { ...lasting, at: 20 }], "agent");
  assert.deepEqual(groups.map(({ code, severity, at }) => [code, severity, at]), [
    ["MODEL_MISSING", "error", undefined],
    ["MEMORY_ERROR", "warning", undefined],
    ["MEMORY_ERROR", "error", 20],
    ["TIMEOUT", "error", 10],
  ]);
});

test("does not name a node twice", () => {
  const [group] = errorsOf([problem("MODEL_KEY_MISSING", "error", "m", { message: "`gpt` has no key", node: { id: "m", name: "gpt" } })], [], [], "agent");
  assert.equal(group.about, undefined);
});

test("names the node of a service's problem and lists a repeated problem once", () => {
  const twice = problem("CONFIG_INVALID", "error", "model", { pointer: "/seed" });
  const groups = errorsOf([twice, twice, problem("MODEL_MULTIPLE", "error")], [], [], "agent");
  assert.deepEqual(groups.map(({ code, about }) => [code, about]), [["CONFIG_INVALID", "t"], ["MODEL_MULTIPLE", undefined]]);
});

test("only the notice about a waiting run names the run", () => {
  const notice = (code, message) => errorsOf([], [], [{ at: 1, code, message }], "agent").map(waitingRun)[0];
  const message = "run 01ABC waits until somebody says what came of `pay` (a crash): `redflow runs resolve 01ABC --done`";
  assert.equal(notice("TOOL_OUTCOME_UNKNOWN", message), "01ABC");
  assert.equal(notice("QUEUE_FULL", message), undefined);
  assert.equal(notice("TOOL_OUTCOME_UNKNOWN", `run ${"x".repeat(201)} waits until`), undefined);
  // A run that has ended needs no answer.
  assert.equal(waitingRun(errorsOf([], [run("r1", "TOOL_OUTCOME_UNKNOWN", 10)], [], "agent")[0]), undefined);
});

test("groups equal errors in a row and keeps the key when the group grows", () => {
  const runs = Array.from({ length: 20 }, (_, index) => run(`r${index}`, "INVALID_JSON", 100 - index));
  const [group, ...none] = errorsOf([], runs, [], "agent");
  assert.equal(group.count, 20);
  assert.equal(group.at, 100);
  assert.equal(group.runs.length, MAX_RUNS_NAMED);
  assert.equal(group.runs[0].id, "r0");
  assert.deepEqual(none, []);
  const [more] = errorsOf([], [run("new", "INVALID_JSON", 101), ...runs], [], "agent");
  assert.equal(more.key, group.key);
  assert.equal(more.count, 21);
  const separate = errorsOf([], runs.slice(0, 2), [{ at: 99.5, code: "INVALID_JSON", message: "not a run" }], "agent");
  assert.deepEqual(codes(separate), [["INVALID_JSON", 1], ["INVALID_JSON", 1], ["INVALID_JSON", 1]]);
});

test("limits the number of groups", () => {
  const errors = Array.from({ length: 500 }, (_, at) => ({ at, code: `C${at}`, message: "" }));
  assert.equal(errorsOf([], [], errors, "agent").length, MAX_GROUPS);
});

test("caches responses up to a limit and repeats a failed request", async () => {
  const requested = [];
  let fails = true;
  const cache = new RequestCache(async (_, id) => {
    requested.push(id);
    if (id === "bad" && fails) {
      throw new Error("offline");
    }
    return id;
  }, 2);
  for (const id of ["a", "a", "b", "c", "b", "a"]) {
    assert.equal(await cache.get("runtime", id), id);
  }
  assert.deepEqual(requested, ["a", "b", "c", "a"]);
  await assert.rejects(cache.get("runtime", "bad"));
  fails = false;
  assert.equal(await cache.get("runtime", "bad"), "bad");
  await cache.get("another", "bad");
  assert.deepEqual(requested.slice(4), ["bad", "bad", "bad"]);
});

test("parses the Markdown of a page into blocks and keeps other text", () => {
  const page = "First\nline.\n\n1. One\n   goes on.\n2. Two\n\n- dot\n\n```json\n{\"a\": 1}\n\n  b\n```\nAfter <b>it</b>.";
  assert.deepEqual(parseBlocks(page), [
    { is: "text", text: "First line." },
    { is: "list", ordered: true, items: ["One goes on.", "Two"] },
    { is: "list", ordered: false, items: ["dot"] },
    { is: "code", text: '{"a": 1}\n\n  b' },
    { is: "text", text: "After <b>it</b>." },
  ]);
  assert.deepEqual(parseBlocks("```\nnever ends"), [{ is: "code", text: "never ends" }]);
  assert.deepEqual(parseBlocks(""), []);
});
