// The console on a page of the test: its sidecar, a run, and an address that is opened.

import { FakeSocket, answerWith } from "./console-kit.js";
import assert from "node:assert/strict";
import { render } from "preact";
import type { Feature, RunEventKind, RunSummary, Scope } from "@redflow/bindings";
import { isUpdated, readFailure, readSession, session, toasts, waiting } from "../src/app.js";
import { parsePlace, place, startRouter } from "../src/router.js";
import { Shell } from "../src/shell.js";

export const FEATURES: Feature[] = ["home", "runs", "inbox", "flow", "check", "usage", "models", "tools", "mcp", "knowledge", "memory", "settings"];
export const HOSTILE = '<img src=x onerror="alert(1)">\u202Eevil';
export const RUN = "019b76da-a800-7000-8000-000000000001";

export const offer = (features: Feature[] = FEATURES, scopes: Scope[] = ["read", "run", "deploy", "admin"]) => ({ name: "main", scopes, features, version: "9.9.9" });
export const summary = (more: Partial<RunSummary> = {}): RunSummary => ({
  runId: RUN,
  agent: { instance: "local", nodeId: "agent" },
  name: HOSTILE,
  status: "completed",
  startedAt: 1_000,
  endedAt: 3_000,
  delivered: true,
  tally: { iterations: 1, modelCalls: 1, toolCalls: 1, inputTokens: 10, outputTokens: 5, cachedTokens: 0, cost: 0.25 },
  ...more,
});
export const events = (kinds: RunEventKind[]) => kinds.map((event, index) => ({ runId: RUN, seq: index + 1, at: 1_000 + index * 500, agent: summary().agent, event }));
export const STEPS: RunEventKind[] = [
  { type: "run_started", name: HOSTILE, maxIterations: 5, tools: ["t"] },
  { type: "model_called", iteration: 1 },
  { type: "model_answered", iteration: 1, action: "final", confidence: 0.9, durationMs: 400 },
  { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 1, durationMs: 1_500 },
];
export const detail = { summary: summary(), events: events(STEPS), calls: [], result: { payload: HOSTILE }, refusedAnswer: undefined };

/** An empty sidecar. `more` answers first, by a value or by a function of the body, the query and the headers. */
export const sidecar = (more: Record<string, unknown> = {}) =>
  answerWith((method, path, body, headers) => {
    const [route = "", query = ""] = path.split("?");
    const key = `${method} ${route}`;
    if (key in more) {
      const answer = more[key];
      return typeof answer === "function" ? answer(body, new URLSearchParams(query), headers) : answer;
    }
    const empty: Record<string, unknown> = {
      "GET /api/session": offer(),
      "GET /api/runs": { runs: [] },
      "GET /api/flows": { revision: "r", flows: [] },
      "GET /api/instances": { instances: [] },
      "GET /api/stats": { from: "2026-01-01", to: "2026-01-02", by: "agent", keys: [], rows: [] },
      "GET /api/flows/graph": { tabs: [], nodes: [], wires: [], diagnostics: [], omitted: 0, omittedParts: 0 },
      "GET /api/models": { models: [], omitted: 0 },
      "GET /api/tools": { tools: [], generation: 1 },
      "GET /api/mcp": { servers: [] },
      "GET /api/kb": { knowledgeBases: [] },
      "GET /api/memory": { memories: [] },
      "GET /api/tokens": { tokens: [{ name: "main", scopes: ["admin"], isOwn: true }] },
      "GET /api/config": { settings: [{ key: "listen", value: HOSTILE, isSet: true }] },
    };
    return empty[key];
  });

/** What the sidecar says of itself to each socket. */
export const greeting = { version: "9.9.9" };

/** Opens the console at an address, and greets its sockets. */
export async function open(t: { after: (act: () => void) => void }, fragment: string): Promise<HTMLElement> {
  const root = document.body.appendChild(document.createElement("div"));
  FakeSocket.all.length = 0;
  window.location.hash = fragment;
  startRouter(window);
  place.value = parsePlace(fragment);
  readFailure.value = undefined;
  const greeter = setInterval(() => {
    for (const socket of FakeSocket.all) {
      if (socket.sent.length === 0 && !socket.isClosed) {
        socket.deliver({ type: "hello", ...greeting, cursor: "0" });
      }
    }
  }, 5);
  t.after(() => {
    clearInterval(greeter);
    render(null, root);
    root.remove();
    session.value = undefined;
    toasts.value = [];
    waiting.value.value = undefined;
    isUpdated.value = false;
    greeting.version = "9.9.9";
  });
  render(<Shell />, root);
  await readSession();
  return root;
}

export const text = (root: HTMLElement): string => root.textContent ?? "";

/** The first element of a selector. */
export function find<T extends HTMLElement>(root: HTMLElement, selector: string): T {
  const found = root.querySelector<T>(selector);
  assert.ok(found, selector);
  return found;
}

/** The button with a text. */
export function button(root: HTMLElement, name: string): HTMLButtonElement {
  const found = [...root.querySelectorAll("button")].find(({ textContent }) => textContent === name);
  assert.ok(found, name);
  return found;
}

/** Types into a field, or chooses a value. */
export function type(field: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement, value: string): void {
  field.value = value;
  field.dispatchEvent(new window.Event(field.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
}

export const submit = (form: HTMLElement): boolean => form.dispatchEvent(new window.Event("submit", { bubbles: true, cancelable: true }));

/** Waits until a change is drawn. */
export const drawn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
