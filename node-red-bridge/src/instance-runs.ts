// The runs of this Node-RED, out of all runs of its sidecar: list, show, cancel, resolve. Hides the runs of other
// Node-REDs. Stores nothing of a run but that it is one of ours.

import { RecentSet } from "./recent-set";
import type { Runtime } from "./runtime";
import { ApiFailure } from "./sidecar-api";
import type { ApiResponse } from "./sidecar-api";

/** How many of our runs are remembered. For others the owner is requested from the sidecar first. */
const KNOWN_RUNS = 10_000;

const byRuntime = new WeakMap<Runtime, InstanceRuns>();

/** The runs of this Node-RED at one runtime. */
export class InstanceRuns {
  private readonly known = new RecentSet(KNOWN_RUNS);

  private constructor(private readonly runtime: Runtime) {}

  static forRuntime(runtime: Runtime): InstanceRuns {
    const runs = byRuntime.get(runtime) ?? new InstanceRuns(runtime);
    byRuntime.set(runtime, runs);
    return runs;
  }

  /** One page of runs. */
  async list(query: Record<string, string>): Promise<ApiResponse> {
    const { instance, api } = this.runtime;
    const response = await api.request("GET", `/api/runs?${String(new URLSearchParams({ ...query, instance }))}`);
    const runs = fieldOf(response.value, "runs");
    for (const summary of Array.isArray(runs) ? runs : []) {
      this.remember(instance, fieldOf(summary, "runId"), summary);
    }
    return response;
  }

  /** One run with its details. */
  async show(run: string): Promise<ApiResponse> {
    const { instance, api } = this.runtime;
    const response = await api.request("GET", `/api/runs/${run}`);
    if (!this.remember(instance, run, fieldOf(response.value, "summary"))) {
      throw unknownRun();
    }
    return response;
  }

  /** The events of a run after a sequence number. Each event names its Node-RED. */
  async events(run: string, after: number): Promise<ApiResponse> {
    const { instance, api } = this.runtime;
    const response = await api.request("GET", `/api/runs/${run}/events?after=${after}`);
    const events: unknown[] = Array.isArray(response.value) ? response.value : [];
    if (events.length === 0) {
      await this.requireOwn(run);
    } else if (!events.every((event) => this.remember(instance, run, event))) {
      throw unknownRun();
    }
    return response;
  }

  /** One recorded iteration. */
  async iteration(run: string, number: number): Promise<ApiResponse> {
    await this.requireOwn(run);
    return this.runtime.api.request("GET", `/api/runs/${run}/iterations/${number}`);
  }

  /** Cancels a run, or reports the outcome of the call that it waits for. */
  async act(run: string, verb: "cancel" | "resolve", body: unknown): Promise<ApiResponse> {
    await this.requireOwn(run);
    return this.runtime.api.request("POST", `/api/runs/${run}/${verb}`, body);
  }

  /** Throws if the run belongs to another Node-RED. */
  async requireOwn(run: string): Promise<void> {
    if (!this.known.has(keyOf(this.runtime.instance, run))) {
      await this.show(run);
    }
  }

  /** Remembers a run if its summary or event names our instance. Returns whether it does. */
  private remember(instance: string, run: unknown, source: unknown): boolean {
    const isOurs = typeof run === "string" && fieldOf(fieldOf(source, "agent"), "instance") === instance;
    if (isOurs) {
      this.known.add(keyOf(instance, run));
    }
    return isOurs;
  }
}

/** Includes the instance, because the user may change the instance of a runtime. */
function keyOf(instance: string, run: string): string {
  return `${run} ${instance}`;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function unknownRun(): ApiFailure {
  return new ApiFailure(404, "RUN_UNKNOWN", "There is no such run of this Node-RED; it may have been removed.");
}
