// The texts of the console in the user's language. English is part of the program; the other languages are files beside it.

import { signal } from "@preact/signals";
import { showInvisible } from "@redflow/bindings";
import type { Used } from "@redflow/bindings";
import { costText } from "./timeline/cost.js";
import { formatsIn } from "./timeline/formats.js";
import { EN } from "./words/en.js";

export type Key = keyof typeof EN;
export type Language = "en" | "es" | "de";
export type Values = Readonly<Record<string, string | number>>;

export const LANGUAGES: readonly Language[] = ["en", "es", "de"];

/** The file of a language. */
export interface WordFile {
  /** The texts, in the order of the English ones; null if one is missing. */
  texts: readonly (string | null)[];
  /** The sidecar's phrases. */
  phrases: Readonly<Record<string, string>>;
}

const KEYS = Object.keys(EN);
const ENGLISH: Readonly<Record<string, string>> = EN;
const catalogue = signal<Readonly<Record<string, string | null>>>(ENGLISH);
const phrases = signal<WordFile["phrases"]>({});

/** The language of the texts that are shown. */
export const language = signal<Language>("en");

/** The text of any key, with its values in their places; `fallback` if there is none. A missing text is English. */
function find(key: string, values: Values, fallback: string): string {
  const text = catalogue.value[key] ?? ENGLISH[key];
  return text === undefined ? fallback : fill(text, values);
}

/** The text of a key, with its values in their places. */
export function t(key: Key, values: Values = {}): string {
  return find(key, values, key);
}

/** The text of a phrase of the sidecar in the chosen language; undefined if that has none. */
export function findPhrase(key: string): string | undefined {
  return phrases.value[key];
}

/** The text of any key; the key itself if there is none. */
export function tKey(key: string, values: Values = {}): string {
  return find(key, values, key);
}

/** The text of a key that the program puts together, such as `status.` and a status; the last part if there is none. */
export function tOf(prefix: string, name: string, values: Values = {}): string {
  return find(`${prefix}.${name}`, values, name);
}

function fill(text: string, values: Values): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => {
    const value = values[name];
    return value === undefined ? place : typeof value === "number" ? formatCount(value) : showInvisible(value);
  });
}

/** The language to use: the chosen one, else the first of the browser's that we have. */
export function chooseLanguage(chosen: string | null, wanted: readonly string[]): Language {
  const found = [chosen ?? "", ...wanted].map((tag) => tag.slice(0, 2).toLowerCase());
  return LANGUAGES.find((language) => language === found.find((tag) => (LANGUAGES as readonly string[]).includes(tag))) ?? "en";
}

/** Shows another language. Stays with the current one if its file cannot be read. */
export async function setLanguage(wanted: Language, read: (file: string) => Promise<unknown>): Promise<void> {
  const file = wanted === "en" ? undefined : ((await read(`words.${wanted}.json`)) as WordFile);
  catalogue.value = file === undefined ? ENGLISH : Object.fromEntries(file.texts.map((text, index) => [KEYS[index] ?? "", text]));
  phrases.value = file?.phrases ?? {};
  language.value = wanted;
  document.documentElement.lang = wanted;
}

/** The formats that the timeline uses too. */
export const formats = formatsIn(
  () => language.value,
  () => language.value,
);
export const { count: formatCount, cost: formatCost, duration: formatDuration } = formats;

/** A cost as far as it is known. Undefined if no tokens were used. */
export function formatKnownCost(used: Pick<Used, "inputTokens" | "outputTokens" | "cost" | "unpricedCalls">): string | undefined {
  return costText({ words: tKey, formats }, used);
}

function format(value: number, options: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(language.value, options).format(value);
}

/** A number in few characters, such as `12k`. */
export function formatShort(value: number): string {
  return format(value, { notation: "compact", maximumFractionDigits: 1 });
}

/** A cost with all its digits. Sums are kept in billionths. */
export function formatExactCost(value: number): string {
  return format(value, { maximumFractionDigits: 9 });
}

/** A share from 0 to 1. */
export function formatShare(value: number): string {
  return format(value, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

/** A past time as an age, such as `5 min ago`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  if (seconds < 5) {
    return t("age.now");
  }
  if (seconds < 60) {
    return t("age.seconds", { n: seconds });
  }
  if (seconds < 3_600) {
    return t("age.minutes", { n: Math.floor(seconds / 60) });
  }
  return seconds < 86_400 ? t("age.hours", { n: Math.floor(seconds / 3_600) }) : t("age.days", { n: Math.floor(seconds / 86_400) });
}

/** A date with its time, in the format of the language; empty for an invalid time. */
export function formatTime(at: number): string {
  return formatDate(at, { dateStyle: "medium", timeStyle: "medium" });
}

/** The time of a day. */
export function formatClock(at: number): string {
  return formatDate(at, { timeStyle: "medium" });
}

function formatDate(at: number, options: Intl.DateTimeFormatOptions): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : new Intl.DateTimeFormat(language.value, options).format(date);
}

/** A number of bytes, such as `1.5 MB`. */
export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${format(bytes / 1000 ** power, { maximumFractionDigits: power === 0 ? 0 : 1 })} ${units[power]}`;
}
