// What happened in a run, step by step, made of its events. Owns how events become steps, and how much of a run is kept;
// asks nobody and draws nothing. Events may come twice and in any order: the timeline is the same.

import type { ActionKind, Failure, RunError, RunEvent, RunEventKind, StopReason, Usage } from "@redflow/bindings";
import { cut } from "./dom.mjs";

/** Iterations kept of a run: the newest. */
export const MAX_STEPS = 200;

/** Remarks kept of a run: the newest. */
export const MAX_REMARKS = 50;

/** Events that may be ahead of one that is missing, before that one is given up. */
const MAX_AHEAD = 10_000;

/** What the model was asked in an iteration, and what it said. */
export interface ModelStep {
  askedAt?: number;
  /** What was new to the model; only with debug. */
  prompt?: string;
  answeredAt?: number;
  action?: ActionKind;
  tool?: string;
  confidence?: number;
  durationMs?: number;
  usage?: Usage;
  /** The beginning of the answer; only with debug. */
  preview?: string;
  /** Asked, and not answered since. */
  open: boolean;
}

/** A tool's call in an iteration, and what came of it. */
export interface ToolStep {
  tool: string;
  callId: string;
  calledAt?: number;
  /** The beginning of the input; only with debug. */
  input?: string;
  returnedAt?: number;
  success?: boolean;
  error?: string;
  durationMs?: number;
  /** The beginning of the output; only with debug. */
  output?: string;
  /** Why nobody knows what came of it; gone when somebody does. */
  waiting?: { at: number; reason: string };
  /** What came of it was waited for, and told later: by a person, or by Node-RED, whose reply was late. */
  byPerson?: true;
  /** Called, and not back. */
  open: boolean;
}

export interface Step {
  iteration: number;
  model?: ModelStep;
  tool?: ToolStep;
}

/** Something that belongs to no iteration. */
export type Remark = { seq: number; at: number } & (
  | { is: "memory_recalled"; messages: number }
  | { is: "memory_cleared" }
  | { is: "memory_failed"; error: Failure }
);

export interface RunEnd {
  at: number;
  completed: boolean;
  stopReason: StopReason;
  iterations: number;
  durationMs: number;
  error?: RunError;
}

/** What a run did last. */
export type LastAction = { at: number; iteration: number } & (
  | { is: "asked" }
  | { is: "answered"; action: ActionKind; tool?: string }
  | { is: "called"; tool: string }
  | { is: "returned"; tool: string; success: boolean }
  | { is: "waiting"; tool: string }
);

export interface RunTimeline {
  /** Every event up to this one is in it: ask for those after. */
  seq: number;
  name: string;
  startedAt?: number;
  maxIterations?: number;
  /** By iteration, the lowest first. */
  steps: Step[];
  /** Iterations before the first of `steps` that are not kept. */
  stepsLeftOut: number;
  remarks: Remark[];
  remarksLeftOut: number;
  last?: LastAction;
  end?: RunEnd;
  /** Whether there are previews: the agent's debug is on. */
  debug: boolean;
  /** Events of kinds that are not known here: the sidecar is newer. */
  unknown: number;
}

/** What is needed to fold more events, and nobody else's business. */
interface Inner extends RunTimeline {
  byIteration: Map<number, InnerStep>;
  /** Events that came before one that is missing. */
  ahead: Set<number>;
  newest: LastEvent | { seq: 0 };
}

interface LastEvent {
  seq: number;
  at: number;
  event: StepEvent;
}

interface InnerStep extends Step {
  askedSeq: number;
  answeredSeq: number;
  /** Of the newest event of the call that is shown. */
  callSeq: number;
  returnedSeq: number;
  waitingSeq: number;
}

/** A timeline in which nothing has happened. */
export function noEvents(): RunTimeline {
  const empty: Inner = {
    seq: 0,
    name: "",
    steps: [],
    stepsLeftOut: 0,
    remarks: [],
    remarksLeftOut: 0,
    debug: false,
    unknown: 0,
    byIteration: new Map(),
    ahead: new Set(),
    newest: { seq: 0 },
  };
  return empty;
}

/** Adds events to a timeline of `noEvents`, which is changed and given back. */
export function foldEvents(timeline: RunTimeline, events: readonly RunEvent[]): RunTimeline {
  const run = timeline as Inner;
  for (const event of events) {
    if (isNew(run, event.seq)) {
      take(run, event);
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

/** What is under way now: since when, and which tool if it is none of the model's. */
export function underWay({ steps, end }: RunTimeline): { iteration: number; since: number; tool?: string } | undefined {
  const step = end === undefined ? steps.at(-1) : undefined;
  if (step?.tool?.open === true && step.tool.waiting === undefined) {
    return { iteration: step.iteration, since: step.tool.calledAt ?? 0, tool: step.tool.tool };
  }
  const { open, askedAt } = step?.model ?? {};
  return step !== undefined && open === true ? { iteration: step.iteration, since: askedAt ?? 0 } : undefined;
}

/** The call of which nobody knows what came of it. */
export function waitingCall({ steps, end }: RunTimeline): ToolStep | undefined {
  const tool = end === undefined ? steps.at(-1)?.tool : undefined;
  return tool?.waiting === undefined ? undefined : tool;
}

/** Codes of an answer of the model that was not taken. */
const BAD_ANSWER: readonly string[] = [
  ...["INVALID_JSON", "INVALID_ACTION", "INVALID_CONFIDENCE", "TOOL_NOT_ALLOWED", "TOOL_INPUT_INVALID"],
  ...["MODEL_REFUSED", "MODEL_TRUNCATED", "OUTPUT_NOT_JSON"],
];

/** Why the model was asked and has not answered, in a run that is over. */
export type Unanswered = "unanswered" | "cancelled" | "ended";

export function whyUnanswered({ error }: RunEnd): Unanswered {
  if (error !== undefined && BAD_ANSWER.includes(error.code)) {
    return "unanswered";
  }
  return error?.code === "CANCELLED" ? "cancelled" : "ended";
}

/** How sure the model was in each iteration in which it said so. */
export function confidences({ steps }: RunTimeline): { iteration: number; confidence: number }[] {
  return steps.flatMap(({ iteration, model }) => {
    const confidence = model?.confidence;
    return confidence === undefined ? [] : [{ iteration, confidence }];
  });
}

function isNew(run: Inner, seq: number): boolean {
  if (!Number.isSafeInteger(seq) || seq <= run.seq || run.ahead.has(seq)) {
    return false;
  }
  if (seq === run.seq + 1 && run.ahead.size === 0) {
    run.seq = seq;
    return true;
  }
  run.ahead.add(seq);
  if (run.ahead.size > MAX_AHEAD) {
    // What is missing will not come any more: go on after what is there.
    run.seq = [...run.ahead].reduce((highest, one) => Math.max(highest, one), 0);
    run.ahead.clear();
  }
  while (run.ahead.delete(run.seq + 1)) {
    run.seq += 1;
  }
  return true;
}

function take(run: Inner, { seq, at, event }: RunEvent): void {
  switch (event.type) {
    case "run_started":
      run.name = cut(event.name);
      run.startedAt = at;
      run.maxIterations = event.maxIterations;
      return;
    case "memory_recalled":
      run.remarks.push({ seq, at, is: event.type, messages: event.messages });
      return;
    case "memory_cleared":
      run.remarks.push({ seq, at, is: event.type });
      return;
    case "memory_failed":
      run.remarks.push({ seq, at, is: event.type, error: { ...event.error, message: cut(event.error.message) } });
      return;
    case "run_finished": {
      const { type: _, error, ...end } = event;
      run.end = { at, ...end, ...(error && { error: { ...error, message: cut(error.message) } }) };
      return;
    }
    case "model_called":
    case "model_answered":
    case "tool_called":
    case "tool_returned":
    case "waiting_for_outcome": {
      const step = stepOf(run, event.iteration);
      if (step !== undefined) {
        run.debug ||= previewOf(event) !== undefined;
        takeStep(step, seq, at, event);
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

type StepEvent = Extract<RunEventKind, { iteration: number }>;

/** A new one if need be; none for iterations that are not kept any more. */
function stepOf(run: Inner, iteration: number): InnerStep | undefined {
  if (!Number.isSafeInteger(iteration) || (run.stepsLeftOut > 0 && iteration <= run.stepsLeftOut)) {
    return undefined;
  }
  let step = run.byIteration.get(iteration);
  if (step === undefined) {
    step = { iteration, askedSeq: 0, answeredSeq: 0, callSeq: 0, returnedSeq: 0, waitingSeq: 0 };
    run.byIteration.set(iteration, step);
  }
  return step;
}

function takeStep(step: InnerStep, seq: number, at: number, event: StepEvent): void {
  if (event.type === "model_called" || event.type === "model_answered") {
    const model = (step.model ??= { open: true });
    if (event.type === "model_answered") {
      takeAnswer(model, seq > step.answeredSeq, at, event);
      step.answeredSeq = Math.max(step.answeredSeq, seq);
    } else if (seq > step.askedSeq) {
      step.askedSeq = seq;
      model.askedAt = at;
      put(model, "prompt", previewOf(event));
    }
    model.open = step.askedSeq > step.answeredSeq;
  } else {
    takeCall(step, seq, at, event);
  }
}

function takeAnswer(model: ModelStep, newer: boolean, at: number, event: Extract<StepEvent, { type: "model_answered" }>): void {
  if (newer) {
    model.answeredAt = at;
    model.action = event.action;
    model.durationMs = event.durationMs;
    put(model, "tool", event.tool === undefined ? undefined : cut(event.tool));
    put(model, "confidence", typeof event.confidence === "number" ? event.confidence : undefined);
    put(model, "usage", event.usage);
    put(model, "preview", previewOf(event));
  }
}

function takeCall(step: InnerStep, seq: number, at: number, event: Extract<StepEvent, { callId: string }>): void {
  if (step.tool !== undefined && step.tool.callId !== event.callId) {
    if (seq < step.callSeq) {
      return;
    }
    delete step.tool;
    [step.callSeq, step.returnedSeq, step.waitingSeq] = [0, 0, 0];
  }
  step.callSeq = Math.max(step.callSeq, seq);
  const tool = (step.tool ??= { tool: cut(event.tool), callId: event.callId, open: true });
  if (event.type === "tool_called") {
    tool.calledAt = at;
    put(tool, "input", previewOf(event));
  } else if (event.type === "tool_returned") {
    step.returnedSeq = Math.max(step.returnedSeq, seq);
    tool.returnedAt = at;
    tool.success = event.success;
    tool.durationMs = event.durationMs;
    put(tool, "error", event.error === undefined ? undefined : cut(event.error));
    put(tool, "output", previewOf(event));
  } else if (seq > step.waitingSeq) {
    step.waitingSeq = seq;
    tool.waiting = { at, reason: cut(event.reason) };
  }
  tool.open = step.returnedSeq === 0;
  if (step.waitingSeq > 0 && step.returnedSeq > step.waitingSeq) {
    delete tool.waiting;
    tool.byPerson = true;
  } else {
    delete tool.byPerson;
  }
}

function lastOf({ at, event }: LastEvent): LastAction {
  const base = { at, iteration: event.iteration };
  const tool = "tool" in event && event.tool !== undefined ? cut(event.tool) : "";
  switch (event.type) {
    case "model_called":
      return { ...base, is: "asked" };
    case "model_answered":
      return { ...base, is: "answered", action: event.action, ...(event.tool !== undefined && { tool }) };
    case "tool_called":
      return { ...base, is: "called", tool };
    case "tool_returned":
      return { ...base, is: "returned", tool, success: event.success };
    case "waiting_for_outcome":
      return { ...base, is: "waiting", tool };
  }
}

function previewOf(event: StepEvent): string | undefined {
  const preview = "preview" in event ? event.preview : undefined;
  return typeof preview === "string" ? cut(preview) : undefined;
}

/** Sets a property, if there is a value for it. */
function put<T, K extends keyof T>(target: T, key: K, value: T[K] | undefined): void {
  if (value !== undefined) {
    target[key] = value;
  }
}
