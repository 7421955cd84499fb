// The steps of a run: the shared timeline as a waterfall, the questions of a run that waits, and its confidence.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RunId, RunSummary, RunTimeline, TreeRun } from "@redflow/bindings";
import { confidences } from "@redflow/bindings";
import { api, sayFailure, shade } from "../../app.js";
import { environment } from "../../parts/environment.js";
import { Resolve } from "../../parts/resolve.js";
import { go } from "../../router.js";
import { ConfidenceChart, EnvironmentProvider, Timeline } from "../../timeline/index.js";
import type { Selection } from "../../timeline/index.js";
import { t } from "../../words.js";
import type { WrittenText } from "./run.js";

interface StepsProps {
  summary: RunSummary;
  timeline: RunTimeline;
  written: WrittenText | undefined;
  chosen: number;
  onChoose: (iteration: number) => void;
  onChange: (summary: RunSummary) => void;
}

export function Steps({ summary, timeline, written, chosen, onChoose, onChange }: StepsProps) {
  const [selection, setSelection] = useState<Selection>(chosen === 0 ? { is: "run" } : { is: "iteration", iteration: chosen });
  const [childRuns, setChildRuns] = useState<readonly TreeRun[]>([]);
  const [nextChild, setNextChild] = useState<RunId | undefined>();
  const { runId, children = 0, status } = summary;
  const readChildren = async (after?: RunId): Promise<void> => {
    try {
      const { runs, next } = await api.tree(runId, after);
      setChildRuns((old) => [...(after === undefined ? [] : old), ...runs]);
      setNextChild(next);
    } catch (error) {
      sayFailure(error);
    }
  };
  useEffect(() => {
    if (children > 0) {
      void readChildren();
    }
  }, [runId, children, status]);
  const before = useRef(chosen);
  useEffect(() => {
    // The keys and the address choose iterations too.
    if (before.current !== chosen && !("iteration" in selection && selection.iteration === chosen)) {
      setSelection({ is: "iteration", iteration: chosen });
    }
    before.current = chosen;
  }, [chosen]);
  const choose = (next: Selection): void => {
    setSelection(next);
    if ("iteration" in next) {
      onChoose(next.iteration);
    }
  };
  const live = written === undefined || shade.value ? undefined : written;
  return (
    <div class="steps">
      {status === "waiting" ? shade.value ? <p class="muted">{t("shade.hidden")}</p> : <Resolve run={summary} onDone={onChange} /> : null}
      <Timeline
        environment={environment}
        timeline={timeline}
        now={Date.now()}
        live={live}
        layout={{
          mode: "wide",
          childRuns,
          chosen: selection,
          onChoose: choose,
          onOpenRun: (run) => go(["runs", run.runId]),
        }}
      />
      {nextChild === undefined ? null : (
        <p>
          {t("run.children.shown", { n: childRuns.length })}{" "}
          <button type="button" onClick={() => void readChildren(nextChild)}>
            {t("runs.children.more")}
          </button>
        </p>
      )}
      {confidences(timeline).length > 1 ? (
        <EnvironmentProvider value={environment}>
          <div class="confidence">
            <span class="muted">{t("step.confidence")}</span> <ConfidenceChart timeline={timeline} />
          </div>
        </EnvironmentProvider>
      ) : null}
    </div>
  );
}
