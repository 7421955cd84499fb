// How sure the model was, iteration by iteration, as a small picture. Owns its drawing, and nothing else.

import { decimal } from "./runs-words.mjs";
import { text } from "./text.mjs";

/** Iterations drawn: the newest. */
export const MAX_BARS = 40;

const SVG = "http://www.w3.org/2000/svg";
const [BAR, GAP, HEIGHT] = [10, 3, 44];

/** Room for so many, so that a short run has a picture and not a stroke. */
const MIN_BARS = 10;

/** Where the bars begin: the levels have their numbers before them. */
const [LEFT, TOP] = [14, 4];

export interface Confidence {
  iteration: number;
  confidence: number;
}

/** A picture with a bar for each. Gives nothing if there is none. */
export function confidenceChart(all: readonly Confidence[]): SVGSVGElement | undefined {
  const shown = all.slice(-MAX_BARS);
  if (shown.length === 0) {
    return undefined;
  }
  const width = LEFT + Math.max(MIN_BARS, shown.length) * (BAR + GAP) + GAP;
  const chart = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", class: "redflow-chart" });
  const words = shown.map(({ iteration, confidence }) => `${iteration}: ${asNumber(confidence)}`).join(", ");
  const title = svg("title", {});
  title.textContent = `${text("runs.chart.title")}: ${words}`;
  chart.append(title);
  for (const level of [0, 0.5, 1]) {
    const y = yOf(level);
    chart.append(svg("line", { x1: LEFT, x2: width, y1: y, y2: y, class: "redflow-chart-level" }));
    const number = svg("text", { x: LEFT - 3, y: y + 3, "text-anchor": "end", "aria-hidden": "true" });
    number.textContent = level === 0.5 ? "" : String(level);
    chart.append(number);
  }
  shown.forEach(({ iteration, confidence }, place) => {
    const height = Math.max(1, yOf(0) - yOf(inRange(confidence)));
    const x = LEFT + GAP + place * (BAR + GAP);
    const bar = svg("rect", { x, y: yOf(0) - height, width: BAR, height, class: "redflow-chart-bar" });
    const name = svg("title", {});
    name.textContent = text("runs.chart.bar", { iteration, confidence: asNumber(confidence) });
    bar.append(name);
    chart.append(bar);
  });
  return chart;
}

function yOf(level: number): number {
  return HEIGHT - TOP - level * (HEIGHT - 2 * TOP);
}

export function asNumber(confidence: number): string {
  return decimal(inRange(confidence), 2);
}

function inRange(confidence: number): number {
  return Number.isFinite(confidence) ? Math.min(1, Math.max(0, confidence)) : 0;
}

function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number>): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, String(value));
  }
  return made;
}
