// A call of which nobody knows what came of it: shown whole, and answered by a person. Owns the form; the answer is the
// sidecar's to judge. Nothing is chosen beforehand: an answer cannot be taken back.

import type { JsonValue, RunSummary, ToolResult, WaitingCall } from "@redflow/bindings";
import { ask } from "./ask.mjs";
import { SHOWN_IN_ROW, element, foreign } from "./dom.mjs";
import { problemOf } from "./runs-feed.mjs";
import { moment, sentence } from "./runs-words.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

/** Characters of a call's input that are shown: it has to be judged, so there is room. */
const MAX_INPUT = 20_000;

const WAYS = ["done", "failed", "notDone"] as const;
export type Way = (typeof WAYS)[number];

/** What the model will read. `typed` is a JSON value if it happened, else a reason. Undefined if it is no JSON. */
export function resultOf(way: Way, typed: string): ToolResult | undefined {
  const words = typed.trim();
  if (way === "notDone") {
    return { success: false, error: `the call did not happen: ${words || "a person says so"}` };
  }
  if (way === "failed") {
    return { success: false, error: words || "a person says that the call failed" };
  }
  try {
    return { success: true, output: words === "" ? null : (JSON.parse(words) as JsonValue) };
  } catch {
    return undefined;
  }
}

export class ResolveForm {
  readonly root = element("form", { class: "redflow-resolve" });
  private readonly fields = element("fieldset");
  /** What was typed for each answer: a result is no reason, and what one way was told must not go out as another's. */
  private readonly boxes = new Map<Way, HTMLTextAreaElement>();
  /** The box of the way that is chosen, and its label. */
  private readonly slot = element("div");
  private readonly send = element("button", {
    class: "red-ui-button red-ui-button-small primary",
    text: text("runs.resolve.send"),
  });
  private readonly trouble = element("div", { attributes: { role: "alert" } });
  private way: Way | undefined;

  constructor(
    private readonly runtime: string,
    private readonly run: string,
    private readonly call: WaitingCall,
    allowed: boolean,
    private readonly done: (run: RunSummary) => void,
  ) {
    this.fields.append(element("legend", { text: text("runs.resolve.question") }));
    for (const way of WAYS) {
      this.fields.append(this.choice(way));
    }
    this.send.type = "submit";
    this.fields.append(this.slot, this.send);
    const answer = allowed ? this.fields : element("p", { class: "redflow-hint", text: text("runs.problem.readOnly") });
    this.root.append(about(call), answer, this.trouble);
    this.root.addEventListener("submit", (event) => {
      event.preventDefault();
      void this.answer();
    });
    this.choose(undefined);
  }

  private choice(way: Way): Node {
    const radio = element("input", { attributes: { type: "radio", name: "redflow-resolve-way", value: way } });
    radio.addEventListener("change", () => this.choose(way));
    return element("label", { class: "redflow-way" }, radio, element("span", { text: text(`runs.resolve.${way}`) }));
  }

  private choose(way: Way | undefined): void {
    this.way = way;
    this.send.disabled = way === undefined;
    this.trouble.replaceChildren();
    if (way === undefined) {
      this.slot.replaceChildren();
      return;
    }
    const box = this.box(way);
    const words = text(way === "done" ? "runs.resolve.result" : "runs.resolve.reason");
    this.slot.replaceChildren(element("label", { text: words, attributes: { for: box.id } }), box);
  }

  private box(way: Way): HTMLTextAreaElement {
    let box = this.boxes.get(way);
    if (box === undefined) {
      box = element("textarea", { attributes: { id: `redflow-resolve-${way}`, rows: "2", spellcheck: "false", dir: "auto" } });
      box.placeholder = way === "done" ? "null" : "";
      this.boxes.set(way, box);
    }
    return box;
  }

  private async answer(): Promise<void> {
    if (this.way === undefined) {
      return;
    }
    const box = this.box(this.way);
    const result = resultOf(this.way, box.value);
    if (result === undefined) {
      this.trouble.replaceChildren(element("div", { class: "redflow-trouble", text: text("runs.resolve.notJson") }));
      box.focus();
      return;
    }
    this.trouble.replaceChildren();
    this.fields.disabled = true;
    try {
      this.done(await ask.resolve(this.runtime, this.run, { callId: this.call.callId, result }));
    } catch (error) {
      this.fields.disabled = false;
      this.trouble.replaceChildren(problemLine(problemOf(error)));
    }
  }
}

function about({ tool, input, iteration, askedAt, callId }: WaitingCall): Node {
  const name = foreign("code", tool, { class: "redflow-tool", most: SHOWN_IN_ROW });
  const title = element("div", { class: "redflow-resolve-title" });
  title.append(sentence("runs.resolve.title", { tool: name }));
  const when = text("runs.resolve.when", { iteration, at: moment(askedAt) });
  const shown = foreign("pre", JSON.stringify(input, null, 2), { class: "redflow-preview", most: MAX_INPUT });
  const id = element("div", { class: "redflow-hint" });
  id.append(sentence("runs.resolve.call", { id: foreign("code", callId, { most: SHOWN_IN_ROW }) }));
  return element("div", {}, title, element("div", { class: "redflow-hint", text: when }), shown, id);
}
