// Draws the timeline of a run and keeps it up to date in place: what a person has opened stays open. Owns the elements
// below its host; asks nobody. Texts of strangers are shown as text.

import { SHOWN_IN_ROW, element, foreign } from "./dom.mjs";
import { KeyedList, Kept, type Part } from "./keyed.mjs";
import { clock, duration, moment, sentence } from "./runs-words.mjs";
import { text } from "./text.mjs";
import { asNumber, confidenceChart } from "./timeline-chart.mjs";
import type { ModelStep, Remark, RunEnd, RunTimeline, Step, ToolStep, Unanswered } from "./timeline.mjs";
import { confidences, underWay, whyUnanswered } from "./timeline.mjs";

/** How often the clock of what is under way moves. */
const TICK_MS = 1_000;

export interface TimelineView {
  /** `now` is the time the clock of a running step counts to, and goes on from. */
  show(timeline: RunTimeline, now: number): void;
  destroy(): void;
}

export function timelineView(host: HTMLElement): TimelineView {
  return new View(host);
}

class View implements TimelineView {
  private readonly root = element("div", { class: "redflow-timeline" });
  private readonly last = new Kept(element("p", { class: "redflow-last", attributes: { role: "status" } }));
  private readonly chart = new Kept(element("div", { class: "redflow-confidences" }));
  private readonly remarks = new Kept(element("ul", { class: "redflow-remarks" }));
  private readonly leftOut = new Kept(element("p", { class: "redflow-hint" }));
  private readonly steps = new KeyedList<ShownStep>(element("ol", { class: "redflow-steps" }), keyOf, (step) => new StepView(step));
  private readonly end = new Kept(element("div", { class: "redflow-end" }));
  private readonly hint = new Kept(element("p", { class: "redflow-hint" }));
  private timer: ReturnType<typeof setInterval> | undefined;
  /** What `show` was told of the time, against the page's own. */
  private ahead = 0;
  private timeline: RunTimeline | undefined;

  constructor(host: HTMLElement) {
    const parts = [this.last, this.chart, this.remarks, this.leftOut].map(({ root }) => root);
    this.root.append(...parts, this.steps.root, this.end.root, this.hint.root);
    host.append(this.root);
  }

  show(timeline: RunTimeline, now: number): void {
    this.timeline = timeline;
    this.ahead = now - Date.now();
    this.last.set([timeline.last, timeline.end, byPerson(timeline)], () => lastLine(timeline));
    const sure = confidences(timeline);
    this.chart.set(sure, () => labelled(confidenceChart(sure)));
    this.remarks.set(timeline.remarks, ...timeline.remarks.map((remark) => () => remarkLine(remark)));
    const { stepsLeftOut: n, remarksLeftOut, unknown, debug, steps, end } = timeline;
    this.leftOut.set([n, remarksLeftOut], () =>
      n + remarksLeftOut === 0 ? undefined : words("runs.timeline.leftOut", { n, remarks: remarksLeftOut }),
    );
    const over = end && whyUnanswered(end);
    this.steps.show(steps.map((step) => ({ ...step, over })));
    this.end.set(end, () => end && endLines(end));
    this.hint.set(
      [debug || steps.length === 0, unknown],
      () => (debug || steps.length === 0 ? undefined : words("runs.timeline.debugOff", {})),
      () => (unknown === 0 ? undefined : words("runs.timeline.unknown", { n: unknown })),
    );
    this.tick();
    const runs = underWay(timeline) !== undefined;
    if (runs && this.timer === undefined) {
      this.timer = setInterval(() => this.tick(), TICK_MS);
    } else if (!runs) {
      this.rest();
    }
  }

  destroy(): void {
    this.rest();
    this.root.remove();
  }

  private rest(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Moves the clock of what is under way. */
  private tick(): void {
    const now = this.timeline && underWay(this.timeline);
    const step = now && this.steps.part(String(now.iteration));
    if (step instanceof StepView && now !== undefined && !document.hidden) {
      step.tick(now.tool !== undefined, clock(Date.now() + this.ahead - now.since));
    }
  }
}

function keyOf({ iteration }: ShownStep): string {
  return String(iteration);
}

/** With why what is open stays without an answer, if the run is over. */
type ShownStep = Step & { over: Unanswered | undefined };

/** One iteration. */
class StepView implements Part<ShownStep> {
  readonly root: HTMLLIElement;
  private readonly model = new Row("model");
  private readonly tool = new Row("tool");

  constructor({ iteration }: Step) {
    const label = text("runs.timeline.iteration", { iteration });
    const number = element("span", { class: "redflow-step-number", text: String(iteration), title: label });
    const body = element("div", { class: "redflow-step-body" }, this.model.root, this.tool.root);
    this.root = element("li", { class: "redflow-step", attributes: { "aria-label": label } }, number, body);
  }

  show({ model, tool, over }: ShownStep): void {
    const asked = model?.open === true && over === undefined;
    this.model.show(asked, model && { ...model, over }, () => model && modelLine(model, over), {
      prompt: model?.prompt,
      answer: model?.preview,
    });
    const called = tool?.open === true && tool.waiting === undefined && over === undefined;
    this.tool.show(called, tool && { ...tool, over }, () => tool && toolLine(tool, over !== undefined), {
      input: tool?.input,
      output: tool?.output,
    });
  }

  tick(tool: boolean, words: string): void {
    (tool ? this.tool : this.model).tick(words);
  }
}

/** What the model or the tool did in an iteration: a line, and what can be opened below it. */
class Row {
  readonly root: HTMLDivElement;
  private readonly line = new Kept(element("div", { class: "redflow-step-line" }));
  private readonly clock = element("span", { class: "redflow-clock" });
  private readonly details = new Map<string, HTMLPreElement>();

  constructor(kind: "model" | "tool") {
    this.root = element("div", { class: `redflow-step-row redflow-is-${kind}` }, this.line.root);
    this.root.hidden = true;
  }

  show(open: boolean, key: unknown, line: () => Node | undefined, previews: Record<string, string | undefined>): void {
    this.root.hidden = key === undefined;
    this.root.classList.toggle("redflow-is-open", open);
    this.line.set(key, line, () => (open ? this.clock : undefined));
    for (const [name, preview] of Object.entries(previews)) {
      if (preview !== undefined) {
        this.preview(name, preview);
      }
    }
  }

  tick(words: string): void {
    this.clock.textContent = words;
  }

  private preview(name: string, preview: string): void {
    let shown = this.details.get(name);
    if (shown === undefined) {
      shown = foreign("pre", "", { class: "redflow-preview" });
      this.details.set(name, shown);
      const summary = element("summary", { text: text(`runs.preview.${name}`) });
      this.root.append(element("details", { class: "redflow-details" }, summary, shown));
    }
    if (shown.textContent !== preview) {
      shown.textContent = preview;
    }
  }
}

/** Whether what happened last is what a person said of a call. */
function byPerson({ last, steps }: RunTimeline): boolean {
  return last?.is === "returned" && steps.find(({ iteration }) => iteration === last.iteration)?.tool?.byPerson === true;
}

function lastLine(timeline: RunTimeline): Node | undefined {
  const { last, end } = timeline;
  if (last === undefined) {
    return undefined;
  }
  const tool = "tool" in last ? toolName(last.tool ?? "") : "";
  const ways =
    end === undefined
      ? { asked: "asked", called: "called", waiting: "waiting" }
      : { asked: whyUnanswered(end), called: "unreturned", waiting: "unreturned" };
  const way =
    last.is === "answered" ? last.action : last.is === "returned" ? cameOf(last.success, byPerson(timeline)) : ways[last.is];
  return sentence(`runs.last.${way}`, { tool, iteration: last.iteration });
}

function cameOf(success: boolean | undefined, person: boolean): "worked" | "failed" | "saidDone" | "saidNot" {
  return person ? (success ? "saidDone" : "saidNot") : success ? "worked" : "failed";
}

function labelled(chart: SVGSVGElement | undefined): Node | undefined {
  return chart && element("div", {}, element("span", { class: "redflow-label", text: text("runs.chart.title") }), chart);
}

function remarkLine(remark: Remark): Node {
  const line = element("li", { class: "redflow-is-memory", title: moment(remark.at) });
  if (remark.is === "memory_failed") {
    const message = foreign("span", remark.error.message);
    line.append(sentence("runs.memory.failed", { code: code(remark.error.code), message }));
  } else if (remark.is === "memory_recalled") {
    line.append(text("runs.memory.recalled", { n: remark.messages }));
  } else {
    line.append(text("runs.memory.cleared"));
  }
  return line;
}

function modelLine(model: ModelStep, over: Unanswered | undefined): Node {
  const made = document.createDocumentFragment();
  const way = model.open ? (over ?? "asked") : model.action === "tool" ? "tool" : "final";
  const what = element("span", { class: "redflow-what", title: model.askedAt === undefined ? "" : moment(model.askedAt) });
  what.append(sentence(`runs.model.${way}`, { tool: toolName(model.tool ?? "") }));
  made.append(what);
  if (model.open) {
    return made;
  }
  if (model.confidence !== undefined) {
    const title = text("runs.chart.title");
    made.append(element("span", { class: "redflow-confidence", text: asNumber(model.confidence), title }));
  }
  made.append(tookTime(model.durationMs, tokens(model)));
  return made;
}

function tokens({ usage }: ModelStep): string {
  return usage === undefined ? "" : text("runs.model.tokens", { input: usage.inputTokens, output: usage.outputTokens });
}

function toolLine(tool: ToolStep, over: boolean): Node {
  const made = document.createDocumentFragment();
  const open = over ? "unreturned" : tool.waiting !== undefined ? "waiting" : "called";
  const way = tool.open ? open : cameOf(tool.success, tool.byPerson === true);
  const what = element("span", { class: `redflow-what redflow-${way === "saidNot" ? "failed" : way}` });
  const why = tool.waiting?.reason ?? tool.error ?? "";
  what.append(sentence(`runs.tool.${way}`, { tool: toolName(tool.tool), why: foreign("span", why) }));
  made.append(what);
  // How long a person took is not how long the tool did.
  if (!tool.open && tool.byPerson !== true) {
    made.append(tookTime(tool.durationMs, ""));
  }
  return made;
}

function tookTime(ms: number | undefined, title: string): Node {
  return element("span", { class: "redflow-took", text: ms === undefined ? "" : duration(ms), title });
}

function endLines(end: RunEnd): Node {
  const how = { final_answer: "answered", confidence_threshold: "sure", iteration_limit: "limit", error: "failed" } as const;
  const way = end.error === undefined ? (how[end.stopReason] ?? "stopped") : "failed";
  const values = { iterations: end.iterations, duration: duration(end.durationMs) };
  const made = element("div", { class: `redflow-end-${way === "failed" ? "failed" : "well"}`, title: moment(end.at) });
  made.append(element("strong", { text: text(`runs.end.${way}`, values) }));
  if (end.error !== undefined) {
    const { message, pointer, rule } = end.error;
    made.append(element("div", {}, code(end.error.code), foreign("span", ` ${message}`)));
    if (pointer !== undefined && pointer !== "") {
      const where = element("div", { class: "redflow-hint" });
      where.append(sentence("runs.end.where", { pointer: code(pointer), rule: code(rule ?? "") }));
      made.append(where);
    }
  }
  return made;
}

/** A code of ours, or of a newer sidecar. */
function code(name: string): HTMLElement {
  return foreign("code", name, { class: "redflow-code", most: SHOWN_IN_ROW });
}

function toolName(name: string): HTMLElement {
  return foreign("code", name, { class: "redflow-tool", most: SHOWN_IN_ROW });
}

function words(key: string, values: Record<string, number>): Node {
  return element("span", { text: `${text(key, values)} ` });
}
