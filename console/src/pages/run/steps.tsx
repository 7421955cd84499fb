// The steps of a run: the shared timeline as a waterfall, the questions of a run that waits, and its confidence.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RunSummary, RunTimeline, TreeRun } from "@redflow/bindings";
import { confidences } from "@redflow/bindings";
import { shade } from "../../app.js";
import { environment } from "../../parts/environment.js";
import { Resolve } from "../../parts/resolve.js";
import { formatPlace, go } from "../../router.js";
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
  childRuns: readonly TreeRun[];
  /** Whether there are more child runs. */
  isTreeCut: boolean;
}

export function Steps({ summary, timeline, written, chosen, onChoose, onChange, childRuns, isTreeCut }: StepsProps) {
  const [selection, setSelection] = useState<Selection>(chosen === 0 ? { is: "run" } : { is: "iteration", iteration: chosen });
  const { status } = summary;
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
          addressOf: (run) => formatPlace(["runs", run.runId]),
        }}
      />
      {isTreeCut ? <p class="muted">{t("run.tree.cut", { n: childRuns.length })}</p> : null}
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
