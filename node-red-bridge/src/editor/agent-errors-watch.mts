// The errors of an agent, updated while they are visible: failed runs, errors that the module keeps, and the checker's
// problems. Merges them; `run-watch.mts` decides when to send requests.

import type { Diagnostic } from "@redflow/bindings";
import type { Problem } from "../admin-api.js";
import { type ErrorGroup, errorsOf } from "./agent-errors.mjs";
import type { AgentRef } from "./agent-runs-view.mjs";
import { type ErrorsUpdate, type RunsUpdate, type Watch, watchErrors, watchRuns } from "./run-watch.mjs";

/** How many failed runs are requested. */
const MAX_FAILED_RUNS = 50;

export interface AgentErrorsWatch {
  /** Sends requests only while it is visible. */
  setVisible(visible: boolean): void;
  setAgent(agent: AgentRef | undefined): void;
  /** The checker has a new result. */
  onChecked(): void;
  stop(): void;
}

/** Calls `listener` with all known errors, and with the problem if a request failed. */
export function watchAgentErrors(
  node: string,
  checkerProblems: () => Diagnostic[],
  listener: (groups: ErrorGroup[], problem: Problem | undefined) => void,
): AgentErrorsWatch {
  let agent: AgentRef | undefined;
  let watches: Watch[] = [];
  let visible = false;
  let runs: RunsUpdate = { runs: [] };
  let withoutRun: ErrorsUpdate = { errors: [] };

  const notify = (): void => {
    // An agent that is not deployed has no such errors; the response for the runs reports it too.
    const problem = withoutRun.problem?.code === "NOT_FOUND" ? undefined : withoutRun.problem;
    listener(errorsOf(checkerProblems(), runs.runs, withoutRun.errors, node), runs.problem ?? problem);
  };

  const start = (): void => {
    if (watches.length === 0 && visible && agent !== undefined) {
      const failed = watchRuns({ ...agent, status: "failed", limit: MAX_FAILED_RUNS }, (update) => {
        runs = update;
        notify();
      });
      const errors = watchErrors(agent.agent, (update) => {
        withoutRun = update;
        notify();
      });
      watches = [failed, errors];
    }
  };

  const stop = (): void => watches.splice(0).forEach((watch) => watch.stop());

  return {
    setVisible(now) {
      visible = now;
      start();
      watches.forEach((watch) => watch.setVisible(now));
      notify();
    },
    setAgent(other) {
      if (other?.agent !== agent?.agent || other?.runtime !== agent?.runtime) {
        stop();
        [agent, runs, withoutRun] = [other, { runs: [] }, { errors: [] }];
        start();
      }
      notify();
    },
    onChecked: notify,
    stop,
  };
}
