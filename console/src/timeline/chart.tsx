// A small bar chart of the model's confidence in each iteration.

import { type RunTimeline, confidences } from "@redflow/bindings";
import type { VNode } from "preact";
import { useEnvironment } from "./environment.js";
import type { Formats } from "./formats.js";

/** How many iterations are drawn, the newest. */
export const MAX_BARS = 40;

const [BAR, GAP, HEIGHT] = [10, 3, 44];

/** The chart is at least this many bars wide, so that a short run has a readable chart. */
const MIN_BARS = 10;

/** The space for the numbers of the levels. */
const [LEFT, TOP] = [14, 4];

const LEVELS = [0, 0.5, 1];

/** The chart; nothing without confidences. */
export function ConfidenceChart({ timeline }: { timeline: RunTimeline }): VNode | null {
  const { words, formats } = useEnvironment();
  const shown = confidences(timeline).slice(-MAX_BARS);
  if (shown.length === 0) {
    return null;
  }
  const width = LEFT + Math.max(MIN_BARS, shown.length) * (BAR + GAP) + GAP;
  const values = shown.map(({ iteration, confidence }) => `${iteration}: ${formatConfidence(formats, confidence)}`).join(", ");
  return (
    <svg viewBox={`0 0 ${width} ${HEIGHT}`} width={width} height={HEIGHT} role="img" class="redflow-chart">
      <title>{`${words("timeline.chart.title")}: ${values}`}</title>
      {LEVELS.map((level) => (
        <g key={level}>
          <line x1={LEFT} x2={width} y1={yOf(level)} y2={yOf(level)} class="redflow-chart-level" />
          <text x={LEFT - 3} y={yOf(level) + 3} text-anchor="end" aria-hidden="true">
            {level === 0.5 ? "" : level}
          </text>
        </g>
      ))}
      {shown.map(({ iteration, confidence }, index) => {
        const height = Math.max(1, yOf(0) - yOf(clamp(confidence)));
        const x = LEFT + GAP + index * (BAR + GAP);
        return (
          <rect key={iteration} x={x} y={yOf(0) - height} width={BAR} height={height} class="redflow-chart-bar">
            <title>{words("timeline.chart.bar", { iteration, confidence: formatConfidence(formats, confidence) })}</title>
          </rect>
        );
      })}
    </svg>
  );
}

function yOf(level: number): number {
  return HEIGHT - TOP - level * (HEIGHT - 2 * TOP);
}

export function formatConfidence(formats: Formats, confidence: number): string {
  return formats.decimal(clamp(confidence), 2);
}

function clamp(confidence: number): number {
  return Number.isFinite(confidence) ? Math.min(1, Math.max(0, confidence)) : 0;
}
