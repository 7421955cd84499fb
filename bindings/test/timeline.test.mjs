// Builds the timeline of a run from its events, in any order and with repetitions.

import assert from "node:assert/strict";
import test from "node:test";
import { MAX_CALLS, MAX_REMARKS, MAX_ROW_CHARS, MAX_SOURCES, MAX_STEPS, confidences, applyEvents, emptyTimeline, endOfText, activeCalls, isWaiting, showInvisible, waitingCalls, unansweredReason, usedBy } from "@redflow/bindings";

const agent = { instance: "i", nodeId: "a" };
const numbered = (kinds) => kinds.map((event, index) => ({ runId: "r", seq: index + 1, at: 1_000 + index, agent, event }));
const build = (...batches) => batches.reduce((timeline, batch) => applyEvents(timeline, batch), emptyTimeline());
const publicPart = (timeline) => {
  const { seq, name, steps, stepsLeftOut, remarks, remarksLeftOut, last, end, answersUsed, debug, unknown } = timeline;
  const plain = steps.map(({ iteration, model, failedModels, tools }) => ({ iteration, model, failedModels, tools }));
  return { seq, name, steps: plain, stepsLeftOut, remarks, remarksLeftOut, last, end, answersUsed, debug, unknown };
};

const EVENTS = numbered([
  { type: "run_started", name: "Desk", maxIterations: 5, tools: ["calculator"] },
  { type: "memory_recalled", messages: 2 },
  { type: "model_called", iteration: 1, preview: "How much?" },
  { type: "model_answered", iteration: 1, action: "tool", tool: "calculator", confidence: 0.5, durationMs: 12, preview: "{…}" },
  { type: "tool_called", iteration: 1, tool: "calculator", callId: "c1", preview: "1+1" },
  { type: "tool_returned", iteration: 1, tool: "calculator", callId: "c1", success: true, durationMs: 3, preview: "2" },
  { type: "model_called", iteration: 2, preview: "2" },
  { type: "model_answered", iteration: 2, action: "final", confidence: 0.9, durationMs: 7, usage: { inputTokens: 1, outputTokens: 2 } },
  { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 2, durationMs: 40 },
]);

test("builds the steps of a run", () => {
  const timeline = build(EVENTS);
  assert.equal(timeline.seq, 9);
  assert.equal(timeline.name, "Desk");
  assert.equal(timeline.maxIterations, 5);
  assert.equal(timeline.debug, true);
  assert.deepEqual(confidences(timeline), [{ iteration: 1, confidence: 0.5 }, { iteration: 2, confidence: 0.9 }]);
  const [first, second] = timeline.steps;
  assert.deepEqual(first.model, {
    open: false, askedAt: 1_002, answeredAt: 1_003, action: "tool", tool: "calculator",
    confidence: 0.5, durationMs: 12,
  });
  assert.deepEqual(first.tools, [{
    open: false, tool: "calculator", callId: "c1", calledAt: 1_004, returnedAt: 1_005, success: true,
    durationMs: 3,
  }]);
  assert.equal(second.model.action, "final");
  assert.deepEqual(second.tools, []);
  assert.deepEqual(timeline.last, { is: "answered", action: "final", at: 1_007, iteration: 2 });
  assert.equal(timeline.end.durationMs, 40);
  assert.deepEqual(activeCalls(timeline), []);
});

test("a result and a memory keep their first sources, with the beginnings of their names", () => {
  const sources = Array.from({ length: 40 }, (_, n) => ({ kind: "knowledge", ref: `${n}${"x".repeat(300)}`, score: 0.5, trust: "external" }));
  const event = { type: "tool_returned", iteration: 1, tool: "search", callId: "c1", success: true, durationMs: 3, sources };
  const [shown] = build(numbered([event])).steps[0].tools;
  assert.equal(shown.sources.length, MAX_SOURCES);
  assert.deepEqual(shown.sources[1], { kind: "knowledge", ref: `1${"x".repeat(MAX_ROW_CHARS - 1)}…`, score: 0.5, trust: "external" });
  const [remark, without] = build(numbered([{ type: "memory_recalled", messages: 2, sources }, { type: "memory_recalled", messages: 1 }])).remarks;
  assert.deepEqual(remark.sources, shown.sources);
  assert.ok(!("sources" in without));
});

test("an answer has the fields that the provider refused", () => {
  const answered = (iteration, more) => ({ type: "model_answered", iteration, action: "final", durationMs: 7, ...more });
  const [first, second] = build(numbered([answered(1, { refused: ["temperature", "x".repeat(300)] }), answered(2)])).steps;
  assert.deepEqual(first.model.refused, ["temperature", `${"x".repeat(MAX_ROW_CHARS)}…`]);
  assert.ok(!("refused" in second.model));
});

test("images, summaries and a conclusion are remarks, and a summary counts for what is used", () => {
  const usage = { inputTokens: 10, outputTokens: 2, cachedTokens: 6 };
  const timeline = build(numbered([
    { type: "images_fetched", images: 2 },
    { type: "model_answered", iteration: 1, action: "final", durationMs: 7, usage },
    { type: "summarised", iteration: 2, messages: 8, usage },
    { type: "summarised", iteration: 3, messages: 4 },
    { type: "concluding", iteration: 4, reason: "tokens" },
  ]));
  assert.deepEqual(timeline.remarks, [
    { seq: 1, at: 1_000, is: "images_fetched", images: 2 },
    { seq: 3, at: 1_002, is: "summarised", messages: 8 },
    { seq: 4, at: 1_003, is: "summarised", messages: 4 },
    { seq: 5, at: 1_004, is: "concluding", reason: "tokens" },
  ]);
  assert.deepEqual(timeline.steps.map(({ iteration }) => iteration), [1]);
  assert.deepEqual(usedBy(timeline), { inputTokens: 20, outputTokens: 4, cachedTokens: 12, unpricedCalls: 2 });
  assert.equal(timeline.unknown, 0);
});

test("repetitions, batches and order do not change the timeline", () => {
  const once = publicPart(build(EVENTS));
  assert.deepEqual(publicPart(build(EVENTS, EVENTS)), once);
  assert.deepEqual(publicPart(build([...EVENTS].reverse())), once);
  assert.deepEqual(publicPart(build(EVENTS.slice(4), EVENTS.slice(0, 4), EVENTS.slice(2, 6))), once);
  assert.deepEqual(publicPart(build(...EVENTS.map((event) => [event]))), once);
});

test("seq stops before a missing event", () => {
  assert.equal(build([EVENTS[0], EVENTS[1], EVENTS[3]]).seq, 2);
  assert.equal(build([EVENTS[0], EVENTS[1], EVENTS[3]], [EVENTS[2]]).seq, 4);
});

test("finds the running call", () => {
  const upTo = (count) => activeCalls(build(EVENTS.slice(0, count)));
  assert.deepEqual(upTo(2), []);
  assert.deepEqual(upTo(3), [{ iteration: 1, since: 1_002 }]);
  assert.deepEqual(upTo(4), []);
  assert.deepEqual(upTo(5), [{ iteration: 1, since: 1_004, callId: "c1" }]);
  assert.deepEqual(upTo(7), [{ iteration: 2, since: 1_006 }]);
});

const called = (callId, tool = "look") => ({ type: "tool_called", iteration: 1, tool, callId });
const returned = (callId, more = {}) => ({ type: "tool_returned", iteration: 1, tool: "look", callId, success: true, durationMs: 3, ...more });
const unknown = (callId) => ({ type: "waiting_for_outcome", iteration: 1, tool: "look", callId, reason: "a crash" });

test("keeps each of several calls of one answer, in the order in which they began", () => {
  const events = numbered([
    { type: "model_called", iteration: 1 },
    { type: "model_answered", iteration: 1, action: "tool", tools: ["look", "mail", "look"], durationMs: 5 },
    ...[called("c1"), called("c2", "mail"), called("c3")],
    ...[returned("c3", { durationMs: 1 }), returned("c1", { success: false, error: "no" })],
  ]);
  for (const order of [events, [...events].reverse()]) {
    const { steps: [step], last } = build(order);
    assert.deepEqual(step.model.tools, ["look", "mail", "look"]);
    const shown = step.tools.map(({ callId, tool, open, success, durationMs }) => ({ callId, tool, open, success, durationMs }));
    assert.deepEqual(shown, [
      { callId: "c1", tool: "look", open: false, success: false, durationMs: 3 },
      { callId: "c2", tool: "mail", open: true, success: undefined, durationMs: undefined },
      { callId: "c3", tool: "look", open: false, success: true, durationMs: 1 },
    ]);
    assert.deepEqual(last, { is: "returned", tool: "look", callId: "c1", success: false, at: 1_006, iteration: 1 });
  }
  assert.deepEqual(activeCalls(build(events)).map(({ callId }) => callId), ["c2"]);
  assert.deepEqual(build(events.slice(0, 2)).last, { is: "answered", action: "tool", tools: ["look", "mail", "look"], at: 1_001, iteration: 1 });
});

test("waits only when nothing runs, with all questions", () => {
  const events = numbered([...["c1", "c2", "c3"].map((id) => called(id)), unknown("c1"), unknown("c3"), returned("c2"), returned("c1")]);
  const upTo = (count) => build(events.slice(0, count));
  assert.deepEqual([isWaiting(upTo(5)), waitingCalls(upTo(5)).length], [false, 2]);
  assert.deepEqual([isWaiting(upTo(6)), waitingCalls(upTo(6)).map(({ callId }) => callId)], [true, ["c1", "c3"]]);
  assert.deepEqual(waitingCalls(upTo(7)).map(({ callId }) => callId), ["c3"]);
});

test("limits the calls of one answer", () => {
  const ids = Array.from({ length: MAX_CALLS + 3 }, (_, index) => `c${index}`);
  const [step] = build(numbered([...ids.map((id) => called(id)), ...ids.map((id) => returned(id))])).steps;
  assert.deepEqual([step.tools.length, step.toolsLeftOut, step.tools.at(-1).open], [MAX_CALLS, 3, false]);
});

test("shows models that failed over, and the budget", () => {
  const events = numbered([
    { type: "model_called", iteration: 1 },
    { type: "model_fell_over", iteration: 1, model: "big", code: "RATE_LIMIT" },
    { type: "model_fell_over", iteration: 1, model: "middle", code: "TIMEOUT" },
    { type: "budget_low", budget: "tokens", limit: 100, spent: 81 },
    { type: "budget_reached", budget: "tokens", limit: 100, spent: 120 },
  ]);
  for (const order of [events, [...events].reverse()]) {
    const { steps: [step], remarks, last, unknown: unknownEvents } = build(order);
    assert.deepEqual(step.failedModels.map(({ model, code }) => [model, code]), [["big", "RATE_LIMIT"], ["middle", "TIMEOUT"]]);
    assert.deepEqual(remarks.map(({ is, budget, limit, spent }) => [is, budget, limit, spent]), [
      ["budget_low", "tokens", 100, 81],
      ["budget_reached", "tokens", 100, 120],
    ]);
    assert.deepEqual(last, { is: "failed_model", model: "middle", code: "TIMEOUT", at: 1_002, iteration: 1 });
    assert.equal(unknownEvents, 0);
  }
});

test("a call with an unknown outcome waits until it is reported", () => {
  const events = numbered([
    ...EVENTS.slice(0, 5).map(({ event }) => event),
    { type: "waiting_for_outcome", iteration: 1, tool: "calculator", callId: "c1", reason: "a crash" },
    { type: "tool_returned", iteration: 1, tool: "calculator", callId: "c1", success: false, error: "no", durationMs: 9 },
  ]);
  const waiting = build(events.slice(0, 6));
  assert.deepEqual(waitingCalls(waiting)[0].waiting, { at: 1_005, reason: "a crash" });
  assert.deepEqual(activeCalls(waiting), [], "no call runs while the run waits");
  assert.equal(waiting.last.is, "waiting");
  for (const order of [events, [...events].reverse()]) {
    const answered = build(order);
    assert.deepEqual(waitingCalls(answered), []);
    assert.equal(answered.steps[0].tools[0].error, "no");
    const [{ resolvedLater, waitedSince }] = answered.steps[0].tools;
    assert.deepEqual([resolvedLater, waitedSince], [true, 1_005]);
    assert.deepEqual(answered.last, { is: "returned", tool: "calculator", callId: "c1", success: false, at: 1_006, iteration: 1 });
  }
});

test("the reason for a missing answer", () => {
  const reason = (code) => unansweredReason({ ...EVENTS[8].event, error: code && { code, message: "" } });
  assert.deepEqual(["INVALID_JSON", "TOOL_INPUT_INVALID", "MODEL_TRUNCATED"].map(reason), Array(3).fill("unanswered"));
  assert.equal(reason("CANCELLED"), "cancelled");
  assert.deepEqual(["TIMEOUT", "MODEL_ERROR", "RATE_LIMIT", "OF_A_NEWER_SIDECAR", undefined].map(reason), Array(5).fill("ended"));
});

test("ignores event types and values of a newer sidecar", () => {
  const timeline = build(numbered([
    { type: "run_started", name: "Desk", maxIterations: 5, tools: [] },
    { type: "thought_about", iteration: 1 },
    { type: "model_called", iteration: "one" },
    { type: "model_called", iteration: 1 },
  ]));
  assert.equal(timeline.unknown, 1);
  assert.deepEqual(timeline.steps.map(({ iteration }) => iteration), [1]);
  assert.equal(timeline.debug, false);
});

test("cuts texts between two characters", () => {
  const error = `${"x".repeat(1_999)}😀 and more`;
  const [step] = build(numbered([{ type: "tool_returned", iteration: 1, tool: "t", callId: "c", success: false, error, code: "TOOL_TIMEOUT", durationMs: 1 }])).steps;
  assert.equal(step.tools[0].error, `${"x".repeat(1_999)}…`);
  assert.equal(step.tools[0].code, "TOOL_TIMEOUT");
  assert.deepEqual([endOfText("a😀b", 2), endOfText("a😀b", 3), endOfText("ab", 2)], ["b", "😀b", "ab"]);
});

test("shows invisible characters as their numbers", () => {
  assert.equal(showInvisible("a\u202Eb\u0000c\u00ADd\u{E0041}\r\n\t"), "a⟨202E⟩b⟨0000⟩c⟨00AD⟩d⟨E0041⟩\n\t");
  assert.equal(showInvisible("é 漢字 😀"), "é 漢字 😀");
});

test("adds up what the answers used, until the end tells what the run used", () => {
  const answered = (iteration, usage) => ({ type: "model_answered", iteration, action: "final", durationMs: 1, usage });
  const events = numbered([
    { type: "model_called", iteration: 1 },
    answered(1, { inputTokens: 5, outputTokens: 2, cost: 0.25 }),
    answered(2, { inputTokens: 7, outputTokens: 1, cost: 0.5, estimated: true }),
    answered(3, undefined),
  ]);
  assert.equal(usedBy(build(events.slice(0, 1))), undefined);
  const used = { inputTokens: 12, outputTokens: 3, cost: 0.75, estimated: true };
  assert.deepEqual(usedBy(build(events)), used);
  assert.deepEqual(usedBy(build(events, events)), used, "an event counts once");
  const tally = { iterations: 3, modelCalls: 3, toolCalls: 0, inputTokens: 20, outputTokens: 4, cachedTokens: 0 };
  const end = { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 3, durationMs: 1 };
  const ended = [...events, { ...events[0], seq: 5, event: { ...end, tally } }];
  assert.deepEqual(usedBy(build(ended)), tally, "also the answers that were refused");
  assert.deepEqual(usedBy(build([...events, { ...events[0], seq: 5, event: end }])), used, "an older sidecar gives no tally");
  const unpriced = numbered([{ type: "model_called", iteration: 1 }, answered(1, { inputTokens: 5, outputTokens: 2, cost: 0.25 }), answered(2, { inputTokens: 1, outputTokens: 1 })]);
  assert.deepEqual(usedBy(build(unpriced)), { inputTokens: 6, outputTokens: 3, cost: 0.25, unpricedCalls: 1 }, "an unknown cost is not 0");
});

test("limits what it keeps of 10 000 events", () => {
  const kinds = [];
  for (let iteration = 1; iteration <= 2_500; iteration += 1) {
    const call = { iteration, tool: "t", callId: `c${iteration}` };
    kinds.push(
      { type: "model_called", iteration, preview: "p".repeat(200) },
      { type: "model_answered", iteration, action: "tool", tool: "t", confidence: 0.5, durationMs: 1 },
      { type: "tool_called", ...call },
      { type: "memory_recalled", messages: iteration },
    );
  }
  const events = numbered(kinds);
  const startedAt = performance.now();
  const timeline = build(events);
  console.log(`${events.length} events at once: ${(performance.now() - startedAt).toFixed(1)} ms`);
  assert.equal(timeline.steps.length, MAX_STEPS);
  assert.equal(timeline.steps[0].iteration, 2_500 - MAX_STEPS + 1);
  assert.equal(timeline.stepsLeftOut, 2_500 - MAX_STEPS);
  assert.equal(timeline.remarks.length, MAX_REMARKS);
  assert.equal(timeline.remarksLeftOut, 2_500 - MAX_REMARKS);
  assert.equal(timeline.seq, 10_000);
  const again = performance.now();
  const inBatches = emptyTimeline();
  for (let from = 0; from < events.length; from += 100) {
    applyEvents(inBatches, events.slice(from, from + 100));
  }
  console.log(`in 100 batches: ${(performance.now() - again).toFixed(1)} ms`);
  assert.deepEqual(publicPart(inBatches).steps, publicPart(timeline).steps);
  assert.equal(inBatches.stepsLeftOut, timeline.stepsLeftOut);
  applyEvents(inBatches, [{ ...events[0], seq: 10_001 }]);
  assert.equal(inBatches.steps.length, MAX_STEPS, "a dropped iteration does not return");
});

test("gives up missing events", () => {
  const timeline = emptyTimeline();
  for (let seq = 2; seq < 60_000; seq += 2) {
    applyEvents(timeline, [{ runId: "r", seq, at: 1, agent, event: { type: "memory_cleared" } }]);
  }
  assert.ok(timeline.seq > 30_000, "seq advances over gaps");
});
