// Many agents on one tab.

import assert from "node:assert/strict";

import { agent, calculator, debug, desk, inject } from "./flows.mjs";

const AGENTS = 200;
const COLUMNS = 10;
/** Every so many agents, one has its messages where a memory belongs. */
const WRONG_EACH = 20;

export function crowd(stage) {
  const [, runtime] = desk(stage);
  const z = "crowd";
  const groups = Array.from({ length: AGENTS }, (_, index) => {
    const [x, y] = [120 + (index % COLUMNS) * 620, 100 + Math.floor(index / COLUMNS) * 180];
    const [ask, id, model, calc, memory, answer] = ["ask", "agent", "model", "calc", "memory", "answer"].map(
      (name) => `${name}-${index}`,
    );
    const third = index % WRONG_EACH === 0 ? [answer] : [memory];
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
  return [{ id: z, type: "tab", label: "Crowd", disabled: false, info: "" }, runtime, ...groups.flat()];
}

/** How long something takes in the page, in the middle of several times. */
const timed = (editor, work) =>
  editor.page.evaluate(async (work) => {
    const times = [];
    for (let round = 0; round < 7; round += 1) {
      const began = performance.now();
      await new Function(`return (async () => { ${work} })()`)();
      times.push(performance.now() - began);
    }
    return Math.round(times.sort((one, other) => one - other)[3]);
  }, work);

export async function twoHundredAgents(stage, t) {
  const editor = await stage.with(t, crowd(stage));
  await editor.checked();
  const wanted = Array.from({ length: AGENTS / WRONG_EACH }, (_, index) => `agent-${index * WRONG_EACH}`);
  await editor.until("the verdicts are there", (count) => document.querySelectorAll(".redflow-badge:not(.hide)").length === count, wanted.length);
  assert.deepEqual((await editor.invalid()).sort(), wanted.sort());
  await editor.picture("crowd");
  const flow = "const flow = RED.nodes.createCompleteNodeSet({ credentials: false });";
  const body = "JSON.stringify({ flows: flow })";
  const ask = `await new Promise((done, failed) => $.ajax({ method: "POST", url: "redflow/runtimes/runtime/check", data: ${body}, contentType: "application/json" }).then(done, failed));`;
  const check = await timed(editor, flow + ask);
  const redraw = await timed(editor, "RED.nodes.eachNode((node) => { node.dirty = true; }); RED.view.redraw(true, true); await 0;");
  t.diagnostic(`${AGENTS} agents on a tab: a check takes ${check} ms, a redraw of everything ${redraw} ms`);
  // The page answers: a wire is drawn, judged and taken back.
  await editor.wire("agent-10", 2, "answer-10");
  await editor.triangle("agent-10").waitFor();
  await editor.undo();
  await editor.triangle("agent-10").waitFor({ state: "hidden" });
  assert.deepEqual((await editor.invalid()).sort(), wanted.sort());
}
