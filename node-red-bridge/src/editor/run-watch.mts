// Watches for views: they request runs, errors or runtimes again when they change. A watch sends a request when it becomes
// visible, when the status of an agent or a sidecar changes, and every two seconds while a run is active, or more often while its
// model writes. A hidden watch sends none. When the sidecar is offline, the last data stay, with `problem`.

import type { RunEvent, RunId, RunList, RunStatus, RunSummary } from "@redflow/bindings";
import type { AgentError, AgentErrors, LiveText, Problem, RuntimeList } from "../admin-api.js";
import { AGENT_PORTS } from "../sidecar-types.js";
import { RequestError, type RunsQuery, adminApi } from "./admin-client.mjs";
import { isAgent } from "./flow.mjs";
import { type RunTimeline, activeCalls, applyEvents, emptyTimeline, isWaiting } from "@redflow/bindings";

/** The shortest time between two requests of a watch. */
const MIN_GAP_MS = 300;

/** The time between two requests while a run is active. */
const ACTIVE_MS = 2_000;

/** The time between two requests while the text of a model arrives. */
const WRITING_MS = 500;

/** The delay after a failure; doubles with each further one. */
const RETRY_MS = 2_000;

/** The longest delay after a failure. */
const MAX_RETRY_MS = 30_000;

export interface Watch {
  /** A hidden watch sends no requests. A new watch is visible. */
  setVisible(visible: boolean): void;
  /** Sends a request as soon as possible. */
  refresh(): void;
  stop(): void;
}

/** The data of the last successful request, and the problem if a later one failed. */
export interface RunsUpdate {
  runs: RunSummary[];
  /** Older runs are before this one. */
  next?: RunId;
  problem?: Problem;
}

export interface RunUpdate {
  timeline: RunTimeline;
  /** The text that the model writes now. */
  live?: LiveText;
  problem?: Problem;
}

export interface RunsSelection extends RunsQuery {
  runtime: string;
  /** The shortest time between two requests. */
  minGapMs?: number;
}

export interface RunSelection {
  runtime: string;
  run: RunId;
  /** Then only the status of this agent triggers a request. */
  agent?: string;
}

export interface ErrorsUpdate {
  errors: AgentError[];
  problem?: Problem;
}

export interface RuntimesUpdate {
  /** Undefined until the first response. */
  list?: RuntimeList;
  problem?: Problem;
}

/** The environment of a watch. */
export interface WatchEnvironment {
  runtimes(): Promise<RuntimeList>;
  runs(runtime: string, query: RunsQuery): Promise<RunList>;
  events(runtime: string, run: RunId, after: number): Promise<RunEvent[]>;
  text(runtime: string, run: RunId): Promise<LiveText | undefined>;
  /** The type of a running agent; undefined if the editor has no such node. */
  agentType(id: string): string | undefined;
  errors(agent: string): Promise<AgentErrors>;
  /** Calls `listener` with the agent whose status changed, or without one when a sidecar changed. Returns the unsubscribe. */
  onChange(listener: (agent: string | undefined) => void): () => void;
  hidden(): boolean;
  onHidden(listener: () => void): () => void;
  now(): number;
  after(ms: number, act: () => void): () => void;
}

/** Whether a run may change without a user. */
export function isActive(status: RunStatus): boolean {
  return status === "running";
}

export function watchRuns(selection: RunsSelection, listener: (update: RunsUpdate) => void, env = page): Watch {
  const { runtime, minGapMs, ...query } = selection;
  let update: RunsUpdate = { runs: [] };
  const request = async (): Promise<boolean> => {
    const { runs, next } = await env.runs(runtime, query);
    update = { runs, ...(next !== undefined && { next }) };
    return runs.some(({ status }) => isActive(status));
  };
  const notify = (problem?: Problem): void => listener(problem === undefined ? update : { ...update, problem });
  return new Poller({ request, notify, agent: selection.agent, env, ...(minGapMs !== undefined && { minGapMs }) });
}

/** Whether the model of an agent writes for people. That of an agent without a stream port writes JSON for the agent. */
function writesText(agent: string | undefined, env: WatchEnvironment): boolean {
  const type = agent === undefined ? undefined : env.agentType(agent);
  return type !== undefined && (AGENT_PORTS[type]?.includes("stream") ?? false);
}

export function watchRun(selection: RunSelection, listener: (update: RunUpdate) => void, env = page): Watch {
  const { runtime, run } = selection;
  const timeline = emptyTimeline();
  let live: LiveText | undefined;
  let agent: string | undefined;
  const request = async (): Promise<boolean> => {
    const events = await env.events(runtime, run, timeline.seq);
    applyEvents(timeline, events);
    agent ??= events[0]?.agent.nodeId;
    const isActive = timeline.end === undefined && !isWaiting(timeline);
    // Also while a tool runs, so that the text of the next model call is known from its beginning.
    const found = isActive && writesText(agent, env) ? await env.text(runtime, run).catch(() => undefined) : undefined;
    const [call] = activeCalls(timeline);
    live = call?.callId === undefined && found?.iteration === call?.iteration ? found : undefined;
    return isActive;
  };
  const notify = (problem?: Problem): void => listener({ timeline, ...(live && { live }), ...(problem && { problem }) });
  const isFinal = (): boolean => timeline.end !== undefined;
  return new Poller({ request, notify, agent: selection.agent, env, isFinal, isWriting: () => live !== undefined });
}

/** The errors of an agent without a run. Requested all the time, because a new error may not change the agent's status. */
export function watchErrors(agent: string, listener: (update: ErrorsUpdate) => void, env = page): Watch {
  let errors: AgentError[] = [];
  const request = async (): Promise<boolean> => {
    errors = (await env.errors(agent)).errors;
    return true;
  };
  const notify = (problem?: Problem): void => listener(problem === undefined ? { errors } : { errors, problem });
  return new Poller({ request, notify, agent, env });
}

/** The runtimes of the running flow. */
export function watchRuntimes(listener: (update: RuntimesUpdate) => void, env = page): Watch {
  let update: RuntimesUpdate = {};
  const request = async (): Promise<boolean> => {
    update = { list: await env.runtimes() };
    return false;
  };
  const notify = (problem?: Problem): void => listener(problem === undefined ? update : { ...update, problem });
  return new Poller({ request, notify, agent: NO_AGENT, env });
}

/** No status of an agent triggers a request. */
const NO_AGENT = "";

interface PollerOptions {
  /** Requests the data. Resolves with whether a run is active. */
  request: () => Promise<boolean>;
  notify: (problem?: Problem) => void;
  /** Then only the status of this agent triggers a request. */
  agent: string | undefined;
  env: WatchEnvironment;
  minGapMs?: number;
  /** Whether the data cannot change any more. */
  isFinal?: () => boolean;
  /** Whether the data change all the time now. */
  isWriting?: () => boolean;
}

class Poller implements Watch {
  private visible = true;
  private stopped = false;
  private requesting = false;
  /** Whether something may have changed since the last request. */
  private stale = true;
  private active = false;
  private failures = 0;
  private problem: Problem | undefined;
  /** The time of the last response. */
  private last = Number.NEGATIVE_INFINITY;
  private cancelTimer: (() => void) | undefined;
  private readonly unsubscribe: (() => void)[];

  constructor(private readonly options: PollerOptions) {
    const { env } = options;
    this.unsubscribe = [env.onChange((changed) => this.onChange(changed)), env.onHidden(() => this.onPageVisibility())];
    // Later, so that the caller can hide the watch first.
    queueMicrotask(() => this.schedule());
  }

  setVisible(visible: boolean): void {
    // A hidden watch has missed changes.
    this.stale ||= visible && !this.visible;
    this.visible = visible;
    this.schedule();
  }

  refresh(): void {
    this.stale = true;
    this.failures = 0;
    this.schedule();
  }

  stop(): void {
    this.stopped = true;
    this.cancelTimer?.();
    for (const unsubscribe of this.unsubscribe.splice(0)) {
      unsubscribe();
    }
  }

  /** The page was hidden or shown. A hidden page may have missed changes. */
  private onPageVisibility(): void {
    this.stale ||= !this.options.env.hidden();
    this.schedule();
  }

  private onChange(changed: string | undefined): void {
    const { agent } = this.options;
    if (changed === undefined) {
      // The sidecar may be available again: do not wait for the retry.
      this.refresh();
    } else if (agent === undefined || agent === changed) {
      this.stale = true;
      this.schedule();
    }
  }

  /** Schedules the next request, or sends it now. */
  private schedule(): void {
    const { env } = this.options;
    this.cancelTimer?.();
    this.cancelTimer = undefined;
    const delay = this.delay();
    if (this.stopped || this.requesting || !this.visible || env.hidden() || delay === undefined) {
      return;
    }
    const rest = this.last + delay - env.now();
    if (rest > 0) {
      this.cancelTimer = env.after(rest, () => this.schedule());
    } else {
      void this.request();
    }
  }

  /** The delay after the last response; undefined if no request is needed. */
  private delay(): number | undefined {
    if (this.options.isFinal?.() === true && this.problem === undefined) {
      return undefined;
    }
    if (this.failures > 0) {
      return Math.min(RETRY_MS * 2 ** (this.failures - 1), MAX_RETRY_MS);
    }
    if (this.stale) {
      return this.options.minGapMs ?? MIN_GAP_MS;
    }
    const activeMs = this.options.isWriting?.() === true ? WRITING_MS : ACTIVE_MS;
    return this.active ? activeMs : undefined;
  }

  private async request(): Promise<void> {
    this.requesting = true;
    this.stale = false;
    try {
      this.active = await this.options.request();
      this.failures = 0;
      this.problem = undefined;
    } catch (error) {
      this.failures = Math.min(this.failures + 1, 10);
      this.problem = problemOf(error);
    }
    this.requesting = false;
    this.last = this.options.env.now();
    if (!this.stopped) {
      this.options.notify(this.problem);
      this.schedule();
    }
  }
}

/** The problem of a failed request. */
export function problemOf(error: unknown): Problem {
  if (error instanceof RequestError) {
    return error.problem;
  }
  return { code: "INTERNAL", message: error instanceof Error ? error.message : "" };
}

/** The listeners of changes. They share one subscription: each new one makes Node-RED send all statuses again. */
const listeners = new Set<(agent: string | undefined) => void>();
let subscribed = false;

function subscribe(): void {
  if (subscribed) {
    return;
  }
  subscribed = true;
  const notify = (agent: string | undefined): void => [...listeners].forEach((listener) => listener(agent));
  RED.comms.subscribe("redflow/runtimes", () => notify(undefined));
  RED.comms.subscribe("status/#", (topic) => {
    const id = topic.slice("status/".length);
    const node = RED.nodes.node(id);
    // The editor does not know the ids of agents inside subflow instances.
    if (node === undefined || isAgent(node.type)) {
      notify(id);
    }
  });
}

/** The real environment: the page and Node-RED's editor. */
const page: WatchEnvironment = {
  runtimes: adminApi.runtimes,
  runs: adminApi.runs,
  events: adminApi.events,
  text: adminApi.text,
  // Inside a subflow the id of a running node starts with the ids of the instances.
  agentType: (id) => RED.nodes.node(id)?.type ?? RED.nodes.node(id.slice(id.lastIndexOf("-") + 1))?.type,
  errors: adminApi.errors,
  onChange(listener) {
    subscribe();
    listeners.add(listener);
    return () => listeners.delete(listener);
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
