// Times, durations and sentences about runs, in the language of the person. Owns their form; knows no view.

import { text } from "./text.mjs";

/** Stands for an element until the sentence is taken apart. In no catalogue. */
const PLACE = "\uE000";

/** A sentence of the catalogue with elements in it: for texts of strangers, which must stay apart from ours. */
export function sentence(key: string, values: Record<string, string | number | Node>): DocumentFragment {
  const elements: Node[] = [];
  const plain: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(values)) {
    plain[name] = value instanceof Node ? `${PLACE}${elements.push(value) - 1}${PLACE}` : value;
  }
  const made = document.createDocumentFragment();
  text(key, plain)
    .split(PLACE)
    .forEach((part, place) => made.append(place % 2 === 1 ? (elements[Number(part)] ?? "") : part));
  return made;
}

/** A number with so many digits after its comma, or point: as the language of the editor has it. */
export function decimal(value: number, digits: number): string {
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false };
  try {
    return new Intl.NumberFormat(RED.i18n?.lang(), options).format(value);
  } catch {
    // A language that the browser does not know.
    return value.toFixed(digits);
  }
}

/** How long something took. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < 1_000) {
    return `${whole} ms`;
  }
  if (whole < 59_950) {
    return `${decimal(whole / 1_000, 1)} s`;
  }
  const seconds = Math.round(whole / 1_000);
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)];
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min ${seconds % 60} s`;
}

/** How long something is under way: no faster than a person reads. */
export function clock(ms: number): string {
  return ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : duration(ms);
}

/** How long ago something was. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 5) {
    return text("runs.age.now");
  }
  const [unit, size] =
    seconds < 60 ? ["seconds", 1] : seconds < 3_600 ? ["minutes", 60] : seconds < 86_400 ? ["hours", 3_600] : ["days", 86_400];
  return text(`runs.age.${unit}`, { n: Math.floor(seconds / Number(size)) });
}

/** A time of day with its date, as the browser writes it. */
export function moment(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString();
}
