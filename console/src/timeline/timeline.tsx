// The timeline of a run: `narrow` for a sidebar, `wide` as a waterfall of bars. Draws what it is given, and requests only texts
// that a user opens.

import { type RunTimeline, confidences, usedBy } from "@redflow/bindings";
import type { VNode } from "preact";
import { ConfidenceChart } from "./chart.js";
import { useClock } from "./clock.js";
import { type TimelineEnvironment, EnvironmentProvider, useEnvironment } from "./environment.js";
import { EndLines, LastLine, usedText } from "./sentences.js";
import { type LiveText, Steps } from "./steps.js";
import { type ReadTexts, TextDetails } from "./texts.js";
import { Waterfall, type WideLayout } from "./waterfall.js";

export interface TimelineProps {
  environment: TimelineEnvironment;
  timeline: RunTimeline;
  /** The time at which it is drawn. The clocks of the running calls continue from it. */
  now: number;
  /** The text that the model writes now. */
  live?: LiveText | undefined;
  layout: NarrowLayout | WideLayout;
}

export interface NarrowLayout {
  mode: "narrow";
  readTexts: ReadTexts;
}

export function Timeline({ environment, ...props }: TimelineProps): VNode {
  return (
    <EnvironmentProvider value={environment}>
      <Content {...props} />
    </EnvironmentProvider>
  );
}

function Content({ timeline, now, live, layout }: Omit<TimelineProps, "environment">): VNode {
  const environment = useEnvironment();
  const clock = useClock(timeline, now);
  const { end, unknown } = timeline;
  const used = usedBy(timeline);
  return (
    <div class={`redflow-timeline redflow-timeline-${layout.mode}`}>
      <LastLine timeline={timeline} />
      {layout.mode === "wide" ? (
        <Waterfall {...{ timeline, clock, live, layout }} />
      ) : (
        <>
          {used && <p class="redflow-hint redflow-used">{usedText(environment, used)}</p>}
          {confidences(timeline).length > 0 && (
            <div class="redflow-confidences">
              <span class="redflow-label">{environment.words("timeline.chart.title")}</span>
              <ConfidenceChart timeline={timeline} />
            </div>
          )}
          <Steps {...{ timeline, live, clock, readTexts: layout.readTexts }} />
        </>
      )}
      {end && <EndLines end={end} />}
      {layout.mode === "narrow" && end !== undefined && end.error === undefined && (
        <TextDetails name="output" version={String(end.at)} read={async () => (await layout.readTexts(end.iterations)).output} />
      )}
      {unknown > 0 && <p class="redflow-hint">{environment.words("timeline.unknown", { n: unknown })}</p>}
    </div>
  );
}
