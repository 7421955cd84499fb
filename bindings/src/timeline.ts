// Builds the timeline of a run, step by step, from its events. Limits how much of a run it keeps. Pure: sends no request and
// draws nothing. The result does not depend on the order of the events or on repeated ones.

import type { ActionKind, BudgetKind, ConclusionReason, Failure, RunError, RunEvent, RunEventKind, RunTally, Source, StopReason, ToolCode, Usage } from "./types.js";

/** The most characters of a text that a timeline keeps. */
export const MAX_TEXT_CHARS = 2_000;

/** The most characters of a text that stands in one line. */
export const MAX_ROW_CHARS = 200;

/** How many iterations are kept, the newest. */
export const MAX_STEPS = 200;

/** How many remarks are kept, the newest. */
export const MAX_REMARKS = 50;

/** How many calls and failed models of one iteration are kept, the first. */
export const MAX_CALLS = 128;

/** How many sources of one call, or of a memory, are kept, the first. */
export const MAX_SOURCES = 16;

/** How many events may follow a missing one before it is given up. */
const MAX_AHEAD = 10_000;

/** The call of the model in an iteration. */
export interface ModelStep {
  askedAt?: number;
  answeredAt?: number;
  action?: ActionKind;
  tool?: string;
  /** The names of the tools, if the answer calls several. */
  tools?: string[];
  confidence?: number;
  durationMs?: number;
  usage?: Usage;
  /** The fields of the request that the provider refused, so that the call was made once more without them. */
  refused?: string[];
  /** Called and not answered yet. */
  open: boolean;
}

/** A model that failed, so that the next fallback model was called. */
export interface FailedModelStep {
  seq: number;
  model: string;
  code: string;
}

/** A tool call in an iteration. */
export interface ToolStep {
  tool: string;
  callId: string;
  calledAt?: number;
  returnedAt?: number;
  success?: boolean;
  error?: string;
  /** The code of the error, if the sidecar knows one. */
  code?: ToolCode;
  durationMs?: number;
  /** What the result comes from, the best first. */
  sources?: Source[];
  /** The reason why the outcome is unknown; absent when it is known. */
  waiting?: { at: number; reason: string };
  /** Whether the outcome was reported after the run had waited: by a person, or by a late reply of Node-RED. */
  resolvedLater?: true;
  /** Since when the run waited for the outcome, if `resolvedLater`. */
  waitedSince?: number;
  /** Called and not returned yet. */
  open: boolean;
}

export interface IterationStep {
  iteration: number;
  model?: ModelStep;
  /** The models that failed before one answered, in order. */
  failedModels: FailedModelStep[];
  /** The tool calls in the order in which they began. Several may run at the same time. */
  tools: ToolStep[];
  /** How many further calls were dropped. */
  toolsLeftOut: number;
}

/** An event that is no call of an iteration. */
export type RunRemark = { seq: number; at: number } & (
  | { is: "memory_recalled"; messages: number; sources?: Source[] }
  | { is: "memory_cleared" }
  | { is: "memory_failed"; error: Failure }
  | { is: "budget_low" | "budget_reached"; budget: BudgetKind; limit: number; spent: number }
  | { is: "images_fetched"; images: number }
  | { is: "summarised"; messages: number }
  | { is: "concluding"; reason: ConclusionReason }
);

export interface RunEnd {
  at: number;
  completed: boolean;
  stopReason: StopReason;
  iterations: number;
  durationMs: number;
  tally?: RunTally;
  error?: RunError;
}

/** The tokens and the cost of a run. */
export type Used = Pick<RunTally, "inputTokens" | "outputTokens" | "cost" | "unpricedCalls" | "estimated"> & Partial<Pick<RunTally, "cachedTokens">>;

/** The last step of a run. */
export type LastAction = { at: number; iteration: number } & (
  | { is: "asked" }
  | { is: "answered"; action: ActionKind; tool?: string; tools?: string[] }
  | { is: "failed_model"; model: string; code: string }
  | { is: "called"; tool: string }
  | { is: "returned"; tool: string; callId: string; success: boolean }
  | { is: "waiting"; tool: string }
);

export interface RunTimeline {
  /** The timeline contains every event up to this number. */
  seq: number;
  name: string;
  startedAt?: number;
  maxIterations?: number;
  /** Sorted by iteration. */
  steps: IterationStep[];
  /** How many iterations before the first of `steps` were dropped. */
  stepsLeftOut: number;
  remarks: RunRemark[];
  remarksLeftOut: number;
  last?: LastAction;
  end?: RunEnd;
  /** What the answers so far have used. */
  answersUsed: Used;
  /** Whether the agent's debug is on. */
  debug: boolean;
  /** The number of events of unknown types, from a newer sidecar. */
  unknown: number;
}

/** The timeline with the private state that further events need. */
interface TimelineState extends RunTimeline {
  byIteration: Map<number, StepState>;
  /** The numbers of events after a missing one. */
  ahead: Set<number>;
  newest: LastEvent | { seq: 0 };
}

interface LastEvent {
  seq: number;
  at: number;
  event: StepEvent;
}

interface StepState extends IterationStep {
  askedSeq: number;
  answeredSeq: number;
  calls: Map<string, CallState>;
  leftOut: Set<string>;
}

interface CallState {
  shown: ToolStep;
  /** The first event of the call. */
  firstSeq: number;
  returnedSeq: number;
  waitingSeq: number;
  waitingAt: number;
}

/** A timeline without events. */
export function emptyTimeline(): RunTimeline {
  const empty: TimelineState = {
    seq: 0,
    name: "",
    steps: [],
    stepsLeftOut: 0,
    remarks: [],
    remarksLeftOut: 0,
    answersUsed: { inputTokens: 0, outputTokens: 0 },
    debug: false,
    unknown: 0,
    byIteration: new Map(),
    ahead: new Set(),
    newest: { seq: 0 },
  };
  return empty;
}

/** Adds events to a timeline of `emptyTimeline`. Changes and returns it. */
export function applyEvents(timeline: RunTimeline, events: readonly RunEvent[]): RunTimeline {
  const run = timeline as TimelineState;
  for (const event of events) {
    if (isNew(run, event.seq)) {
      applyEvent(run, event);
    }
  }
  run.steps = [...run.byIteration.values()].sort((a, b) => a.iteration - b.iteration);
  for (const { iteration } of run.steps.splice(0, Math.max(0, run.steps.length - MAX_STEPS))) {
    run.byIteration.delete(iteration);
    run.stepsLeftOut = (run.steps[0]?.iteration ?? 1) - 1;
  }
  if ("event" in run.newest) {
    run.last = lastOf(run.newest);
  }
  run.remarks.sort((a, b) => a.seq - b.seq);
  run.remarksLeftOut += run.remarks.splice(0, Math.max(0, run.remarks.length - MAX_REMARKS)).length;
  return run;
}

/** A call that is running now: of a tool, or without `callId` of the model. */
export interface ActiveCall {
  iteration: number;
  since: number;
  callId?: string;
}

/** The calls that are running now. Only the calls of tools may be several. */
export function activeCalls({ steps, end }: RunTimeline): ActiveCall[] {
  const step = end === undefined ? steps.at(-1) : undefined;
  if (step === undefined) {
    return [];
  }
  const { iteration, model, tools } = step;
  const running = tools.filter(({ open, waiting }) => open && waiting === undefined);
  const calls = running.map(({ calledAt, callId }) => ({ iteration, since: calledAt ?? 0, callId }));
  return calls.length === 0 && model?.open === true ? [{ iteration, since: model.askedAt ?? 0 }] : calls;
}

/** The tool calls with an unknown outcome that a person must answer. */
export function waitingCalls({ steps, end }: RunTimeline): ToolStep[] {
  const tools = end === undefined ? (steps.at(-1)?.tools ?? []) : [];
  return tools.filter(({ waiting }) => waiting !== undefined);
}

/** Whether the run waits for a person: nothing of it runs. */
export function isWaiting(timeline: RunTimeline): boolean {
  return waitingCalls(timeline).length > 0 && activeCalls(timeline).length === 0;
}

/** The codes of an invalid answer of the model. */
const INVALID_ANSWER_CODES: readonly string[] = [
  ...["INVALID_JSON", "INVALID_ACTION", "INVALID_CONFIDENCE", "TOOL_NOT_ALLOWED", "TOOL_INPUT_INVALID"],
  ...["MODEL_REFUSED", "MODEL_TRUNCATED", "OUTPUT_NOT_JSON", "OUTPUT_INVALID"],
];

/** Why the last call of the model has no answer in a run that has ended. */
export type Unanswered = "unanswered" | "cancelled" | "ended";

export function unansweredReason({ error }: RunEnd): Unanswered {
  if (error !== undefined && INVALID_ANSWER_CODES.includes(error.code)) {
    return "unanswered";
  }
  return error?.code === "CANCELLED" ? "cancelled" : "ended";
}

/** What a run has used; undefined if that is unknown. The end of a run also counts answers that were refused. */
export function usedBy({ end, answersUsed }: RunTimeline): Used | undefined {
  const used: Used = end?.tally ?? answersUsed;
  return used.inputTokens + used.outputTokens > 0 ? used : undefined;
}

/** The confidence of each iteration that has one. */
export function confidences({ steps }: RunTimeline): { iteration: number; confidence: number }[] {
  return steps.flatMap(({ iteration, model }) => {
    const confidence = model?.confidence;
    return confidence === undefined ? [] : [{ iteration, confidence }];
  });
}

/** Whether an event is new. Also advances `seq` over events without a gap. */
function isNew(run: TimelineState, seq: number): boolean {
  if (!Number.isSafeInteger(seq) || seq <= run.seq || run.ahead.has(seq)) {
    return false;
  }
  if (seq === run.seq + 1 && run.ahead.size === 0) {
    run.seq = seq;
    return true;
  }
  run.ahead.add(seq);
  if (run.ahead.size > MAX_AHEAD) {
    // Give up the missing events and continue after the last one.
    run.seq = [...run.ahead].reduce((highest, one) => Math.max(highest, one), 0);
    run.ahead.clear();
  }
  while (run.ahead.delete(run.seq + 1)) {
    run.seq += 1;
  }
  return true;
}

function applyEvent(run: TimelineState, { seq, at, event }: RunEvent): void {
  switch (event.type) {
    case "run_started":
      run.name = cutText(event.name);
      run.startedAt = at;
      run.maxIterations = event.maxIterations;
      return;
    case "memory_recalled":
      run.remarks.push({ seq, at, is: event.type, messages: event.messages, ...(event.sources && { sources: firstSources(event.sources) }) });
      return;
    case "memory_cleared":
      run.remarks.push({ seq, at, is: event.type });
      return;
    case "memory_failed":
      run.remarks.push({ seq, at, is: event.type, error: { ...event.error, message: cutText(event.error.message) } });
      return;
    case "budget_low":
    case "budget_reached": {
      const { type: is, ...numbers } = event;
      run.remarks.push({ seq, at, is, ...numbers });
      return;
    }
    case "images_fetched":
      run.remarks.push({ seq, at, is: event.type, images: event.images });
      return;
    case "summarised":
      if (event.usage !== undefined) {
        addUsage(run.answersUsed, event.usage);
      }
      run.remarks.push({ seq, at, is: event.type, messages: event.messages });
      return;
    case "concluding":
      run.remarks.push({ seq, at, is: event.type, reason: event.reason });
      return;
    case "run_finished": {
      const { type: _, error, ...end } = event;
      run.end = { at, ...end, ...(error && { error: { ...error, message: cutText(error.message) } }) };
      return;
    }
    case "model_called":
    case "model_answered":
    case "model_fell_over":
    case "tool_called":
    case "tool_returned":
    case "waiting_for_outcome": {
      if (event.type === "model_answered" && event.usage !== undefined) {
        addUsage(run.answersUsed, event.usage);
      }
      const step = stepOf(run, event.iteration);
      if (step !== undefined) {
        run.debug ||= "preview" in event;
        applyStepEvent(step, seq, at, event);
        if (seq > run.newest.seq) {
          run.newest = { seq, at, event };
        }
      }
      return;
    }
    default:
      run.unknown += 1;
  }
}

type StepEvent = Exclude<Extract<RunEventKind, { iteration: number }>, { type: "summarised" | "concluding" }>;

/** The step of an iteration, created if necessary; undefined for a dropped iteration. */
function stepOf(run: TimelineState, iteration: number): StepState | undefined {
  if (!Number.isSafeInteger(iteration) || (run.stepsLeftOut > 0 && iteration <= run.stepsLeftOut)) {
    return undefined;
  }
  let step = run.byIteration.get(iteration);
  if (step === undefined) {
    const empty = { failedModels: [], tools: [], toolsLeftOut: 0, calls: new Map(), leftOut: new Set<string>() };
    step = { iteration, askedSeq: 0, answeredSeq: 0, ...empty };
    run.byIteration.set(iteration, step);
  }
  return step;
}

function applyStepEvent(step: StepState, seq: number, at: number, event: StepEvent): void {
  if (event.type === "model_called" || event.type === "model_answered") {
    const model = (step.model ??= { open: true });
    if (event.type === "model_answered") {
      if (seq > step.answeredSeq) {
        step.answeredSeq = seq;
        applyAnswer(model, at, event);
      }
    } else if (seq > step.askedSeq) {
      step.askedSeq = seq;
      model.askedAt = at;
    }
    model.open = step.askedSeq > step.answeredSeq;
  } else if (event.type === "model_fell_over") {
    step.failedModels.push({ seq, model: cutText(event.model, MAX_ROW_CHARS), code: event.code });
    step.failedModels.sort((a, b) => a.seq - b.seq).splice(MAX_CALLS);
  } else {
    applyCallEvent(step, seq, at, event);
  }
}

function applyAnswer(model: ModelStep, at: number, event: Extract<StepEvent, { type: "model_answered" }>): void {
  model.answeredAt = at;
  model.action = event.action;
  model.durationMs = event.durationMs;
  setIfDefined(model, "tool", event.tool === undefined ? undefined : cutText(event.tool));
  setIfDefined(model, "tools", event.tools?.slice(0, MAX_CALLS).map((tool) => cutText(tool, MAX_ROW_CHARS)));
  setIfDefined(model, "confidence", typeof event.confidence === "number" ? event.confidence : undefined);
  setIfDefined(model, "usage", event.usage);
  setIfDefined(model, "refused", event.refused?.slice(0, MAX_CALLS).map((field) => cutText(field, MAX_ROW_CHARS)));
}

/** The first sources, with the beginnings of their names. */
function firstSources(sources: Source[]): Source[] {
  return sources.slice(0, MAX_SOURCES).map((source) => ({ ...source, ref: cutText(source.ref, MAX_ROW_CHARS) }));
}

function applyCallEvent(step: StepState, seq: number, at: number, event: Extract<StepEvent, { callId: string }>): void {
  const call = callOf(step, event);
  if (call === undefined) {
    return;
  }
  const { shown } = call;
  call.firstSeq = Math.min(call.firstSeq, seq);
  if (event.type === "tool_called") {
    shown.calledAt = at;
  } else if (event.type === "tool_returned") {
    call.returnedSeq = Math.max(call.returnedSeq, seq);
    shown.returnedAt = at;
    shown.success = event.success;
    shown.durationMs = event.durationMs;
    setIfDefined(shown, "code", event.code);
    setIfDefined(shown, "sources", event.sources && firstSources(event.sources));
    setIfDefined(shown, "error", event.error === undefined ? undefined : cutText(event.error));
  } else if (seq > call.waitingSeq) {
    call.waitingSeq = seq;
    call.waitingAt = at;
    shown.waiting = { at, reason: cutText(event.reason) };
  }
  shown.open = call.returnedSeq === 0;
  if (call.waitingSeq > 0 && call.returnedSeq > call.waitingSeq) {
    delete shown.waiting;
    shown.resolvedLater = true;
    shown.waitedSince = call.waitingAt;
  } else {
    delete shown.resolvedLater;
    delete shown.waitedSince;
  }
  step.tools = [...step.calls.values()].sort((a, b) => a.firstSeq - b.firstSeq).map((one) => one.shown);
}

/** The call of an event, created if necessary; undefined if there are too many. */
function callOf(step: StepState, { tool, callId }: Extract<StepEvent, { callId: string }>): CallState | undefined {
  const known = step.calls.get(callId);
  if (known !== undefined || step.calls.size >= MAX_CALLS) {
    step.toolsLeftOut = known === undefined ? step.leftOut.add(callId).size : step.toolsLeftOut;
    return known;
  }
  const call = { shown: { tool: cutText(tool), callId, open: true }, firstSeq: Infinity, returnedSeq: 0, waitingSeq: 0, waitingAt: 0 };
  step.calls.set(callId, call);
  return call;
}

function lastOf({ at, event }: LastEvent): LastAction {
  const base = { at, iteration: event.iteration };
  const tool = "tool" in event && event.tool !== undefined ? cutText(event.tool) : "";
  switch (event.type) {
    case "model_called":
      return { ...base, is: "asked" };
    case "model_answered":
      return {
        ...{ ...base, is: "answered", action: event.action },
        ...(event.tool !== undefined && { tool }),
        ...(event.tools !== undefined && { tools: event.tools.slice(0, MAX_CALLS).map((name) => cutText(name, MAX_ROW_CHARS)) }),
      };
    case "model_fell_over":
      return { ...base, is: "failed_model", model: cutText(event.model, MAX_ROW_CHARS), code: event.code };
    case "tool_called":
      return { ...base, is: "called", tool };
    case "tool_returned":
      return { ...base, is: "returned", tool, callId: event.callId, success: event.success };
    case "waiting_for_outcome":
      return { ...base, is: "waiting", tool };
  }
}

function addUsage(used: Used, usage: Usage): void {
  used.inputTokens += usage.inputTokens;
  used.outputTokens += usage.outputTokens;
  setIfDefined(used, "cachedTokens", usage.cachedTokens === undefined ? undefined : (used.cachedTokens ?? 0) + usage.cachedTokens);
  setIfDefined(used, "cost", usage.cost === undefined ? undefined : (used.cost ?? 0) + usage.cost);
  setIfDefined(used, "unpricedCalls", usage.cost === undefined ? (used.unpricedCalls ?? 0) + 1 : undefined);
  setIfDefined(used, "estimated", usage.estimated);
}

/** Sets a property unless the value is undefined. */
function setIfDefined<T, K extends keyof T>(target: T, key: K, value: T[K] | undefined): void {
  if (value !== undefined) {
    target[key] = value;
  }
}

/** Characters without a shape, control characters, and marks that change the direction of text. */
const INVISIBLE =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** Replaces each character that a reader cannot see by its number, such as `⟨202E⟩`, so that no text looks like another one. */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE, (mark) => (mark === "\r" ? "" : `⟨${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`));
}

/** The end of a long text, without half a character at its start. */
export function endOfText(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(-maxChars).replace(/^[\uDC00-\uDFFF]/, "");
}

/** Cuts a long text and adds "…", without half a character at its end. */
export function cutText(text: string, maxChars: number = MAX_TEXT_CHARS): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
