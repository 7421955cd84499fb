// Runs as they are now, for views that show them. Owns when the module is asked: when a view comes to be seen, when an
// agent's status or a sidecar changes, and every two seconds while something shown is at work. A view that is not seen
// asks nothing. Draws nothing. What was shown stays when the sidecar goes; `problem` says so.

import type { RunEvent, RunId, RunList, RunStatus, RunSummary } from "@redflow/bindings";
import type { AgentError, AgentErrors, Problem, RuntimeList } from "../admin-api.js";
import { Refused, type RunsQuery, ask } from "./ask.mjs";
import { type RunTimeline, foldEvents, noEvents, waitingCall } from "./timeline.mjs";

/** Between two requests of a view, however often it is nudged. */
const GAP_MS = 300;

/** While something shown is at work. */
const AT_WORK_MS = 2_000;

/** After a failure, doubled with each further one … */
const RETRY_MS = 2_000;

/** … up to this. */
const MAX_RETRY_MS = 30_000;

/** Something that is kept up to date. */
export interface Watch {
  /** Whether it is to be seen. A new watch is. */
  visible(seen: boolean): void;
  /** Asks as soon as may be. */
  refresh(): void;
  stop(): void;
}

/** What the last request that worked gave, and why a later one did not. */
export interface RunsNews {
  runs: RunSummary[];
  /** Ask for `before` this run to see older ones. */
  next?: RunId;
  problem?: Problem;
}

export interface RunNews {
  timeline: RunTimeline;
  problem?: Problem;
}

export interface RunsWish extends RunsQuery {
  runtime: string;
}

export interface RunWish {
  runtime: string;
  run: RunId;
  /** Only its status is a nudge then. */
  agent?: string;
}

export interface ErrorsNews {
  errors: AgentError[];
  problem?: Problem;
}

export interface RuntimesNews {
  /** Undefined until they are known. */
  list?: RuntimeList;
  problem?: Problem;
}

/** What a watch needs of the world. */
export interface Surroundings {
  runtimes(): Promise<RuntimeList>;
  runs(runtime: string, query: RunsQuery): Promise<RunList>;
  events(runtime: string, run: RunId, after: number): Promise<RunEvent[]>;
  errors(agent: string): Promise<AgentErrors>;
  /** Calls when an agent's status has changed, or without an agent when the sidecars have. Gives what ends it. */
  onNudge(listener: (agent: string | undefined) => void): () => void;
  hidden(): boolean;
  onHidden(listener: () => void): () => void;
  now(): number;
  after(ms: number, act: () => void): () => void;
}

/** Runs that are not over yet, and may change by themselves. */
export function isAtWork(status: RunStatus): boolean {
  return status === "running";
}

export function watchRuns(wish: RunsWish, listener: (news: RunsNews) => void, around = page): Watch {
  const { runtime, ...query } = wish;
  let news: RunsNews = { runs: [] };
  const get = async (): Promise<boolean> => {
    const { runs, next } = await around.runs(runtime, query);
    news = { runs, ...(next !== undefined && { next }) };
    return runs.some(({ status }) => isAtWork(status));
  };
  const tell = (problem?: Problem): void => listener(problem === undefined ? news : { ...news, problem });
  return new Asking(get, tell, wish.agent, around);
}

export function watchRun(wish: RunWish, listener: (news: RunNews) => void, around = page): Watch {
  const timeline = noEvents();
  const get = async (): Promise<boolean> => {
    foldEvents(timeline, await around.events(wish.runtime, wish.run, timeline.seq));
    return timeline.end === undefined && waitingCall(timeline) === undefined;
  };
  const tell = (problem?: Problem): void => listener(problem === undefined ? { timeline } : { timeline, problem });
  const over = (): boolean => timeline.end !== undefined;
  return new Asking(get, tell, wish.agent, around, over);
}

/** What the module keeps of an agent's errors. Not every one of them is a nudge, so it is asked as if something were at work. */
export function watchErrors(agent: string, listener: (news: ErrorsNews) => void, around = page): Watch {
  let errors: AgentError[] = [];
  const get = async (): Promise<boolean> => {
    errors = (await around.errors(agent)).errors;
    return true;
  };
  const tell = (problem?: Problem): void => listener(problem === undefined ? { errors } : { errors, problem });
  return new Asking(get, tell, agent, around);
}

/** The sidecars of the flow that runs. */
export function watchRuntimes(listener: (news: RuntimesNews) => void, around = page): Watch {
  let news: RuntimesNews = {};
  const get = async (): Promise<boolean> => {
    news = { list: await around.runtimes() };
    return false;
  };
  const tell = (problem?: Problem): void => listener(problem === undefined ? news : { ...news, problem });
  return new Asking(get, tell, NO_AGENT, around);
}

/** No status of an agent is a nudge. */
const NO_AGENT = "";

class Asking implements Watch {
  private seen = true;
  private stopped = false;
  private asking = false;
  /** Something has changed since it was asked, or nothing was asked yet. */
  private stale = true;
  private atWork = false;
  private failures = 0;
  private problem: Problem | undefined;
  /** When the last request came back. */
  private last = Number.NEGATIVE_INFINITY;
  private cancelTimer: (() => void) | undefined;
  private readonly ends: (() => void)[];

  constructor(
    /** Whether something is at work still. */
    private readonly get: () => Promise<boolean>,
    private readonly tell: (problem?: Problem) => void,
    private readonly agent: string | undefined,
    private readonly around: Surroundings,
    /** Nothing can change any more. */
    private readonly over: () => boolean = () => false,
  ) {
    this.ends = [around.onNudge((changed) => this.nudge(changed)), around.onHidden(() => this.turned())];
    // Not yet: whoever made it may have to say first that it is not seen.
    queueMicrotask(() => this.plan());
  }

  visible(seen: boolean): void {
    // What happened while nobody looked was not asked for.
    this.stale ||= seen && !this.seen;
    this.seen = seen;
    this.plan();
  }

  refresh(): void {
    this.stale = true;
    this.failures = 0;
    this.plan();
  }

  stop(): void {
    this.stopped = true;
    this.cancelTimer?.();
    for (const end of this.ends.splice(0)) {
      end();
    }
  }

  /** The page was hidden, or is seen again. Nudges may have been lost meanwhile. */
  private turned(): void {
    this.stale ||= !this.around.hidden();
    this.plan();
  }

  private nudge(changed: string | undefined): void {
    if (changed === undefined) {
      // The sidecar may be back: no reason to wait longer.
      this.refresh();
    } else if (this.agent === undefined || this.agent === changed) {
      this.stale = true;
      this.plan();
    }
  }

  /** Decides when to ask next. Called whenever something has changed that matters for that. */
  private plan(): void {
    this.cancelTimer?.();
    this.cancelTimer = undefined;
    const wait = this.wait();
    if (this.stopped || this.asking || !this.seen || this.around.hidden() || wait === undefined) {
      return;
    }
    const rest = this.last + wait - this.around.now();
    if (rest > 0) {
      this.cancelTimer = this.around.after(rest, () => this.plan());
    } else {
      void this.request();
    }
  }

  /** How long after the last answer; undefined if there is nothing to ask for. */
  private wait(): number | undefined {
    if (this.over() && this.problem === undefined) {
      return undefined;
    }
    if (this.failures > 0) {
      return Math.min(RETRY_MS * 2 ** (this.failures - 1), MAX_RETRY_MS);
    }
    if (this.stale) {
      return GAP_MS;
    }
    return this.atWork ? AT_WORK_MS : undefined;
  }

  private async request(): Promise<void> {
    this.asking = true;
    this.stale = false;
    try {
      this.atWork = await this.get();
      this.failures = 0;
      this.problem = undefined;
    } catch (error) {
      this.failures = Math.min(this.failures + 1, 10);
      this.problem = problemOf(error);
    }
    this.asking = false;
    this.last = this.around.now();
    if (!this.stopped) {
      this.tell(this.problem);
      this.plan();
    }
  }
}

/** A failure in the words of who refused. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refused) {
    return error.problem;
  }
  return { code: "INTERNAL", message: error instanceof Error ? error.message : "" };
}

/** Who wants to know of nudges. There is one subscription for all: each new one makes Node-RED send all statuses again. */
const nudged = new Set<(agent: string | undefined) => void>();
let subscribed = false;

function subscribe(): void {
  if (subscribed) {
    return;
  }
  subscribed = true;
  const tell = (agent: string | undefined): void => [...nudged].forEach((listener) => listener(agent));
  RED.comms.subscribe("redflow/runtimes", () => tell(undefined));
  RED.comms.subscribe("status/#", (topic) => {
    const id = topic.slice("status/".length);
    const node = RED.nodes.node(id);
    // Agents within subflows have ids that the editor does not know.
    if (node === null || node === undefined || node.type === "agent-core") {
      tell(id);
    }
  });
}

/** The page and Node-RED's editor. */
const page: Surroundings = {
  runtimes: ask.runtimes,
  runs: ask.runs,
  events: ask.events,
  errors: ask.errors,
  onNudge(listener) {
    subscribe();
    nudged.add(listener);
    return () => nudged.delete(listener);
  },
  hidden: () => document.hidden,
  onHidden(listener) {
    document.addEventListener("visibilitychange", listener);
    return () => document.removeEventListener("visibilitychange", listener);
  },
  now: () => Date.now(),
  after(ms, act) {
    const timer = setTimeout(act, ms);
    return () => clearTimeout(timer);
  },
};
