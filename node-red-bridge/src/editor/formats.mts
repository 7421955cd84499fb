// Formats times, durations, numbers and sentences in the user's language.

import { type Formats, formatsIn } from "../timeline/index.js";
import { text } from "./text.mjs";

/** Marks the place of an element in a sentence. No catalogue contains this character. */
const PLACEHOLDER = "\uE000";

/** A sentence of the catalogue with elements in it, for untrusted text, which must stay in its own element. */
export function fillSentence(key: string, values: Record<string, string | number | Node>): DocumentFragment {
  const elements: Node[] = [];
  const plain: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(values)) {
    plain[name] = value instanceof Node ? `${PLACEHOLDER}${elements.push(value) - 1}${PLACEHOLDER}` : value;
  }
  const result = document.createDocumentFragment();
  text(key, plain)
    .split(PLACEHOLDER)
    .forEach((part, index) => result.append(index % 2 === 1 ? (elements[Number(part)] ?? "") : part));
  return result;
}

/** The formats of the editor's language. Dates have the format of the browser. */
export const formats: Formats = formatsIn(() => RED.i18n?.lang());

export const { decimal: formatDecimal, count: formatCount, cost: formatCost, time: formatTime } = formats;

/** A past time as an age, such as `5 min ago`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 5) {
    return text("runs.age.now");
  }
  const [unit, size]: [string, number] =
    seconds < 60 ? ["seconds", 1] : seconds < 3_600 ? ["minutes", 60] : seconds < 86_400 ? ["hours", 3_600] : ["days", 86_400];
  return text(`runs.age.${unit}`, { n: Math.floor(seconds / size) });
}
