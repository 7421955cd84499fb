// A run with more events than any run has: the page stays a page.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { desk, says } from "./flows.mjs";

const EVENTS = 10_000;
/** Elements that one timeline may be made of. */
const ELEMENTS_MOST = 8_000;

/** What a real run said, with an iteration over and over in the middle. */
function many(real) {
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
  return [...all, end].map((event, place) => ({ ...event, seq: place + 1 }));
}

export async function tenThousand(stage, t) {
  const editor = await stage.with(t, desk(stage));
  stage.model.says(says("Done."));
  let sent = 0;
  await editor.page.route("**/redflow/runtimes/*/runs/*/events*", async (route) => {
    const answer = await route.fetch();
    const events = await answer.json();
    if (!Array.isArray(events) || events.length === 0 || sent > 0) {
      await route.fulfill({ response: answer, json: events });
      return;
    }
    const all = many(events);
    sent = all.length;
    await route.fulfill({ response: answer, json: all });
  });
  const newest = async () => (await stage.sidecar.ask("/api/runs?limit=1")).runs[0];
  const before = await newest();
  await editor.press("ask");
  await eventually("a run is over", async () => {
    const run = await newest();
    return run && run.runId !== before?.runId && run.status === "completed";
  });
  const tray = await editor.open("agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  const panel = tray.getByRole("tabpanel");
  await editor.reads(panel, /Answered/);
  await editor.reads(panel, /not shown/i);
  assert.ok(sent >= EVENTS - 4, `${sent} events`);
  const elements = await panel.evaluate((one) => one.querySelectorAll("*").length);
  const began = Date.now();
  await tray.getByRole("tab", { name: "General" }).click();
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  t.diagnostic(`${sent} events: ${elements} elements; two tabs later after ${Date.now() - began} ms`);
  assert.ok(elements < ELEMENTS_MOST, `${elements} elements`);
  await editor.picture("many-events");
  await editor.cancel();
}
