// A run with ten thousand events.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { desk, finalAnswer } from "./flows.mjs";

const EVENTS = 10_000;
/** The most elements of a timeline. */
const MAX_ELEMENTS = 8_000;

/** The events of a real run, with many further iterations in the middle. */
function multiply(real) {
  const [first, ...rest] = real;
  const end = rest.at(-1);
  const all = [first];
  for (let iteration = 1; all.length < EVENTS - 4; iteration += 1) {
    const tool = { tool: "calculator", callId: `call-${iteration}` };
    all.push(
      { ...first, event: { type: "model_called", iteration, preview: "What now?" } },
      { ...first, event: { type: "model_answered", iteration, action: "tool", tool: "calculator", confidence: (iteration % 10) / 10, durationMs: 5, preview: "y".repeat(1_000_000 / EVENTS) } },
      { ...first, event: { type: "tool_called", iteration, ...tool, preview: "1 + 1" } },
      { ...first, event: { type: "tool_returned", iteration, ...tool, success: true, durationMs: 1, preview: "2" } },
    );
  }
  return [...all, end].map((event, index) => ({ ...event, seq: index + 1 }));
}

export async function tenThousandEvents(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  fixture.model.setAnswers(finalAnswer("Done."));
  let sent = 0;
  await editor.page.route("**/redflow/runtimes/*/runs/*/events*", async (route) => {
    const response = await route.fetch();
    const events = await response.json();
    if (!Array.isArray(events) || events.length === 0 || sent > 0) {
      await route.fulfill({ response, json: events });
      return;
    }
    const all = multiply(events);
    sent = all.length;
    await route.fulfill({ response, json: all });
  });
  const newest = async () => (await fixture.sidecar.get("/api/runs?limit=1")).runs[0];
  const before = await newest();
  await editor.press("ask");
  await eventually("a run has ended", async () => {
    const run = await newest();
    return run && run.runId !== before?.runId && run.status === "completed";
  });
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  const panel = tray.getByRole("tabpanel");
  await editor.waitForText(panel, /Answered/);
  await editor.waitForText(panel, /not shown/i);
  assert.ok(sent >= EVENTS - 4, `${sent} events`);
  const elements = await panel.evaluate((one) => one.querySelectorAll("*").length);
  const startedAt = Date.now();
  await tray.getByRole("tab", { name: "General" }).click();
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  t.diagnostic(`${sent} events: ${elements} elements; two tabs later after ${Date.now() - startedAt} ms`);
  assert.ok(elements < MAX_ELEMENTS, `${elements} elements`);
  await editor.screenshot("many-events");
  await editor.cancel();
}
