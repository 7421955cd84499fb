// What a run's events become, in whatever order and however often they come.

import assert from "node:assert/strict";
import test from "node:test";
import { MAX_REMARKS, MAX_STEPS, confidences, foldEvents, noEvents, underWay, waitingCall, whyUnanswered } from "../editor-build/editor/timeline.mjs";

const agent = { instance: "i", nodeId: "a" };
const numbered = (kinds) => kinds.map((event, place) => ({ runId: "r", seq: place + 1, at: 1_000 + place, agent, event }));
const fold = (...batches) => batches.reduce((timeline, batch) => foldEvents(timeline, batch), noEvents());
const shown = (timeline) => {
  const { seq, name, steps, stepsLeftOut, remarks, remarksLeftOut, last, end, debug, unknown } = timeline;
  const plain = steps.map(({ iteration, model, tool }) => ({ iteration, model, tool }));
  return { seq, name, steps: plain, stepsLeftOut, remarks, remarksLeftOut, last, end, debug, unknown };
};

const STORY = numbered([
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

test("a run as it happened", () => {
  const timeline = fold(STORY);
  assert.equal(timeline.seq, 9);
  assert.equal(timeline.name, "Desk");
  assert.equal(timeline.maxIterations, 5);
  assert.equal(timeline.debug, true);
  assert.deepEqual(confidences(timeline), [{ iteration: 1, confidence: 0.5 }, { iteration: 2, confidence: 0.9 }]);
  const [first, second] = timeline.steps;
  assert.deepEqual(first.model, {
    open: false, askedAt: 1_002, prompt: "How much?", answeredAt: 1_003, action: "tool", tool: "calculator",
    confidence: 0.5, durationMs: 12, preview: "{…}",
  });
  assert.deepEqual(first.tool, {
    open: false, tool: "calculator", callId: "c1", calledAt: 1_004, input: "1+1", returnedAt: 1_005, success: true,
    durationMs: 3, output: "2",
  });
  assert.equal(second.model.action, "final");
  assert.equal(second.tool, undefined);
  assert.deepEqual(timeline.last, { is: "answered", action: "final", at: 1_007, iteration: 2 });
  assert.equal(timeline.end.durationMs, 40);
  assert.equal(underWay(timeline), undefined);
});

test("twice, in pieces and in any order: the same", () => {
  const once = shown(fold(STORY));
  assert.deepEqual(shown(fold(STORY, STORY)), once);
  assert.deepEqual(shown(fold([...STORY].reverse())), once);
  assert.deepEqual(shown(fold(STORY.slice(4), STORY.slice(0, 4), STORY.slice(2, 6))), once);
  assert.deepEqual(shown(fold(...STORY.map((event) => [event]))), once);
});

test("what is missing is asked for again", () => {
  assert.equal(fold([STORY[0], STORY[1], STORY[3]]).seq, 2);
  assert.equal(fold([STORY[0], STORY[1], STORY[3]], [STORY[2]]).seq, 4);
});

test("what is under way, from the asking to the call", () => {
  const upTo = (count) => underWay(fold(STORY.slice(0, count)));
  assert.equal(upTo(2), undefined);
  assert.deepEqual(upTo(3), { iteration: 1, since: 1_002 });
  assert.equal(upTo(4), undefined);
  assert.deepEqual(upTo(5), { iteration: 1, since: 1_004, tool: "calculator" });
  assert.deepEqual(upTo(7), { iteration: 2, since: 1_006 });
});

test("a call of which nobody knows waits until somebody does", () => {
  const events = numbered([
    ...STORY.slice(0, 5).map(({ event }) => event),
    { type: "waiting_for_outcome", iteration: 1, tool: "calculator", callId: "c1", reason: "a crash" },
    { type: "tool_returned", iteration: 1, tool: "calculator", callId: "c1", success: false, error: "no", durationMs: 9 },
  ]);
  const waiting = fold(events.slice(0, 6));
  assert.deepEqual(waitingCall(waiting).waiting, { at: 1_005, reason: "a crash" });
  assert.equal(underWay(waiting), undefined, "nothing is at work while a person is asked");
  assert.equal(waiting.last.is, "waiting");
  for (const order of [events, [...events].reverse()]) {
    const answered = fold(order);
    assert.equal(waitingCall(answered), undefined);
    assert.equal(answered.steps[0].tool.error, "no");
    assert.equal(answered.steps[0].tool.byPerson, true, "it is a person's word, not the tool's");
    assert.deepEqual(answered.last, { is: "returned", tool: "calculator", success: false, at: 1_006, iteration: 1 });
  }
});

test("a model that did not answer is blamed only for its own answers", () => {
  const why = (code) => whyUnanswered({ ...STORY[8].event, error: code && { code, message: "" } });
  assert.deepEqual(["INVALID_JSON", "TOOL_INPUT_INVALID", "MODEL_TRUNCATED"].map(why), Array(3).fill("unanswered"));
  assert.equal(why("CANCELLED"), "cancelled");
  assert.deepEqual(["TIMEOUT", "MODEL_ERROR", "RATE_LIMIT", "OF_A_NEWER_SIDECAR", undefined].map(why), Array(5).fill("ended"));
});

test("kinds and values of a newer sidecar do no harm", () => {
  const timeline = fold(numbered([
    { type: "run_started", name: "Desk", maxIterations: 5, tools: [] },
    { type: "thought_about", iteration: 1 },
    { type: "model_called", iteration: "one" },
    { type: "model_called", iteration: 1 },
  ]));
  assert.equal(timeline.unknown, 1);
  assert.deepEqual(timeline.steps.map(({ iteration }) => iteration), [1]);
  assert.equal(timeline.debug, false);
});

test("texts end, and never in the middle of a character", () => {
  const preview = `${"x".repeat(1_999)}😀 and more`;
  const [step] = fold(numbered([{ type: "model_called", iteration: 1, preview }])).steps;
  assert.equal(step.model.prompt, `${"x".repeat(1_999)}…`);
});

test("10 000 events are bounded, and quick", () => {
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
  const began = performance.now();
  const timeline = fold(events);
  console.log(`${events.length} events folded at once: ${(performance.now() - began).toFixed(1)} ms`);
  assert.equal(timeline.steps.length, MAX_STEPS);
  assert.equal(timeline.steps[0].iteration, 2_500 - MAX_STEPS + 1);
  assert.equal(timeline.stepsLeftOut, 2_500 - MAX_STEPS);
  assert.equal(timeline.remarks.length, MAX_REMARKS);
  assert.equal(timeline.remarksLeftOut, 2_500 - MAX_REMARKS);
  assert.equal(timeline.seq, 10_000);
  const again = performance.now();
  const inPieces = noEvents();
  for (let from = 0; from < events.length; from += 100) {
    foldEvents(inPieces, events.slice(from, from + 100));
  }
  console.log(`in 100 pieces: ${(performance.now() - again).toFixed(1)} ms`);
  assert.deepEqual(shown(inPieces).steps, shown(timeline).steps);
  assert.equal(inPieces.stepsLeftOut, timeline.stepsLeftOut);
  foldEvents(inPieces, [{ ...events[0], seq: 10_001 }]);
  assert.equal(inPieces.steps.length, MAX_STEPS, "an iteration that was left out does not come back");
});

test("numbers with gaps do not grow without end", () => {
  const timeline = noEvents();
  for (let seq = 2; seq < 60_000; seq += 2) {
    foldEvents(timeline, [{ runId: "r", seq, at: 1, agent, event: { type: "memory_cleared" } }]);
  }
  assert.ok(timeline.seq > 30_000, "what is missing is given up");
});
