// The form that resolves a call with an unknown outcome. Shows the whole call. The sidecar validates the answer. No answer is
// preselected, because it cannot be changed later.

import type { JsonValue, RunSummary, ToolResult, WaitingCall } from "@redflow/bindings";
import { adminApi } from "./admin-client.mjs";
import { MAX_ROW_CHARS, element, untrusted } from "./dom.mjs";
import { problemOf } from "./run-watch.mjs";
import { formatTime, fillSentence } from "./formats.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

/** The most characters of a call's input: the user needs it for the answer. */
const MAX_INPUT = 20_000;

const ANSWERS = ["done", "failed", "notDone"] as const;
export type Answer = (typeof ANSWERS)[number];

/** The result for the model. `typed` is JSON for a call that happened, else a reason. Undefined if it is not JSON. */
export function resultOf(answer: Answer, typed: string): ToolResult | undefined {
  const input = typed.trim();
  if (answer === "notDone") {
    return { success: false, error: `the call did not happen: ${input || "a person says so"}` };
  }
  if (answer === "failed") {
    return { success: false, error: input || "a person says that the call failed" };
  }
  try {
    return { success: true, output: input === "" ? null : (JSON.parse(input) as JsonValue) };
  } catch {
    return undefined;
  }
}

export interface ResolveOptions {
  runtime: string;
  run: string;
  call: WaitingCall;
  /** Whether the user may answer. */
  isAllowed: boolean;
  onDone: (run: RunSummary) => void;
}

export class ResolveForm {
  readonly root = element("form", { class: "redflow-resolve" });
  private readonly fields = element("fieldset");
  /** A text box for each answer: a result is not a reason, so the input of one answer must not become that of another. */
  private readonly boxes = new Map<Answer, HTMLTextAreaElement>();
  /** Holds the box of the chosen answer with its label. */
  private readonly slot = element("div");
  private readonly send = element("button", {
    class: "red-ui-button red-ui-button-small primary",
    text: text("runs.resolve.send"),
  });
  private readonly problem = element("div", { attributes: { role: "alert" } });
  private chosen: Answer | undefined;

  constructor(private readonly options: ResolveOptions) {
    const { call, isAllowed } = options;
    this.fields.append(element("legend", { text: text("runs.resolve.question") }));
    for (const answer of ANSWERS) {
      this.fields.append(this.choice(answer));
    }
    this.send.type = "submit";
    this.fields.append(this.slot, this.send);
    const answer = isAllowed ? this.fields : element("p", { class: "redflow-hint", text: text("runs.problem.readOnly") });
    this.root.append(describeCall(call), answer, this.problem);
    this.root.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.submit();
    });
    this.choose(undefined);
  }

  private choice(answer: Answer): Node {
    const radio = element("input", { attributes: { type: "radio", name: "redflow-resolve-way", value: answer } });
    radio.addEventListener("change", () => this.choose(answer));
    return element("label", { class: "redflow-way" }, radio, element("span", { text: text(`runs.resolve.${answer}`) }));
  }

  private choose(answer: Answer | undefined): void {
    this.chosen = answer;
    this.send.disabled = answer === undefined;
    this.problem.replaceChildren();
    if (answer === undefined) {
      this.slot.replaceChildren();
      return;
    }
    const box = this.box(answer);
    const label = text(answer === "done" ? "runs.resolve.result" : "runs.resolve.reason");
    this.slot.replaceChildren(element("label", { text: label, attributes: { for: box.id } }), box);
  }

  private box(answer: Answer): HTMLTextAreaElement {
    let box = this.boxes.get(answer);
    if (box === undefined) {
      box = element("textarea", { attributes: { id: `redflow-resolve-${this.options.call.callId}-${answer}`, rows: "2", spellcheck: "false", dir: "auto" } });
      box.placeholder = answer === "done" ? "null" : "";
      this.boxes.set(answer, box);
    }
    return box;
  }

  private async submit(): Promise<void> {
    if (this.chosen === undefined) {
      return;
    }
    const { runtime, run, call, onDone } = this.options;
    const box = this.box(this.chosen);
    const result = resultOf(this.chosen, box.value);
    if (result === undefined) {
      this.problem.replaceChildren(element("div", { class: "redflow-trouble", text: text("runs.resolve.notJson") }));
      box.focus();
      return;
    }
    this.problem.replaceChildren();
    this.fields.disabled = true;
    try {
      onDone(await adminApi.resolve(runtime, run, { callId: call.callId, result }));
    } catch (error) {
      this.fields.disabled = false;
      this.problem.replaceChildren(problemLine(problemOf(error)));
    }
  }
}

function describeCall({ tool, input, iteration, askedAt, callId }: WaitingCall): Node {
  const name = untrusted("code", tool, { class: "redflow-tool", maxChars: MAX_ROW_CHARS });
  const title = element("div", { class: "redflow-resolve-title" });
  title.append(fillSentence("runs.resolve.title", { tool: name }));
  const when = text("runs.resolve.when", { iteration, at: formatTime(askedAt) });
  const shown = untrusted("pre", JSON.stringify(input, null, 2), { class: "redflow-preview", maxChars: MAX_INPUT });
  const id = element("div", { class: "redflow-hint" });
  id.append(fillSentence("runs.resolve.call", { id: untrusted("code", callId, { maxChars: MAX_ROW_CHARS }) }));
  return element("div", {}, title, element("div", { class: "redflow-hint", text: when }), shown, id);
}
