// A tab with many agents.

import assert from "node:assert/strict";

import { agent, calculator, debug, desk, inject } from "./flows.mjs";

const AGENTS = 200;
const COLUMNS = 10;
/** One of this many agents has a debug node at its memory port. */
const WRONG_EVERY = 20;

export function manyAgents(fixture) {
  const [, runtime] = desk(fixture);
  const z = "many";
  const groups = Array.from({ length: AGENTS }, (_, index) => {
    const [x, y] = [120 + (index % COLUMNS) * 620, 100 + Math.floor(index / COLUMNS) * 180];
    const [ask, id, model, calc, memory, answer] = ["ask", "agent", "model", "calc", "memory", "answer"].map(
      (name) => `${name}-${index}`,
    );
    const third = index % WRONG_EVERY === 0 ? [answer] : [memory];
    return [
      inject(ask, id, z, x, y),
      agent(id, [[model], [calc], third, [answer], []], z, x + 160, y, {
        ...{ name: `Agent ${index}`, allowedTools: ["calculator"], sessionId: "one" },
      }),
      { id: model, type: "scripted-model", name: "", z, x: x + 350, y: y - 60, wires: [[]], replies: [{}], delayMs: 0 },
      calculator(calc, z, x + 350, y - 20),
      { id: memory, type: "buffer-memory", name: "", z, x: x + 350, y: y + 20, wires: [[]], maxMessages: 1000 },
      debug(answer, z, x + 350, y + 60),
    ];
  });
  return [{ id: z, type: "tab", label: "Many agents", disabled: false, info: "" }, runtime, ...groups.flat()];
}

/** The median time of some work in the page. */
const measure = (editor, work) =>
  editor.page.evaluate(`(async () => {
    const times = [];
    for (let round = 0; round < 7; round += 1) {
      const startedAt = performance.now();
      await (async () => { ${work} })();
      times.push(performance.now() - startedAt);
    }
    return Math.round(times.sort((one, other) => one - other)[3]);
  })()`);

export async function twoHundredAgents(fixture, t) {
  const editor = await fixture.deployAndOpen(t, manyAgents(fixture));
  await editor.waitForCheck("checked");
  const expected = Array.from({ length: AGENTS / WRONG_EVERY }, (_, index) => `agent-${index * WRONG_EVERY}`);
  await editor.until("the results are shown", (count) => document.querySelectorAll(".redflow-badge:not(.hide)").length === count, expected.length);
  assert.deepEqual((await editor.invalidNodes()).sort(), expected.sort());
  await editor.screenshot("many-agents");
  const flow = "const flow = RED.nodes.createCompleteNodeSet({ credentials: false });";
  const body = "JSON.stringify({ flows: flow })";
  const request = `await new Promise((done, failed) => $.ajax({ method: "POST", url: "redflow/runtimes/runtime/check", data: ${body}, contentType: "application/json" }).then(done, failed));`;
  const check = await measure(editor, flow + request);
  const redraw = await measure(editor, "RED.nodes.eachNode((node) => { node.dirty = true; }); RED.view.redraw(true, true); await 0;");
  t.diagnostic(`${AGENTS} agents on a tab: a check takes ${check} ms, a redraw of everything ${redraw} ms`);
  // The page still responds: draws, checks and undoes a wire.
  await editor.wire("agent-10", 2, "answer-10");
  await editor.triangle("agent-10").waitFor();
  await editor.undo();
  await editor.triangle("agent-10").waitFor({ state: "hidden" });
  assert.deepEqual((await editor.invalidNodes()).sort(), expected.sort());
}
