// Formats times, durations, numbers and sentences in the user's language.

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

/** A number with this many decimals, in the language of the editor. */
export function formatDecimal(value: number, digits: number): string {
  return format(value, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false });
}

function format(value: number, options: Intl.NumberFormatOptions): string {
  try {
    return new Intl.NumberFormat(RED.i18n?.lang(), options).format(value);
  } catch {
    // The browser does not know the language.
    return new Intl.NumberFormat("en-US", options).format(value);
  }
}

/** A whole number, in groups of thousands. */
export function formatCount(value: number): string {
  return format(value, { maximumFractionDigits: 0 });
}

/** A cost. Small ones have three digits that are not zero. */
export function formatCost(value: number): string {
  return format(value, value < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 });
}

/** A duration, such as `1.5 s`. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) {
    return `${whole} ms`;
  }
  if (whole < 59_950) {
    return `${formatDecimal(whole / 1_000, 1)} s`;
  }
  const seconds = Math.round(whole / 1_000);
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)];
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min ${seconds % 60} s`;
}

/** The time since a start, in whole seconds, for a clock that ticks. */
export function formatClock(ms: number): string {
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : formatDuration(ms);
}

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

/** A date with its time, in the format of the browser; empty for an invalid time. */
export function formatTime(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString();
}
