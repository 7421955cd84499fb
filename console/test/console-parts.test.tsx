// The shared parts: rows in sight, texts of strangers, actions and problems.

import { Refusal, answerWith, draw, until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import { type Diagnostic, RedflowError, type RunSummary, showInvisible } from "@redflow/bindings";
import { type ComponentChild, render } from "preact";
import { letters, live, say, session, shade, toasts } from "../src/app.js";
import { isHelpOpen, pressKey } from "../src/shortcuts.js";
import { AskAgain } from "../src/pages/run/actions.js";
import { Plot } from "../src/drawing/plot.js";
import { csvField, csvOf, daysBetween, seriesOf, unpricedCallsOf } from "../src/pages/usage/sums.js";
import { AskBox, readPayload } from "../src/parts/ask.js";
import { Act, Dialog } from "../src/parts/controls.js";
import { Diagnostics } from "../src/parts/diagnostics.js";
import { Coded, Problem } from "../src/parts/problem.js";
import { ROW_HEIGHT, Rows, rowsInSight } from "../src/parts/rows.js";
import { Toasts } from "../src/shell.js";
import { MAX_NAME, MAX_TEXT, Name, Quote, showText } from "../src/parts/text.js";

const HOSTILE = `<img src=x onerror="alert(1)"><script>alert(2)</script>\u202Egnp.exe\u0000 [click](javascript:alert(3)) https://evil.test`;

test("only the rows in sight are drawn, however many there are", (t) => {
  assert.deepEqual(rowsInSight(10_000, 0, 440), { from: 0, to: 18 });
  assert.deepEqual(rowsInSight(10_000, 5_000 * ROW_HEIGHT, 440), { from: 4_992, to: 5_018 });
  assert.deepEqual(rowsInSight(3, 0, 440), { from: 0, to: 3 });
  assert.deepEqual(rowsInSight(3, 1e9, 440), { from: 3, to: 3 });
  assert.deepEqual(rowsInSight(0, -50, 0), { from: 0, to: 0 });
  const rows = Array.from({ length: 10_000 }, (_, index) => String(index));
  const root = draw(t, <Rows class="x" label="Numbers" rows={rows} keyOf={(row) => row} columns={[{ name: "n", title: "N", view: (row) => row }]} />);
  assert.ok(root.querySelectorAll("*").length < 200);
  assert.equal(root.querySelector("[role=table]")?.getAttribute("aria-rowcount"), "10001");
  assert.equal(root.querySelector<HTMLElement>(".rows-body")?.style.height, `${10_000 * ROW_HEIGHT}px`);
});

test("texts of strangers stay text: no element, no link, no invisible mark", (t) => {
  const root = draw(
    t,
    <>
      <Name text={HOSTILE} />
      <Quote text={HOSTILE} label="Answer" />
    </>,
  );
  assert.equal(root.querySelectorAll("img, script, a, iframe").length, 0);
  assert.equal(root.querySelectorAll("bdi").length, 2);
  assert.match(root.textContent ?? "", /<img src=x onerror="alert\(1\)">/);
  assert.match(root.textContent ?? "", /⟨202E⟩gnp\.exe⟨0000⟩/);
  assert.equal(showInvisible("a\r\n\tb\u200bc\u061c"), "a\n\tb⟨200B⟩c⟨061C⟩");
  const marks = ["\u00ad", "\u034f", "\u2028", "\u3164", "\u{e0041}", "\ufeff"];
  assert.deepEqual(marks.map(showInvisible), ["⟨00AD⟩", "⟨034F⟩", "⟨2028⟩", "⟨3164⟩", "⟨E0041⟩", "⟨FEFF⟩"]);
  assert.equal(showInvisible("é 漢字 😀 ﷽ 1\u202f000"), "é 漢字 😀 ﷽ 1\u202f000");
});

/** Marks that may stand nowhere in the page as they are. */
const RAW_MARKS = /[\u202e\u{e0041}]/u;
const SPOOF = "pay\u202e001\u{e0041}";

test("no place shows a mark of direction as it is: fallbacks, messages, options, titles, labels and toasts", async (t) => {
  t.after(() => (toasts.value = []));
  const diagnostic = { code: "X", severity: "error", message: SPOOF, help: SPOOF, node: { id: SPOOF, type: "t", name: "" } } as unknown as Diagnostic;
  const places: Record<string, ComponentChild> = {
    fallback: <Name text="" fallback={SPOOF} />,
    problem: <Problem error={new RedflowError({ code: "INTERNAL", message: SPOOF })} />,
    coded: <Coded code="X" message={SPOOF} help={SPOOF} />,
    diagnostics: <Diagnostics diagnostics={[diagnostic]} />,
    label: <AskBox node="n" name={SPOOF} />,
    title: <Plot label="Cost" days={["2026-03-01"]} series={[{ name: SPOOF, values: new Map([["2026-03-01", 2]]), total: 2 }]} format={String} formatExactly={String} />,
  };
  for (const [name, place] of Object.entries(places)) {
    const root = draw(t, place);
    assert.doesNotMatch(root.outerHTML, RAW_MARKS, name);
    assert.match(root.textContent ?? "", /pay⟨202E⟩001⟨E0041⟩/, name);
  }
  const long = draw(t, <Name text="" fallback={"x".repeat(500)} />);
  assert.equal(long.textContent?.length, MAX_NAME + 1);
  say(SPOOF);
  const toast = draw(t, <Toasts />);
  assert.equal(toast.textContent, "pay⟨202E⟩001⟨E0041⟩");
});

test("a long text is shown part by part, and read whole on demand", async (t) => {
  assert.deepEqual([showText("a😀b", 2), showText("a😀b", 3), showText("abc", 3)], ["a…", "a😀…", "abc"]);
  let asked = 0;
  const root = draw(t, <Quote text={{ text: `${"x".repeat(MAX_TEXT - 1)}😀end`, bytes: 4_194_304 }} label="Answer" onFull={() => (asked += 1)} />);
  // No character is cut in two.
  assert.equal(root.querySelector("pre")?.textContent, "x".repeat(MAX_TEXT - 1));
  assert.match(root.textContent ?? "", /Characters 1 to 19,999 of 20,004\./);
  assert.match(root.textContent ?? "", /The whole text has 4\.2 MB/);
  const [, before, next, last, full] = root.querySelectorAll("button");
  next?.click();
  await until("the next part", () => root.querySelector("pre")?.textContent === "😀end");
  assert.ok(next?.disabled && last?.disabled);
  before?.click();
  await until("the first part", () => root.querySelector("pre")?.textContent === "x".repeat(MAX_TEXT - 1));
  full?.click();
  assert.equal(asked, 1);
});

test("the shade hides all words", async (t) => {
  t.after(() => (shade.value = false));
  const root = draw(t, <Quote text="a secret plan" label="Answer" />);
  shade.value = true;
  await until("hidden", () => !(root.textContent ?? "").includes("secret"));
  assert.match(root.textContent ?? "", /Hidden/);
});

test("an action names the scope that the session lacks, and is off while the sidecar is offline", async (t) => {
  t.after(() => {
    session.value = undefined;
    live.state.value = { kind: "connecting" };
  });
  session.value = { name: "n", scopes: ["read"], features: [], version: "1" };
  const root = draw(t, <Act scope="run">Cancel</Act>);
  const button = (): HTMLButtonElement | null => root.querySelector("button");
  assert.ok(button()?.disabled);
  assert.match(root.textContent ?? "", /needs the scope run/);
  session.value = { name: "n", scopes: ["read", "run"], features: [], version: "1" };
  await until("allowed", () => button()?.disabled === false);
  live.state.value = { kind: "offline", since: 1, nextTryAt: 2, error: new RedflowError({ code: "SIDECAR_UNREACHABLE", message: "x" }) };
  await until("off", () => button()?.disabled === true);
});

test("a problem has its code, its sentence, and how to fix it", async (t) => {
  answerWith((_, path) => (path === "/api/codes/RUN_UNKNOWN" ? { code: "RUN_UNKNOWN", set: "store", summary: "s", mend: "Run `redflow runs`.\n\nThen look." } : undefined));
  const root = draw(t, <Problem error={new RedflowError({ code: "RUN_UNKNOWN", message: "There is no such run." })} />);
  assert.match(root.querySelector("[role=alert]")?.textContent ?? "", /RUN_UNKNOWN There is no such run\./);
  const details = root.querySelector("details");
  assert.ok(details);
  details.open = true;
  details.dispatchEvent(new window.Event("toggle"));
  await until("the advice", () => root.querySelector(".advice code")?.textContent === "redflow runs");
  assert.equal(root.querySelectorAll(".advice p").length, 2);
  answerWith(() => new Refusal(500, "INTERNAL", "no"));
});

test("a dialog takes the focus and gives it back", async (t) => {
  const opener = document.body.appendChild(document.createElement("button"));
  t.after(() => opener.remove());
  opener.focus();
  let closed = 0;
  const root = draw(t, <Dialog title="Sure?" onClose={() => (closed += 1)}>text</Dialog>);
  await until("open", () => root.querySelector("dialog")?.open === true);
  root.querySelector<HTMLElement>("dialog button")?.click();
  assert.equal(closed, 1);
  render(null, root);
  assert.equal(document.activeElement, opener);
});

test("shortcuts: help, shade and entries; letters can be switched off, and mean nothing in a field", (t) => {
  t.after(() => {
    letters.value = true;
    shade.value = false;
    isHelpOpen.value = false;
  });
  const root = draw(
    t,
    <main>
      <input aria-label="Filter" data-filter="" />
      <a href="#/a" data-entry="">a</a>
      <a href="#/b" data-entry="">b</a>
    </main>,
  );
  const [first, second] = root.querySelectorAll("a");
  const press = (key: string, target: Element = document.body): boolean => {
    let isUsed = false;
    const listen = (event: Event): void => void (isUsed = pressKey(event as KeyboardEvent, document));
    target.addEventListener("keydown", listen);
    target.dispatchEvent(new window.KeyboardEvent("keydown", { key, bubbles: true }));
    target.removeEventListener("keydown", listen);
    return isUsed;
  };
  assert.ok(press("j") && document.activeElement === first);
  assert.ok(press("j") && document.activeElement === second);
  assert.ok(press("k") && document.activeElement === first);
  assert.ok(press("/") && document.activeElement?.tagName === "INPUT");
  const field = root.querySelector("input");
  assert.ok(field);
  assert.equal(press("h", field), false);
  assert.ok(press("Escape", field) && document.activeElement !== field);
  assert.ok(press("h") && shade.value);
  assert.ok(press("g") && press("r"));
  assert.ok(press("?") && isHelpOpen.value);
  letters.value = false;
  assert.deepEqual([press("j"), press("?"), press("h")], [false, false, false]);
});

test("a payload is JSON if it is an object or a list, else text", () => {
  assert.deepEqual(readPayload('{"a": 1}'), { a: 1 });
  assert.deepEqual(readPayload("[1]"), [1]);
  assert.deepEqual([readPayload("42"), readPayload("{no json"), readPayload("6 * 7?")], ["42", "{no json", "6 * 7?"]);
});

test("ask again sends the same payload, hides it under the shade, and asks no agent of a Node-RED", async (t) => {
  t.after(() => {
    session.value = undefined;
    shade.value = false;
  });
  session.value = { name: "n", scopes: ["read", "run"], features: [], version: "1" };
  const summary = (instance: string) => ({ runId: "r", name: "A", agent: { instance, nodeId: "n" } }) as unknown as RunSummary;
  const asked: unknown[] = [];
  const again = async (payload: unknown, change?: string): Promise<HTMLElement> => {
    const line = JSON.stringify({ record: { fact: { message: { payload } } } });
    answerWith((method, _path, body) => (method === "POST" ? (asked.push((body as { payload: unknown }).payload), { runs: [] }) : { from: 3, lines: [line], total: 9 }));
    const root = draw(t, <AskAgain summary={summary("local")} onClose={() => undefined} />);
    await until("the box", () => root.querySelector("form") !== null);
    const area = root.querySelector("textarea");
    if (change !== undefined && area !== null) {
      area.value = change;
      area.dispatchEvent(new window.Event("input", { bubbles: true }));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const count = asked.length;
    root.querySelector("form")?.dispatchEvent(new window.Event("submit", { bubbles: true, cancelable: true }));
    await until("asked", () => asked.length > count);
    return root;
  };
  for (const payload of [42, true, "42", '{"a":1}', { a: [1] }]) {
    await again(payload);
  }
  await again(42, "43");
  assert.deepEqual(asked, [42, true, "42", '{"a":1}', { a: [1] }, "43"]);
  shade.value = true;
  const hidden = await again("a secret plan");
  assert.equal(asked.at(-1), "a secret plan");
  assert.equal(hidden.querySelector("textarea"), null);
  assert.match(hidden.textContent ?? "", /Hidden/);
  const other = draw(t, <AskAgain summary={summary("hall")} onClose={() => undefined} />);
  assert.match(other.textContent ?? "", /gets its messages in Node-RED/);
  assert.equal(other.querySelector("form"), null);
});

test("sums: every day, cached tokens apart, and a CSV file without formulas", () => {
  assert.deepEqual(daysBetween("2026-02-27", "2026-03-02"), ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]);
  assert.equal(daysBetween("2000-01-01", "2026-01-01").length, 400);
  assert.deepEqual(daysBetween("x", "y"), []);
  const row = { day: "2026-03-01", key: 0, runs: 2, failed: 1, calls: 3, inputTokens: 100, outputTokens: 10, cachedTokens: 40, unpricedCalls: 3, ms: 5 };
  const stats = { from: "2026-03-01", to: "2026-03-02", by: "agent" as const, keys: [{ key: "=cmd()", instance: "hall", name: "A" }, { key: "" }], rows: [row, { ...row, key: 1, cost: 0.5, unpricedCalls: 2 }] };
  assert.equal(unpricedCallsOf(stats), 5);
  assert.deepEqual(seriesOf(stats, "tokens").map(({ name, total }) => [name, total]), [["A", 70], ["", 70]]);
  assert.deepEqual(seriesOf(stats, "cached").map(({ total }) => total), [40, 40]);
  assert.deepEqual(seriesOf(stats, "cost").map(({ name }) => name), [""]);
  assert.equal(csvOf(stats).split("\r\n")[1], "2026-03-01,'=cmd(),2,1,3,100,10,40,,3,5,hall");
  assert.match(csvOf(stats).split("\r\n")[2] ?? "", /^2026-03-01,other,/);
  assert.deepEqual([csvField('a"b,c'), csvField(-1), csvField("-1")], ['"a""b,c"', "-1", "'-1"]);
});
