// What went wrong at an agent, kept up to date while somebody looks: the failed runs, what the module keeps, and the checker's
// word. Owns putting them together; when somebody is asked is runs-feed's.

import type { Diagnostic } from "@redflow/bindings";
import type { Problem } from "../admin-api.js";
import { type ErrorGroup, errorsOf } from "./agent-errors.mjs";
import type { Whose } from "./agent-runs-view.mjs";
import { type ErrorsNews, type RunsNews, type Watch, watchErrors, watchRuns } from "./runs-feed.mjs";

/** Failed runs that are asked for. */
const NEWEST_FAILED = 50;

export interface ErrorsFeed {
  /** Whether it is to be seen. Nothing is asked before. */
  visible(seen: boolean): void;
  of(whose: Whose | undefined): void;
  /** The checker has spoken. */
  checked(): void;
  stop(): void;
}

/** `tell` is called with what is known, and why it is not more. */
export function errorsFeed(
  node: string,
  checker: () => Diagnostic[],
  tell: (groups: ErrorGroup[], problem: Problem | undefined) => void,
): ErrorsFeed {
  let whose: Whose | undefined;
  let watches: Watch[] = [];
  let seen = false;
  let runs: RunsNews = { runs: [] };
  let kept: ErrorsNews = { errors: [] };

  const all = (): void => {
    // An agent that is not deployed has none kept, which the runs' answer says too.
    const keptProblem = kept.problem?.code === "NOT_FOUND" ? undefined : kept.problem;
    tell(errorsOf(checker(), runs.runs, kept.errors, node), runs.problem ?? keptProblem);
  };

  const begin = (): void => {
    if (watches.length === 0 && seen && whose !== undefined) {
      const failed = watchRuns({ ...whose, status: "failed", limit: NEWEST_FAILED }, (news) => {
        runs = news;
        all();
      });
      const errors = watchErrors(whose.agent, (news) => {
        kept = news;
        all();
      });
      watches = [failed, errors];
    }
  };

  const stop = (): void => watches.splice(0).forEach((watch) => watch.stop());

  return {
    visible(now) {
      seen = now;
      begin();
      watches.forEach((watch) => watch.visible(now));
      all();
    },
    of(other) {
      if (other?.agent !== whose?.agent || other?.runtime !== whose?.runtime) {
        stop();
        [whose, runs, kept] = [other, { runs: [] }, { errors: [] }];
        begin();
      }
      all();
    },
    checked: all,
    stop,
  };
}
