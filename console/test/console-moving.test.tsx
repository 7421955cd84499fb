// Data that moves under an open page: answers that come late, events while a page is read, filters, child runs, the menu.

import { FakeSocket, Refusal, requests, until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import type { RunEventKind, RunSummary } from "@redflow/bindings";
import { RUN, STEPS, detail, events, greeting, offer, open, sidecar, summary, text } from "./console-page-kit.js";
import { parsePlace, place } from "../src/router.js";

const OTHER = "019b76da-a800-7000-8000-000000000002";
const started: RunEventKind = { type: "run_started", name: "A", maxIterations: 5, tools: [] };
const finished: RunEventKind = { type: "run_finished", completed: true, stopReason: "final_answer", iterations: 1, durationMs: 9 };
const waits: RunEventKind = { type: "waiting_for_outcome", iteration: 1, tool: "pay", callId: "c", reason: "cut" };

const running = (runId: string, name: string, more: Partial<RunSummary> = {}): RunSummary => {
  const { endedAt: _end, tally: _tally, ...open_ } = summary({ runId, name, status: "running" });
  return { ...open_, ...more };
};
let cursor = 0;
/** Sends an event over the socket that is open. */
function send(runId: string, event: RunEventKind): void {
  const socket = FakeSocket.all.findLast(({ isClosed, sent }) => !isClosed && sent.length > 0);
  assert.ok(socket);
  cursor += 1;
  socket.deliver({ type: "event", cursor: String(cursor), event: { kind: "run", event: { runId, seq: cursor, at: 5_000, agent: summary().agent, event } } });
}
/** An answer that comes when the test says so. */
function later<T>(): { answer: Promise<T>; give: (value: T) => void } {
  let give: (value: T) => void = () => undefined;
  const answer = new Promise<T>((resolve) => (give = resolve));
  return { answer, give };
}
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const reads = (path: string): number => requests.filter((request) => request === `GET ${path}`).length;
const statuses = (root: HTMLElement): string[] => [...root.querySelectorAll(".rows-body .badge")].map((badge) => badge.textContent ?? "");

test("another run never shows what was asked for the one before", async (t) => {
  const late = later<unknown>();
  const answers: Record<string, unknown> = {
    [`GET /api/runs/${RUN}`]: { summary: running(RUN, "First"), events: events(STEPS.slice(0, 2)), calls: [], result: null },
    [`GET /api/runs/${OTHER}`]: { summary: running(OTHER, "Second"), events: [], calls: [], result: null },
    [`GET /api/runs/${RUN}/iterations/1`]: { iteration: 1, prompt: { text: "" }, calls: [] },
  };
  sidecar(answers);
  const root = await open(t, `#/runs/${RUN}`);
  await until("the first run", () => root.querySelector("h1")?.textContent === "First");
  answers[`GET /api/runs/${RUN}`] = late.answer;
  send(RUN, { type: "tool_returned", iteration: 1, tool: "t", callId: "c", success: true, durationMs: 1 });
  await until("it is read again", () => reads(`/api/runs/${RUN}`) === 2);
  place.value = parsePlace(`#/runs/${OTHER}`);
  await until("the second run", () => root.querySelector("h1")?.textContent === "Second");
  late.give(detail);
  await pause(50);
  assert.equal(root.querySelector("h1")?.textContent, "Second");
  assert.equal(root.querySelector(".facts .status-running") !== null, true);
  assert.equal(root.querySelectorAll('[role="treeitem"]').length, 1, "no step of the first run");
});

test("an event that comes while the list is read is not lost to an older answer", async (t) => {
  const late = later<unknown>();
  const answers: Record<string, unknown> = { "GET /api/runs": { runs: [running(RUN, "First")] } };
  sidecar(answers);
  const root = await open(t, "#/runs");
  await until("the row", () => statuses(root).length === 1);
  const before = reads("/api/runs?limit=100");
  answers["GET /api/runs"] = late.answer;
  send(OTHER, started);
  await until("read again", () => reads("/api/runs?limit=100") > before);
  send(RUN, finished);
  await pause(400);
  late.give({ runs: [running(OTHER, "Second"), running(RUN, "First")] });
  await until("the first run has ended", () => root.querySelectorAll(".rows-body .status-completed").length === 1);
  assert.equal(statuses(root).length, 2);
});

test("an answer for another filter is not shown", async (t) => {
  const late = later<unknown>();
  let isLate = false;
  const answers: Record<string, unknown> = {
    get "GET /api/runs"() {
      return isLate ? late.answer : { runs: [running(RUN, "First")], next: RUN };
    },
  };
  sidecar(answers);
  const root = await open(t, "#/runs");
  await until("the row", () => statuses(root).length > 0);
  isLate = true;
  place.value = parsePlace("#/runs?agent=none");
  await until("the filter is asked", () => requests.some((request) => request.includes("agent=none")));
  isLate = false;
  place.value = parsePlace("#/runs?agent=agent");
  await until("the row of the other filter", () => statuses(root).length === 1);
  late.give({ runs: [] });
  await pause(50);
  assert.equal(statuses(root).length, 1);
});

test("events before the first answer leave the list unread", async (t) => {
  sidecar({ "GET /api/runs": new Refusal(500, "INTERNAL", "The store fails.") });
  const root = await open(t, "#/runs");
  await until("the failure", () => text(root).includes("The store fails."));
  send(RUN, finished);
  await pause(400);
  assert.equal(text(root).includes("No runs yet"), false);
  place.value = parsePlace("#/check");
  await until("the next page, without the failure of the page before", () => text(root).includes("Paste a flow") && !text(root).includes("The store fails."));
});

test("rows wait while the reader points at one; then the list is read anew, without a hole", async (t) => {
  const page = (from: number, count: number) => Array.from({ length: count }, (_, index) => summary({ runId: `r${String(from - index).padStart(6, "0")}`, name: `Run ${from - index}`, startedAt: from - index }));
  const answers: Record<string, unknown> = { "GET /api/runs": { runs: page(100, 100), next: "r000001" } };
  sidecar(answers);
  const root = await open(t, "#/runs");
  await until("the rows", () => text(root).includes("Shown: 100."));
  const table = root.querySelector(".rows");
  table?.dispatchEvent(new window.Event("pointerenter"));
  answers["GET /api/runs"] = { runs: [...page(102, 102), ...page(0, 50)], next: "r000000" };
  send("r000102", started);
  await until("the number of new rows", () => text(root).includes("2 new"));
  answers["GET /api/runs"] = { runs: page(500, 200), next: "r000301" };
  send("r000500", started);
  await until("the number of new rows is bounded", () => text(root).includes("200+ new"));
  assert.equal(root.querySelector(".row-link")?.textContent, "Run 100");
  answers["GET /api/runs"] = { runs: page(500, 100), next: "r000401" };
  table?.dispatchEvent(new window.Event("pointerleave"));
  await until("the new rows", () => root.querySelector(".row-link")?.textContent === "Run 500");
  assert.ok(text(root).includes("Shown: 100."), "rows that do not follow on the page are gone");
});

test("a filtered list gains and loses rows", async (t) => {
  const answers: Record<string, unknown> = { "GET /api/runs": { runs: [running(RUN, "First", { status: "waiting" })] } };
  sidecar(answers);
  const root = await open(t, "#/runs?status=waiting");
  await until("the row", () => statuses(root).length === 1);
  answers["GET /api/runs"] = { runs: [] };
  send(RUN, { type: "tool_returned", iteration: 1, tool: "pay", callId: "c", success: true, durationMs: 1 });
  await until("the row leaves", () => text(root).includes("No run matches the filter."));
  answers["GET /api/runs"] = { runs: [running(OTHER, "Second", { status: "waiting" })] };
  send(OTHER, waits);
  await until("a row joins", () => statuses(root).length === 1);
});

test("a child run that ends is drawn so while its parent goes on, and has a link", async (t) => {
  const child = running(OTHER, "Child", { parent: RUN });
  sidecar({
    [`GET /api/runs/${RUN}`]: { summary: running(RUN, "Parent", { children: 1 }), events: events(STEPS.slice(0, 2)), calls: [], result: null },
    [`GET /api/runs/${RUN}/tree`]: { runs: [{ run: child, depth: 1 }] },
    [`GET /api/runs/${RUN}/iterations/1`]: { iteration: 1, prompt: { text: "" }, calls: [] },
  });
  const root = await open(t, `#/runs/${RUN}`);
  await until("the child", () => text(root).includes("Run of Child: running"));
  assert.equal(root.querySelector('[role="treeitem"] a')?.getAttribute("href"), `#/runs/${OTHER}`);
  await until("its events are followed", () => FakeSocket.all.some(({ isClosed, sent }) => !isClosed && JSON.stringify(sent[0]?.["runs"]) === JSON.stringify([RUN, OTHER])));
  await until("the page is read for them", () => reads(`/api/runs/${RUN}`) === 2);
  send(OTHER, finished);
  await until("the child has ended", () => text(root).includes("Run of Child: answered"));
  assert.ok(root.querySelector(".facts .status-running"), "the parent goes on");
  assert.equal(reads(`/api/runs/${RUN}`), 2);
});

test("the children of a row follow their events", async (t) => {
  sidecar({
    "GET /api/runs": { runs: [running(RUN, "Parent", { children: 1 })] },
    [`GET /api/runs/${RUN}/tree`]: { runs: [{ run: running(OTHER, "Child", { parent: RUN }), depth: 1 }] },
  });
  const root = await open(t, "#/runs");
  await until("the row", () => statuses(root).length === 1);
  root.querySelector<HTMLElement>(".rows-body button[aria-expanded]")?.click();
  await until("the child", () => statuses(root).length === 2);
  send(OTHER, finished);
  await until("it has ended", () => root.querySelectorAll(".rows-body .status-completed").length === 1);
});

test("the menu counts the runs that wait, on every page", async (t) => {
  const answers: Record<string, unknown> = { "GET /api/runs": { runs: [] } };
  sidecar(answers);
  const root = await open(t, "#/check");
  await until("the page", () => text(root).includes("Paste a flow") && requests.some((request) => request.includes("status=waiting")));
  const count = (): string => root.querySelector("nav .count")?.textContent?.split(" ")[0] ?? "";
  assert.equal(count(), "");
  answers["GET /api/runs"] = { runs: [running(RUN, "First", { status: "waiting" })] };
  send(RUN, waits);
  await until("one waits", () => count() === "1");
  answers["GET /api/runs"] = { runs: [running(RUN, "First"), running(OTHER, "Second")], next: OTHER };
  send(OTHER, waits);
  await until("more wait than are counted", () => count() === "2+");
  answers["GET /api/runs"] = { runs: [] };
  send(RUN, finished);
  await until("none waits", () => count() === "");
});

test("the session is read again at each hello, and another version says so", async (t) => {
  const answers: Record<string, unknown> = { "GET /api/session": offer() };
  sidecar(answers);
  const root = await open(t, "#/runs");
  await until("the page", () => text(root).includes("No runs yet."));
  assert.equal(text(root).includes("The sidecar was updated."), false);
  answers["GET /api/session"] = { ...offer(["home", "runs"], ["read"]), version: "10.0.0" };
  greeting.version = "10.0.0";
  FakeSocket.all.at(-1)?.break();
  await until("the remark", () => text(root).includes("The sidecar was updated. Reload the page."));
  await until("the new session", () => text(root).includes("Redflow 10.0.0") && ![...root.querySelectorAll("nav a")].some((link) => link.textContent === "Usage"));
});
