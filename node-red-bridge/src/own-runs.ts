// The runs of one runtime's own Node-RED, out of all that its sidecar has: listed, shown, ended, answered. Owns that runs
// of others are not there for it; keeps of runs no more than whose they are.

import { Recent } from "./recent";
import type { Runtime } from "./runtime";
import { NotDone } from "./sidecar-api";
import type { ApiAnswer } from "./sidecar-api";

/** Runs that are known to be ours. Of one that is not known the sidecar is asked first. */
const KNOWN_RUNS = 10_000;

const known = new WeakMap<Runtime, OwnRuns>();

/** The runs of this Node-RED. */
export class OwnRuns {
  private readonly ours = new Recent(KNOWN_RUNS);

  private constructor(private readonly runtime: Runtime) {}

  /** Those of a runtime. */
  static of(runtime: Runtime): OwnRuns {
    const runs = known.get(runtime) ?? new OwnRuns(runtime);
    known.set(runtime, runs);
    return runs;
  }

  /** A page of them. */
  async list(query: Record<string, string>): Promise<ApiAnswer> {
    const { instance, api } = this.runtime;
    const answer = await api.ask("GET", `/api/runs?${String(new URLSearchParams({ ...query, instance }))}`);
    const runs = fieldOf(answer.value, "runs");
    for (const summary of Array.isArray(runs) ? runs : []) {
      this.learn(instance, fieldOf(summary, "runId"), summary);
    }
    return answer;
  }

  /** All of one. */
  async show(run: string): Promise<ApiAnswer> {
    const { instance, api } = this.runtime;
    const answer = await api.ask("GET", `/api/runs/${run}`);
    if (!this.learn(instance, run, fieldOf(answer.value, "summary"))) {
      throw unknown();
    }
    return answer;
  }

  /** What happened in one after an event. Each event says whose it is. */
  async events(run: string, after: number): Promise<ApiAnswer> {
    const { instance, api } = this.runtime;
    const answer = await api.ask("GET", `/api/runs/${run}/events?after=${after}`);
    const events: unknown[] = Array.isArray(answer.value) ? answer.value : [];
    if (events.length === 0) {
      await this.claim(run);
    } else if (!events.every((event) => this.learn(instance, run, event))) {
      throw unknown();
    }
    return answer;
  }

  /** Ends one, or says what came of the call it waits for. */
  async tell(run: string, verb: "cancel" | "resolve", body: unknown): Promise<ApiAnswer> {
    await this.claim(run);
    return this.runtime.api.ask("POST", `/api/runs/${run}/${verb}`, body);
  }

  /** Makes sure that a run is ours. */
  private async claim(run: string): Promise<void> {
    if (!this.ours.has(keyOf(this.runtime.instance, run))) {
      await this.show(run);
    }
  }

  private learn(instance: string, run: unknown, holder: unknown): boolean {
    const ours = typeof run === "string" && fieldOf(fieldOf(holder, "agent"), "instance") === instance;
    if (ours) {
      this.ours.add(keyOf(instance, run));
    }
    return ours;
  }
}

/** A runtime may become another instance, whose runs are others. */
function keyOf(instance: string, run: string): string {
  return `${run} ${instance}`;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function unknown(): NotDone {
  return new NotDone(404, "RUN_UNKNOWN", "There is no such run of this Node-RED; it may have been removed.");
}
