// The forms that cancel a run and resolve a call: what they send, what they say, and where the focus is.

import assert from "node:assert/strict";
import test from "node:test";
import type { ResolveRequest, WaitingCall } from "@redflow/bindings";
import { CancelForm, ResolveForm, resultOf } from "../src/timeline/index.js";
import { environment, screen, textOf, until } from "./timeline-kit.js";

test("an answer gives the same result as on the command line", () => {
  assert.deepEqual(resultOf("done", ""), { success: true, output: null });
  assert.deepEqual(resultOf("done", ' {"receipt": 17} '), { success: true, output: { receipt: 17 } });
  assert.equal(resultOf("done", "{broken"), undefined);
  assert.deepEqual(resultOf("notDone", " "), { success: false, error: "the call did not happen: a person says so" });
  assert.deepEqual(resultOf("notDone", "the line was dead"), { success: false, error: "the call did not happen: the line was dead" });
  assert.deepEqual(resultOf("failed", "{no JSON needed"), { success: false, error: "{no JSON needed" });
  assert.deepEqual(resultOf("failed", ""), { success: false, error: "a person says that the call failed" });
});

const button = (root: HTMLElement, name: string): HTMLButtonElement => {
  const found = [...root.querySelectorAll("button")].find((one) => textOf(one) === name);
  assert.ok(found, `${name} in ${textOf(root)}`);
  return found;
};
const focused = (): string => textOf(document.activeElement);

test("a run is cancelled after a confirmation, with the focus on the harmless button", async (t) => {
  const { root, show } = screen(t);
  let [cancelled, isOffline] = [0, true];
  const cancel = async (): Promise<void> => {
    cancelled += 1;
    if (isOffline) {
      throw new Error("gone");
    }
  };
  show(<CancelForm environment={environment} cancel={cancel} />);
  assert.equal(document.activeElement, document.body, "a form that appears does not take the focus");
  button(root, "Cancel this run").click();
  await until("it asks", () => textOf(root).includes("End this run now?"));
  assert.equal(focused(), "No");
  button(root, "No").click();
  await until("it asks no more", () => !textOf(root).includes("End this run now?"));
  assert.equal(focused(), "Cancel this run");
  assert.equal(cancelled, 0);
  for (const result of ["Cancel this run CODE gone", "Ending the run…"]) {
    button(root, "Cancel this run").click();
    await until("it asks", () => textOf(root).includes("End this run now?"));
    button(root, "Yes, end it").click();
    await until(result, () => textOf(root).replaceAll(" ", "") === result.replaceAll(" ", ""));
    if (isOffline) {
      assert.equal(focused(), "Cancel this run");
    }
    isOffline = false;
  }
  assert.equal(cancelled, 2);
});

test("a user who may only read sees why", (t) => {
  const { root, show } = screen(t);
  show(<CancelForm environment={environment} cancel={() => Promise.reject(new Error())} forbidden="You may only read." />);
  assert.equal(textOf(root), "You may only read.");
  show(<ResolveForm environment={environment} call={CALL} resolve={() => Promise.reject(new Error())} forbidden="You may only read." />);
  assert.match(textOf(root), /Did the call of mail happen\?.*You may only read\.$/);
  assert.equal(root.querySelectorAll("input, button").length, 0);
});

const CALL: WaitingCall = { callId: "c 1", tool: "mail", iteration: 2, askedAt: 0, input: { to: "<b>desk</b>", text: "Tea" } };

test("the call that a user decides about is shown without invisible marks, and whole", async (t) => {
  const { root, show } = screen(t);
  const call: WaitingCall = { ...CALL, tool: "pay\u202e", input: { to: "a\u202etxt.exe", text: "x".repeat(30_000), last: "END" } };
  show(<ResolveForm environment={environment} call={call} resolve={() => Promise.resolve()} />);
  assert.match(textOf(root), /pay⟨202E⟩ happen.*"a⟨202E⟩txt\.exe".*This is only the beginning of the input\./);
  assert.doesNotMatch(textOf(root), /END|\u202e/);
  button(root, `Show all ${JSON.stringify(call.input, null, 2).length} characters`).click();
  await until("all of it", () => textOf(root).includes('"last": "END"'));
  assert.doesNotMatch(textOf(root), /only the beginning/);
});

test("a call is resolved with an answer of its own text", async (t) => {
  const { root, show } = screen(t);
  const sent: ResolveRequest[] = [];
  let isOffline = true;
  const resolve = async (request: ResolveRequest): Promise<void> => {
    sent.push(request);
    if (isOffline) {
      throw new Error("gone");
    }
  };
  show(<ResolveForm environment={environment} call={CALL} resolve={resolve} />);
  assert.match(textOf(root), /Iteration 2, called.*"to": "<b>desk<\/b>"/);
  assert.equal(root.querySelector("b"), null);
  const send = button(root, "Answer and continue the run");
  assert.equal(send.disabled, true, "no answer is preselected");
  const choose = async (answer: string, label: RegExp): Promise<HTMLTextAreaElement> => {
    const radio = root.querySelector<HTMLInputElement>(`input[value=${answer}]`);
    radio?.click();
    await until("its box is shown", () => label.test(textOf(root)) && root.querySelector("textarea")?.id.endsWith(answer) === true);
    const box = root.querySelector("textarea");
    assert.ok(box);
    return box;
  };
  const type = async (box: HTMLTextAreaElement, text: string): Promise<void> => {
    box.value = text;
    box.dispatchEvent(new window.Event("input", { bubbles: true }));
    // A user presses no key before it is drawn.
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  await type(await choose("done", /Its result as JSON/), "{ no JSON");
  const alert = root.querySelector("[role=alert]");
  send.click();
  await until("the problem is shown", () => textOf(alert).startsWith("This is not JSON"));
  assert.equal(document.activeElement?.tagName, "TEXTAREA");
  // The result does not become a reason.
  const reason = await choose("notDone", /The reason/);
  assert.equal(reason.value, "");
  assert.equal(textOf(alert), "");
  assert.equal((await choose("done", /Its result as JSON/)).value, "{ no JSON");
  await type(await choose("done", /Its result as JSON/), '{"sent": true}');
  send.click();
  await until("the problem is shown", () => textOf(alert).includes("gone"));
  assert.equal(root.querySelector("fieldset")?.disabled, false);
  isOffline = false;
  send.click();
  await until("it is sent", () => sent.length === 2);
  await until("it cannot be sent again", () => root.querySelector("fieldset")?.disabled === true);
  assert.deepEqual(sent[1], { callId: "c 1", result: { success: true, output: { sent: true } } });
});
