// The pages against a sidecar of the test: sign-in, what a session offers, empty views, hostile data, the proof.

import { FakeSocket, Refusal, answerWith, requests, until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import { render } from "preact";
import { FEATURES, HOSTILE, RUN, STEPS, detail, events, offer, open, sidecar, summary, text } from "./console-page-kit.js";
import { readSession } from "../src/app.js";
import { parsePlace, place } from "../src/router.js";

test("without a session: sign-in, and the address stays", async (t) => {
  let isIn = false;
  answerWith((method, path, body) => {
    if (path === "/api/session") {
      return isIn ? offer() : new Refusal(401, "UNAUTHORIZED", "no session");
    }
    if (method === "POST" && path === "/sign-in") {
      isIn = (body as { token: string }).token === "right";
      return isIn ? offer() : new Refusal(401, "SIGN_IN_REFUSED", "The token is not valid.");
    }
    return path.startsWith("/api/runs") ? { runs: [] } : undefined;
  });
  const root = await open(t, "#/runs?status=failed");
  await until("the form", () => root.querySelector("input[type=password]") !== null);
  const type = async (token: string): Promise<void> => {
    const field = root.querySelector<HTMLInputElement>("input[type=password]");
    assert.ok(field);
    field.value = token;
    field.dispatchEvent(new window.Event("input", { bubbles: true }));
    await until("the button", () => root.querySelector<HTMLButtonElement>("button[type=submit]")?.disabled === false);
    root.querySelector("form")?.dispatchEvent(new window.Event("submit", { bubbles: true, cancelable: true }));
  };
  await type("wrong");
  await until("the refusal", () => text(root).includes("SIGN_IN_REFUSED"));
  await type("right");
  await until("the page", () => text(root).includes("No run matches the filter."));
  assert.equal(window.location.hash, "#/runs?status=failed");
});

test("a page that the session does not name is not in the menu and has no address", async (t) => {
  sidecar({ "GET /api/session": offer(FEATURES.filter((name) => name !== "tools")) });
  const root = await open(t, "#/tools");
  await until("unknown", () => text(root).includes("There is no such page."));
  assert.equal([...root.querySelectorAll("nav a")].some((link) => link.textContent === "Tools"), false);
  sidecar();
  await readSession();
  await until("there", () => text(root).includes("There are no tools yet."));
});

const EMPTY: Record<string, RegExp> = {
  "#/": /Nothing needs you.*There are no agents yet.*--flows FILE.*No runs yet/s,
  "#/runs": /No runs yet.*Ask an agent/s,
  "#/inbox": /No run waits for a person.*waits here for your answer/s,
  "#/flow": /There is no flow yet.*--flows FILE/s,
  "#/check": /Paste a flow/,
  "#/usage": /Nothing was used in this period.*No run failed/s,
  "#/models": /The flow has no model.*wire it to an agent/s,
  "#/tools": /There are no tools yet.*tools\.yaml/s,
  "#/knowledge": /There are no knowledge bases yet.*redflow kb add NAME PATH.*Add documents/s,
  "#/knowledge/manuals": /There is no knowledge base with this name.*redflow kb add NAME PATH.*Add documents/s,
  "#/settings": /No Node-RED is connected.*Tokens.*Configuration/s,
};

test("every page has one heading, and says what to do next when it is empty", async (t) => {
  for (const [fragment, expected] of Object.entries(EMPTY)) {
    sidecar();
    const root = await open(t, fragment);
    await until(`${fragment} shows ${expected.source}; it shows ${text(root)}`, () => expected.test(text(root)));
    assert.equal(root.querySelectorAll("h1").length, 1, fragment);
    for (const control of root.querySelectorAll("button, a, input, select, textarea")) {
      const name = control.getAttribute("aria-label") ?? control.closest("label")?.textContent ?? control.textContent ?? "";
      const label = control.id === "" ? "" : (root.querySelector(`label[for="${control.id}"]`)?.textContent ?? "");
      assert.notEqual((name + label).trim(), "", `${fragment}: ${control.outerHTML}`);
    }
    render(null, root);
    root.remove();
  }
});

test("a run: hostile names stay text; its words are folded; the replay proves it", async (t) => {
  sidecar({
    [`GET /api/runs/${RUN}`]: detail,
    [`GET /api/runs/${RUN}/iterations/1`]: { iteration: 1, prompt: { text: HOSTILE }, answer: { text: "the answer" }, confidence: 0.9, calls: [] },
    [`POST /api/runs/${RUN}/replay`]: { equal: true, complete: true, runId: RUN, facts: 3, effects: 2, outcome: { type: "completed" }, difference: null },
  });
  const root = await open(t, `#/runs/${RUN}`);
  await until("the step", () => text(root).includes("Show what was said"));
  assert.equal(root.querySelectorAll("img, script").length, 0);
  assert.match(text(root), /⟨202E⟩evil/);
  assert.equal(text(root).includes("the answer"), false);
  await until("what to try next", () => /Ask again.*Break a wire.*Use it in Node-RED/s.test(text(root)));
  assert.equal(root.querySelector<HTMLAnchorElement>('a[href="#/check?from=active"]')?.textContent, "Check");
  const press = (name: string): void => [...root.querySelectorAll<HTMLElement>("button")].find((button) => button.textContent?.trim() === name)?.click();
  press("Show what was said");
  await until("the answer", () => text(root).includes("the answer"));
  press("Replay");
  await until("the proof", () => text(root).includes("Proved equal: 3 facts, 2 effects."));
  assert.equal(FakeSocket.all.filter(({ isClosed }) => !isClosed).length, 1);
  assert.deepEqual(FakeSocket.all.at(-1)?.sent[0], { type: "subscribe", after: "0", runs: [RUN], deltas: true });
});

test("a running run is drawn as it goes on, with the text that the model writes", async (t) => {
  const { endedAt: _end, tally: _tally, ...open_ } = summary({ status: "running", name: "Slow" });
  const answers: Record<string, unknown> = {
    [`GET /api/runs/${RUN}`]: { summary: open_, events: events(STEPS.slice(0, 2)), calls: [], result: null },
    [`GET /api/runs/${RUN}/iterations/1`]: { iteration: 1, prompt: { text: "" }, calls: [] },
  };
  sidecar(answers);
  const root = await open(t, `#/runs/${RUN}`);
  await until("the call", () => text(root).includes("Calling the model"));
  const socket = FakeSocket.all.at(-1);
  socket?.deliver({ type: "delta", delta: { runId: RUN, iteration: 1, attempt: 1, text: "I am " } });
  socket?.deliver({ type: "delta", delta: { runId: RUN, iteration: 1, attempt: 1, text: "writing" } });
  const unfold = (): HTMLElement | undefined => [...root.querySelectorAll<HTMLElement>("button")].find((button) => button.textContent === "Show what was said");
  await until("the button", () => unfold() !== undefined);
  assert.ok(!text(root).includes("I am"), "the words are folded until someone asks");
  unfold()?.click();
  await until("the text", () => text(root).includes("I am writing"));
  const [, , answered, finished] = events(STEPS);
  socket?.deliver({ type: "event", cursor: "1", event: { kind: "run", event: answered } });
  await until("the answer", () => text(root).includes("Model gives its answer") && !text(root).includes("Calling the model"));
  answers[`GET /api/runs/${RUN}`] = detail;
  socket?.deliver({ type: "event", cursor: "2", event: { kind: "run", event: finished } });
  await until("the end", () => root.querySelector(".facts .status-completed") !== null);
});

test("a replay that differs shows the line between its neighbours", async (t) => {
  const difference = { line: 4, what: "effect", recorded: "digest aaa", replayed: "digest bbb", message: "The effect differs." };
  sidecar({
    [`GET /api/runs/${RUN}`]: detail,
    [`GET /api/runs/${RUN}/iterations/1`]: { iteration: 1, prompt: { text: "" }, calls: [] },
    [`POST /api/runs/${RUN}/replay`]: { equal: false, complete: true, runId: RUN, facts: 1, effects: 1, outcome: null, difference },
    [`GET /api/runs/${RUN}/journal`]: { from: 3, lines: ["line three", "line four", "line five"], total: 9, next: 6 },
  });
  const root = await open(t, `#/runs/${RUN}`);
  await until("the run", () => text(root).includes("Repeats every decision"));
  [...root.querySelectorAll<HTMLElement>("button")].find((button) => button.textContent === "Replay")?.click();
  await until("the lines", () => root.querySelectorAll(".difference li").length === 3);
  assert.equal(root.querySelector(".difference li[aria-current]")?.textContent?.trim(), "line four");
  assert.deepEqual([root.querySelector("del")?.textContent, root.querySelector("ins")?.textContent], ["aaa", "bbb"]);
  assert.ok(requests.includes(`GET /api/runs/${RUN}/journal?from=3&lines=3`));
});

test("a run that waits is answered in the inbox", async (t) => {
  const { endedAt: _end, tally: _tally, ...waits } = summary({ status: "waiting", name: "Buyer" });
  const call = { callId: "c1", tool: "pay", iteration: 1, askedAt: 2_000, input: { amount: 5 } };
  const answers: Record<string, unknown> = { "GET /api/runs": { runs: [{ ...waits, waiting: call }] }, [`POST /api/runs/${RUN}/resolve`]: waits };
  sidecar(answers);
  const root = await open(t, "#/inbox");
  await until("the question", () => text(root).includes("Did the call of pay happen?"));
  await until("the number in the menu", () => root.querySelector("nav .count")?.textContent?.startsWith("1") === true);
  root.querySelector<HTMLInputElement>("input[type=radio][value=notDone]")?.click();
  await until("the button", () => root.querySelector<HTMLButtonElement>("form button[type=submit]")?.disabled === false);
  answers["GET /api/runs"] = { runs: [] };
  root.querySelector("form.redflow-resolve")?.dispatchEvent(new window.Event("submit", { bubbles: true, cancelable: true }));
  await until("answered", () => text(root).includes("No run waits for a person."));
  assert.ok(requests.includes(`POST /api/runs/${RUN}/resolve`));
});

test("the list is live: a run that ends changes its row, and a run that begins is read", async (t) => {
  const rows = [summary({ status: "running", name: "First", endedAt: undefined as never, tally: undefined as never })].map(({ endedAt: _end, tally: _tally, ...rest }) => rest);
  sidecar({ "GET /api/runs": { runs: rows } });
  const root = await open(t, "#/runs");
  await until("the row", () => root.querySelector(".row .status-running") !== null);
  const socket = FakeSocket.all.at(-1);
  assert.deepEqual(socket?.sent[0]?.["types"], ["run_started", "waiting_for_outcome", "tool_returned", "run_finished"]);
  const [, , , finish] = events(STEPS);
  socket?.deliver({ type: "event", cursor: "1", event: { kind: "run", event: { ...finish, seq: 9 } } });
  await until("ended", () => root.querySelector(".status-completed") !== null);
  const reads = requests.filter((request) => request.startsWith("GET /api/runs?")).length;
  const [begin] = events(STEPS);
  socket?.deliver({ type: "event", cursor: "2", event: { kind: "run", event: { ...begin, runId: "other" } } });
  await until("read again", () => requests.filter((request) => request.startsWith("GET /api/runs?")).length > reads);
});

test("an unknown run says so, with how to fix it; old pages stay while the sidecar is offline", async (t) => {
  sidecar({ [`GET /api/runs/${RUN}`]: new Refusal(404, "RUN_UNKNOWN", "There is no such run.") });
  const root = await open(t, `#/runs/${RUN}`);
  await until("the problem", () => text(root).includes("RUN_UNKNOWN There is no such run."));
  assert.match(text(root), /How to fix it/);
  FakeSocket.all.at(-1)?.break();
  await until("offline", () => /Offline since/.test(text(root)));
});

test("what could not be read while the sidecar was offline is read when it is back", async (t) => {
  let isOffline = true;
  sidecar();
  const root = await open(t, "#/settings");
  await until("the page", () => text(root).includes("No Node-RED is connected."));
  answerWith((_, path) => (isOffline ? new Refusal(503, "STOPPING", "The sidecar stops.") : path === "/api/session" ? offer() : path.startsWith("/api/runs") ? { runs: [] } : path.startsWith("/api/stats") ? { from: "2026-01-01", to: "2026-01-01", by: "tool", keys: [], rows: [] } : { tools: [], generation: 1 }));
  place.value = parsePlace("#/tools");
  await until("the refusal", () => text(root).includes("STOPPING"));
  const reads = (): number => requests.filter((request) => request.includes("/api/stats")).length;
  FakeSocket.all.at(-1)?.break();
  await until("offline", () => /Offline since/.test(text(root)));
  const before = reads();
  isOffline = false;
  await until("read again", () => reads() > before && text(root).includes("There are no tools yet."));
});

test("a session that ends shows the sign-in", async (t) => {
  sidecar();
  const root = await open(t, "#/runs");
  await until("the page", () => text(root).includes("No runs yet."));
  FakeSocket.all.at(-1)?.deliver({ type: "closing", code: "UNAUTHORIZED", message: "The session has ended." });
  await until("sign-in", () => root.querySelector("input[type=password]") !== null);
});

test("a page without events also sees that the sidecar is offline and that the session ends", async (t) => {
  sidecar();
  const root = await open(t, "#/runs");
  await until("the list", () => text(root).includes("No runs yet."));
  place.value = parsePlace("#/models");
  await until("the models", () => text(root).includes("The flow has no model."));
  const connected = (): FakeSocket[] => FakeSocket.all.filter(({ isClosed, sent }) => !isClosed && sent.length > 0);
  await until("one socket", () => connected().length === 1);
  connected()[0]?.break();
  await until("offline", () => /Offline since/.test(text(root)));
  await until("back", () => connected().length === 1 && !/Offline since/.test(text(root)));
  connected()[0]?.deliver({ type: "closing", code: "UNAUTHORIZED", message: "The session has ended." });
  await until("sign-in", () => root.querySelector("input[type=password]") !== null);
  assert.equal(connected().length, 0);
});

test("what the scopes do not allow is off, and names the scope", async (t) => {
  sidecar({ "GET /api/session": offer(FEATURES, ["read"]) });
  const root = await open(t, "#/settings");
  await until("the page", () => text(root).includes("needs the scope admin"));
  assert.equal(requests.some((request) => request.includes("/api/tokens") || request.includes("/api/config")), false);
});

test("numbers that are not known are not zero: sums that cannot be read, and tools among the others", async (t) => {
  const refusal = new Refusal(500, "STORE_FULL", "The disk is full.");
  sidecar({ "GET /api/stats": refusal });
  const home = await open(t, "#/");
  await until("the failure", () => text(home).includes("The disk is full."));
  assert.equal(text(home).includes("Nothing was used"), false);
  render(null, home);
  const tool = { provider: "p", origin: "http", state: "ready", description: "", permissions: { network: "none", files: "none", process: false, secrets: [] } };
  const answers: Record<string, unknown> = { "GET /api/tools": { tools: ["often", "rare"].map((id) => ({ ...tool, id, name: id })), generation: 1 }, "GET /api/stats": refusal };
  sidecar(answers);
  const counts = (root: HTMLElement): (string | null)[] => [...root.querySelectorAll("tbody td.number")].map(({ textContent }) => textContent);
  const broken = await open(t, "#/tools");
  await until("the failure of the sums", () => text(broken).includes("The disk is full.") && counts(broken).length === 2);
  assert.deepEqual(counts(broken), ["", ""]);
  render(null, broken);
  const row = { day: "2026-01-01", runs: 0, failed: 1, calls: 3, inputTokens: 0, outputTokens: 0, cachedTokens: 0, ms: 1 };
  const stats = { from: "2026-01-01", to: "2026-01-02", by: "tool", keys: [{ key: "often" }, { key: "" }], rows: [{ ...row, key: 0 }, { ...row, key: 1 }] };
  sidecar({ ...answers, "GET /api/stats": stats });
  const root = await open(t, "#/tools");
  await until("the counts", () => /3.*1/.test(counts(root)[0] ?? ""));
  assert.equal(counts(root)[1], "others");
});

test("tools are read once for many events, and again after the end of a run", async (t) => {
  sidecar();
  const root = await open(t, "#/tools");
  await until("the page", () => text(root).includes("There are no tools yet."));
  const reads = (): number => requests.filter((request) => request === "GET /api/tools").length;
  const before = reads();
  const [finished] = events(STEPS).slice(-1);
  for (let turn = 1; turn <= 8; turn += 1) {
    FakeSocket.all.at(-1)?.deliver({ type: "event", cursor: String(turn), event: { kind: "run", event: finished } });
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await until("read again", () => reads() > before);
  assert.equal(reads(), before + 1);
});
