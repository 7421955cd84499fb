// A small bar chart of the model's confidence in each iteration.

import { formatDecimal } from "./formats.mjs";
import { text } from "./text.mjs";

/** How many iterations are drawn, the newest. */
export const MAX_BARS = 40;

const SVG = "http://www.w3.org/2000/svg";
const [BAR, GAP, HEIGHT] = [10, 3, 44];

/** The chart is at least this many bars wide, so that a short run has a readable chart. */
const MIN_BARS = 10;

/** The space for the numbers of the levels. */
const [LEFT, TOP] = [14, 4];

export interface Confidence {
  iteration: number;
  confidence: number;
}

/** Draws the chart; undefined without data. */
export function confidenceChart(all: readonly Confidence[]): SVGSVGElement | undefined {
  const shown = all.slice(-MAX_BARS);
  if (shown.length === 0) {
    return undefined;
  }
  const width = LEFT + Math.max(MIN_BARS, shown.length) * (BAR + GAP) + GAP;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", class: "redflow-chart" });
  const values = shown.map(({ iteration, confidence }) => `${iteration}: ${formatConfidence(confidence)}`).join(", ");
  const title = svg("title", {});
  title.textContent = `${text("runs.chart.title")}: ${values}`;
  chart.append(title);
  for (const level of [0, 0.5, 1]) {
    const y = yOf(level);
    chart.append(svg("line", { x1: LEFT, x2: width, y1: y, y2: y, class: "redflow-chart-level" }));
    const number = svg("text", { x: LEFT - 3, y: y + 3, "text-anchor": "end", "aria-hidden": "true" });
    number.textContent = level === 0.5 ? "" : String(level);
    chart.append(number);
  }
  shown.forEach(({ iteration, confidence }, index) => {
    const height = Math.max(1, yOf(0) - yOf(clamp(confidence)));
    const x = LEFT + GAP + index * (BAR + GAP);
    const bar = svg("rect", { x, y: yOf(0) - height, width: BAR, height, class: "redflow-chart-bar" });
    const name = svg("title", {});
    name.textContent = text("runs.chart.bar", { iteration, confidence: formatConfidence(confidence) });
    bar.append(name);
    chart.append(bar);
  });
  return chart;
}

function yOf(level: number): number {
  return HEIGHT - TOP - level * (HEIGHT - 2 * TOP);
}

export function formatConfidence(confidence: number): string {
  return formatDecimal(clamp(confidence), 2);
}

function clamp(confidence: number): number {
  return Number.isFinite(confidence) ? Math.min(1, Math.max(0, confidence)) : 0;
}

function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>): SVGElementTagNameMap[K] {
  const created = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    created.setAttribute(name, String(value));
  }
  return created;
}
