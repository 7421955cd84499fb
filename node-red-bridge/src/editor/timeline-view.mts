// Draws the timeline of a run and updates it in place: opened details stay open. Owns the elements below its host. Shows
// untrusted text as text. The texts of a run are requested when a user opens them.

import type { CallDetail, CutText, IterationDetail } from "@redflow/bindings";
import type { LiveText } from "../admin-api.js";
import { MAX_ROW_CHARS, element, untrusted } from "./dom.mjs";
import { KeyedList, CachedElement, type ListPart } from "./keyed-list.mjs";
import { formatClock, formatCost, formatCount, formatDuration, formatTime, fillSentence } from "./formats.mjs";
import { text } from "./text.mjs";
import { type ReadIteration, TextDetails } from "./text-details.mjs";
import { confidenceChart, formatConfidence } from "./timeline-chart.mjs";
import type { FailedModel, LastAction, ModelStep, Remark, RunEnd, RunTimeline, Step, ToolStep, Unanswered, Used } from "./timeline.mjs";
import { activeCalls, confidences, unansweredReason, usedBy } from "./timeline.mjs";

/** How often the clocks of the running calls are updated. */
const TICK_MS = 1_000;

export interface TimelineView {
  /** Draws the timeline, with the text that the model writes now, at the time `now`, from which the clocks of the running calls continue. */
  show(timeline: RunTimeline, now: number, live?: LiveText): void;
  destroy(): void;
}

/** Creates the timeline of a run. `readIteration` requests the texts of one of its iterations. */
export function timelineView(host: HTMLElement, readIteration: ReadIteration): TimelineView {
  return new View(host, readIteration);
}

class View implements TimelineView {
  private readonly root = element("div", { class: "redflow-timeline" });
  private readonly last = new CachedElement(element("p", { class: "redflow-last", attributes: { role: "status" } }));
  private readonly chart = new CachedElement(element("div", { class: "redflow-confidences" }));
  private readonly remarks = new CachedElement(element("ul", { class: "redflow-remarks" }));
  private readonly leftOut = new CachedElement(element("p", { class: "redflow-hint" }));
  private readonly used = new CachedElement(element("p", { class: "redflow-hint redflow-used" }));
  private readonly steps: KeyedList<ShownStep>;
  private readonly end = new CachedElement(element("div", { class: "redflow-end" }));
  private readonly output: TextDetails;
  private readonly hint = new CachedElement(element("p", { class: "redflow-hint" }));
  private timer: ReturnType<typeof setInterval> | undefined;
  /** The difference between `now` of `show` and the time of the page. */
  private clockOffset = 0;
  private timeline: RunTimeline | undefined;

  constructor(host: HTMLElement, readIteration: ReadIteration) {
    this.steps = new KeyedList(element("ol", { class: "redflow-steps" }), keyOf, (step) => new StepView(step, readIteration));
    this.output = new TextDetails("output", async () => (await readIteration(this.timeline?.end?.iterations ?? 1)).output);
    const parts = [this.last, this.used, this.chart, this.remarks, this.leftOut].map(({ root }) => root);
    this.root.append(...parts, this.steps.root, this.end.root, this.output.root, this.hint.root);
    host.append(this.root);
  }

  show(timeline: RunTimeline, now: number, live?: LiveText): void {
    this.timeline = timeline;
    this.clockOffset = now - Date.now();
    this.last.set([timeline.last, timeline.end, wasResolvedLater(timeline)], () => lastLine(timeline));
    const used = usedBy(timeline);
    this.used.set(used, () => used && element("span", { text: usedText(used) }));
    const values = confidences(timeline);
    this.chart.set(values, () => withLabel(confidenceChart(values)));
    this.remarks.set(timeline.remarks, ...timeline.remarks.map((remark) => () => remarkLine(remark)));
    const { stepsLeftOut: n, remarksLeftOut, unknown, steps, end } = timeline;
    this.leftOut.set([n, remarksLeftOut], () =>
      n + remarksLeftOut === 0 ? undefined : hint("runs.timeline.leftOut", { n, remarks: remarksLeftOut }),
    );
    const unanswered = end && unansweredReason(end);
    this.steps.show(steps.map((step) => ({ ...step, unanswered, live: live?.iteration === step.iteration ? live : undefined })));
    this.end.set(end, () => end && endLines(end));
    this.output.show(end !== undefined && end.error === undefined, end?.at);
    this.hint.set(unknown, () => (unknown === 0 ? undefined : hint("runs.timeline.unknown", { n: unknown })));
    this.tick();
    const isActive = activeCalls(timeline).length > 0;
    if (isActive && this.timer === undefined) {
      this.timer = setInterval(() => this.tick(), TICK_MS);
    } else if (!isActive) {
      this.stopClock();
    }
  }

  destroy(): void {
    this.stopClock();
    this.root.remove();
  }

  private stopClock(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Updates the clocks of the running calls. */
  private tick(): void {
    if (this.timeline === undefined || document.hidden) {
      return;
    }
    for (const { iteration, since, callId } of activeCalls(this.timeline)) {
      const step = this.steps.part(String(iteration));
      if (step instanceof StepView) {
        step.setClock(callId, formatClock(Date.now() + this.clockOffset - since));
      }
    }
  }
}

function keyOf({ iteration }: ShownStep): string {
  return String(iteration);
}

/** A step with the reason why its open call has no answer, if the run has ended, and the text that its model writes now. */
type ShownStep = Step & { unanswered: Unanswered | undefined; live: LiveText | undefined };

/** A tool call with the reason why it has no result, if the run has ended. */
type ShownCall = ToolStep & { unanswered: Unanswered | undefined };

/** One iteration: the call of the model, and the calls of tools side by side. */
class StepView implements ListPart<ShownStep> {
  readonly root: HTMLLIElement;
  private readonly model = new StepRow("model");
  private readonly live = untrusted("pre", "", { class: "redflow-preview redflow-live" });
  private readonly failedModels = new CachedElement(element("div", { class: "redflow-failed-models" }));
  private readonly count = new CachedElement(element("div", { class: "redflow-hint" }));
  private readonly calls: KeyedList<ShownCall>;
  /** The requested texts, and the state of the step that they belong to. */
  private texts: { key: string; result: Promise<IterationDetail> } | undefined;
  private textsKey = "";

  constructor(
    { iteration }: Step,
    private readonly readIteration: ReadIteration,
  ) {
    const read = (): Promise<IterationDetail> => this.requestTexts(iteration);
    this.model.addTexts("prompt", async () => (await read()).prompt);
    this.model.addTexts("answer", async () => (await read()).answer);
    this.calls = new KeyedList(element("div", { class: "redflow-calls" }), callKey, ({ callId }) => new CallView(callId, read));
    const label = text("runs.timeline.iteration", { iteration });
    const number = element("span", { class: "redflow-step-number", text: String(iteration), title: label });
    const calls = [this.count, this.calls].map(({ root }) => root);
    const body = element("div", { class: "redflow-step-body" }, this.failedModels.root, this.model.root, this.live, ...calls);
    this.root = element("li", { class: "redflow-step", attributes: { "aria-label": label } }, number, body);
  }

  show({ model, failedModels, tools, toolsLeftOut, unanswered, live }: ShownStep): void {
    this.live.hidden = live === undefined || model?.open !== true || unanswered !== undefined;
    this.live.textContent = this.live.hidden ? "" : `${live?.isCut === true ? "…" : ""}${live?.text ?? ""}`;
    // The journal may have more texts after each change.
    this.textsKey = JSON.stringify([model?.open, unanswered, tools.map(({ open }) => open)]);
    this.failedModels.set(failedModels, ...failedModels.map((failed) => () => failedModelLine(failed)));
    this.model.show({
      isActive: model?.open === true && unanswered === undefined,
      key: model && { ...model, unanswered },
      line: () => model && modelLine(model, unanswered),
      texts: { prompt: true, answer: model?.open === false || unanswered !== undefined },
    });
    this.count.set([tools.length, toolsLeftOut], () => countLine(tools.length, toolsLeftOut));
    this.calls.show(tools.map((tool) => ({ ...tool, unanswered })));
  }

  /** Requests the texts once for all details of the step, and again after a change or a failure. */
  private requestTexts(iteration: number): Promise<IterationDetail> {
    const key = this.textsKey;
    if (this.texts?.key !== key) {
      const result = this.readIteration(iteration);
      this.texts = { key, result };
      result.catch(() => (this.texts = undefined));
    }
    return this.texts.result;
  }

  /** Sets the clock of a tool call, or without an id that of the model. */
  setClock(callId: string | undefined, elapsed: string): void {
    const row = callId === undefined ? this.model : this.calls.part(callId);
    if (row instanceof StepRow || row instanceof CallView) {
      row.setClock(elapsed);
    }
  }
}

function callKey({ callId }: ShownCall): string {
  return callId;
}

/** One tool call. */
class CallView implements ListPart<ShownCall> {
  private readonly row = new StepRow("tool");
  readonly root = this.row.root;

  constructor(callId: string, read: () => Promise<IterationDetail>) {
    const find = async (): Promise<CallDetail | undefined> => (await read()).calls.find((call) => call.callId === callId);
    this.row.addTexts("input", async () => (await find())?.input);
    this.row.addTexts("result", async () => (await find())?.result);
  }

  show({ unanswered, ...tool }: ShownCall): void {
    this.row.show({
      isActive: tool.open && tool.waiting === undefined && unanswered === undefined,
      key: { ...tool, unanswered },
      line: () => toolLine(tool, unanswered),
      texts: { input: true, result: !tool.open || unanswered !== undefined },
    });
  }

  setClock(elapsed: string): void {
    this.row.setClock(elapsed);
  }
}

/** The number of calls, if there are several. */
function countLine(calls: number, leftOut: number): Node | undefined {
  if (calls + leftOut < 2) {
    return undefined;
  }
  const more = leftOut === 0 ? "" : ` ${text("runs.tool.leftOut", { n: leftOut })}`;
  return element("span", { text: `${text("runs.tool.count", { n: calls + leftOut })}${more}` });
}

function failedModelLine({ model, code: why }: FailedModel): Node {
  const line = element("div", { class: "redflow-step-row redflow-is-model redflow-failed" });
  line.append(fillSentence("runs.model.fellOver", { model: untrusted("code", model, { maxChars: MAX_ROW_CHARS }), code: code(why) }));
  return line;
}

interface RowContent {
  /** Whether its call is running. */
  isActive: boolean;
  /** Changes with the content of the line; undefined hides the row. */
  key: unknown;
  line: () => Node | undefined;
  /** Which of its texts can be opened. */
  texts: Record<string, boolean>;
}

/** The row of the model or the tool in an iteration: a line, and details below it. */
class StepRow {
  readonly root: HTMLDivElement;
  private readonly line = new CachedElement(element("div", { class: "redflow-step-line" }));
  private readonly clock = element("span", { class: "redflow-clock" });
  private readonly texts = new Map<string, TextDetails>();

  constructor(kind: "model" | "tool") {
    this.root = element("div", { class: `redflow-step-row redflow-is-${kind}` }, this.line.root);
    this.root.hidden = true;
  }

  /** Adds a text that a user can open. */
  addTexts(name: string, read: () => Promise<CutText | undefined>): void {
    const details = new TextDetails(name, read);
    this.texts.set(name, details);
    this.root.append(details.root);
  }

  show({ isActive, key, line, texts }: RowContent): void {
    this.root.hidden = key === undefined;
    this.root.classList.toggle("redflow-is-open", isActive);
    this.line.set(key, line, () => (isActive ? this.clock : undefined));
    for (const [name, details] of this.texts) {
      details.show(texts[name] === true, key);
    }
  }

  setClock(elapsed: string): void {
    this.clock.textContent = elapsed;
  }
}

/** Whether the last step is an outcome that was reported later. */
function wasResolvedLater({ last, steps }: RunTimeline): boolean {
  const tools = last?.is === "returned" ? (steps.find(({ iteration }) => iteration === last.iteration)?.tools ?? []) : [];
  return tools.some(({ callId, resolvedLater }) => last?.is === "returned" && callId === last.callId && resolvedLater === true);
}

function lastLine(timeline: RunTimeline): Node | undefined {
  const { last } = timeline;
  if (last === undefined) {
    return undefined;
  }
  const tool = "tool" in last ? toolName(last.tool ?? "") : "";
  const tools = toolNames(last.is === "answered" ? last.tools : undefined);
  const model = last.is === "failed_model" ? untrusted("code", last.model, { maxChars: MAX_ROW_CHARS }) : "";
  return fillSentence(`runs.last.${lastKey(timeline, last)}`, { tool, tools, model, iteration: last.iteration });
}

/** The key of the text for the last step. */
function lastKey(timeline: RunTimeline, last: LastAction): string {
  const { end } = timeline;
  switch (last.is) {
    case "answered":
      return last.tools === undefined ? last.action : "tools";
    case "failed_model":
      return "fellOver";
    case "returned":
      return outcomeKey({ success: last.success, resolvedLater: wasResolvedLater(timeline) });
    case "asked":
      return end === undefined ? "asked" : unansweredReason(end);
    case "called":
    case "waiting":
      return end === undefined ? last.is : "unreturned";
  }
}

/** The key of the text for the outcome of a call. */
function outcomeKey({ success, resolvedLater }: { success?: boolean | undefined; resolvedLater?: boolean | undefined }) {
  return resolvedLater ? (success ? "saidDone" : "saidNot") : success ? "worked" : "failed";
}

function withLabel(chart: SVGSVGElement | undefined): Node | undefined {
  return chart && element("div", {}, element("span", { class: "redflow-label", text: text("runs.chart.title") }), chart);
}

function remarkLine(remark: Remark): Node {
  const line = element("li", { class: "redflow-is-memory", title: formatTime(remark.at) });
  if (remark.is === "memory_failed") {
    const message = untrusted("span", remark.error.message);
    line.append(fillSentence("runs.memory.failed", { code: code(remark.error.code), message }));
  } else if (remark.is === "memory_recalled") {
    line.append(text("runs.memory.recalled", { n: remark.messages }));
  } else if (remark.is === "budget_low" || remark.is === "budget_reached") {
    const { limit, spent } = remark;
    line.className = "redflow-is-budget";
    line.append(text(`runs.budget.${remark.is}`, { what: text(`runs.budget.${remark.budget}`), limit, spent }));
  } else {
    line.append(text("runs.memory.cleared"));
  }
  return line;
}

function modelLine(model: ModelStep, unanswered: Unanswered | undefined): Node {
  const line = document.createDocumentFragment();
  const called = model.tools === undefined ? "tool" : "tools";
  const key = model.open ? (unanswered ?? "asked") : model.action === "tool" ? called : "final";
  const what = element("span", { class: "redflow-what", title: model.askedAt === undefined ? "" : formatTime(model.askedAt) });
  what.append(fillSentence(`runs.model.${key}`, { tool: toolName(model.tool ?? ""), tools: toolNames(model.tools) }));
  line.append(what);
  if (model.open) {
    return line;
  }
  if (model.confidence !== undefined) {
    const title = text("runs.chart.title");
    line.append(element("span", { class: "redflow-confidence", text: formatConfidence(model.confidence), title }));
  }
  line.append(durationLabel(model.durationMs, tokens(model)));
  return line;
}

function tokens({ usage }: ModelStep): string {
  return usage === undefined ? "" : text("runs.model.tokens", { input: usage.inputTokens, output: usage.outputTokens });
}

function toolLine(tool: ToolStep, unanswered: Unanswered | undefined): Node {
  const line = document.createDocumentFragment();
  const openKey = unanswered !== undefined ? "unreturned" : tool.waiting !== undefined ? "waiting" : "called";
  const key = tool.open ? openKey : outcomeKey(tool);
  const what = element("span", { class: `redflow-what redflow-${key === "saidNot" ? "failed" : key}` });
  const why = tool.waiting?.reason ?? tool.error ?? "";
  what.append(fillSentence(`runs.tool.${key}`, { tool: toolName(tool.tool), why: untrusted("span", why) }));
  line.append(what);
  // Not the time that a person needed for the answer.
  if (!tool.open && tool.resolvedLater !== true) {
    line.append(durationLabel(tool.durationMs, ""));
  }
  return line;
}

/** The tokens and the cost of a run. */
export function usedText({ inputTokens, outputTokens, cost, estimated }: Used): string {
  const values = { input: formatCount(inputTokens), output: formatCount(outputTokens) };
  const tokens = text(estimated === true ? "runs.used.estimated" : "runs.used.tokens", values);
  return cost === undefined ? tokens : `${tokens} · ${text("runs.used.cost", { cost: formatCost(cost) })}`;
}

function durationLabel(ms: number | undefined, title: string): Node {
  return element("span", { class: "redflow-took", text: ms === undefined ? "" : formatDuration(ms), title });
}

function endLines(end: RunEnd): Node {
  const keys = { final_answer: "answered", confidence_threshold: "sure", iteration_limit: "limit", error: "failed" } as const;
  const key = end.error === undefined ? (keys[end.stopReason] ?? "stopped") : "failed";
  const values = { iterations: end.iterations, duration: formatDuration(end.durationMs) };
  const lines = element("div", { class: `redflow-end-${key === "failed" ? "failed" : "well"}`, title: formatTime(end.at) });
  lines.append(element("strong", { text: text(`runs.end.${key}`, values) }));
  if (end.error !== undefined) {
    const { message, pointer, rule } = end.error;
    lines.append(element("div", {}, code(end.error.code), untrusted("span", ` ${message}`)));
    if (pointer !== undefined && pointer !== "") {
      const where = element("div", { class: "redflow-hint" });
      where.append(fillSentence("runs.end.where", { pointer: code(pointer), rule: code(rule ?? "") }));
      lines.append(where);
    }
  }
  return lines;
}

/** A code, which may come from a newer sidecar. */
function code(name: string): HTMLElement {
  return untrusted("code", name, { class: "redflow-code", maxChars: MAX_ROW_CHARS });
}

function toolName(name: string): HTMLElement {
  return untrusted("code", name, { class: "redflow-tool", maxChars: MAX_ROW_CHARS });
}

function toolNames(names: string[] = []): HTMLElement {
  return toolName(names.join(", "));
}

function hint(key: string, values: Record<string, number>): Node {
  return element("span", { text: `${text(key, values)} ` });
}
