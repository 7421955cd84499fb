// What a property of a node must be: true, or a sentence in the language of the person. Knows no node type and no page.
// A sentence never holds what somebody typed or imported: Node-RED puts some of these sentences into its page as HTML.

import { text } from "./text.mjs";

/** True, or a sentence that says what is wrong. */
export type Verdict = true | string;

/** What every rule has. */
export interface Rule {
  /** As its field is labelled. */
  name: string;
  /** Whether it may be left empty. */
  optional?: boolean;
}

export interface NumberRule extends Rule {
  min?: number;
  max?: number;
  whole?: boolean;
}

export interface AddressRule extends Rule {
  example: string;
}

export interface LineRule extends Rule {
  /** Characters. */
  max?: number;
}

export interface ChoiceRule extends Rule {
  of: string[];
}

export interface StopsRule extends Rule {
  most: number;
}

/** What Node-RED shows instead of a secret that is there. */
const KEPT_SECRET = "__PWRD__";

/** `${NAME}` alone: Node-RED puts the variable's value there when the flow starts. */
export function isReference(value: unknown): boolean {
  return typeof value === "string" && /^\$\{\S+\}$/.test(value.trim());
}

export function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What all rules begin with: nothing, and a variable. Undefined if the value must be looked at. */
function first(value: unknown, rule: Rule): Verdict | undefined {
  if (isReference(value)) {
    return true;
  }
  if (isBlank(value)) {
    return rule.optional ? true : text("fields.missing", { name: rule.name });
  }
  return undefined;
}

/** Whether a value is a number, or the text of one. */
export function number(value: unknown, rule: NumberRule): Verdict {
  return first(value, rule) ?? (isWithin(value, rule) ? true : text(numberKey(rule), numberValues(rule)));
}

function isWithin(value: unknown, rule: NumberRule): boolean {
  const found = typeof value === "string" ? Number(value) : value;
  if (typeof found !== "number" || !Number.isFinite(found) || (rule.whole && !Number.isSafeInteger(found))) {
    return false;
  }
  return found >= (rule.min ?? -Infinity) && found <= (rule.max ?? Infinity);
}

function numberKey(rule: NumberRule): string {
  const { min, max, whole } = rule;
  if (min !== undefined && max !== undefined) {
    return whole ? "fields.wholeBetween" : "fields.numberBetween";
  }
  if (min !== undefined) {
    return whole ? "fields.wholeFrom" : "fields.numberFrom";
  }
  return whole ? "fields.whole" : "fields.number";
}

function numberValues({ name, min = 0, max = 0 }: NumberRule): Record<string, string | number> {
  return { name, min, max };
}

/** Whether a value is a text, and no longer than it may be. */
export function line(value: unknown, rule: LineRule): Verdict {
  const { name, max = Infinity } = rule;
  const begun = first(value, rule);
  if (begun !== undefined) {
    return begun;
  }
  if (typeof value !== "string") {
    return text("fields.text", { name });
  }
  return value.length <= max ? true : text("fields.tooLong", { name, max });
}

/** Whether a value is one of a few. */
export function choice(value: unknown, rule: ChoiceRule): Verdict {
  const isOne = typeof value === "string" && rule.of.includes(value);
  return first(value, rule) ?? (isOne ? true : text("fields.choice", { name: rule.name, choices: rule.of.join(", ") }));
}

/** Whether a value is yes or no. */
export function flag(value: unknown, rule: Rule): Verdict {
  const isOne = typeof value === "boolean" || value === "true" || value === "false";
  return first(value, rule) ?? (isOne ? true : text("fields.flag", { name: rule.name }));
}

/** Names of keys in an address, such as `api_key` and `sig`. Keys belong to the credentials. */
const KEY_NAME = /(^|[^a-z])(key|apikey|token|secret|password|passwd|code|sig|signature)$/i;

/** Whether a value is an http address that holds no key. */
export function address(value: unknown, rule: AddressRule): Verdict {
  const { name, example } = rule;
  const begun = first(value, rule);
  if (begun !== undefined) {
    return begun;
  }
  const url = urlOf(value);
  if (url === undefined) {
    return text("fields.address", { name, example });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return text("fields.addressBegin", { name });
  }
  if (url.username !== "" || url.password !== "") {
    return text("fields.addressUser", { name });
  }
  return [...url.searchParams.keys()].some((key) => KEY_NAME.test(key)) ? text("fields.addressKey", { name }) : true;
}

/** Whether a value is the address of a Redis without its password. */
export function redisAddress(value: unknown, rule: Rule): Verdict {
  const { name } = rule;
  const begun = first(value, rule);
  if (begun !== undefined) {
    return begun;
  }
  const url = urlOf(value);
  if (url === undefined || (url.protocol !== "redis:" && url.protocol !== "rediss:")) {
    return text("fields.redis", { name });
  }
  return url.password === "" ? true : text("fields.redisPassword", { name });
}

function urlOf(value: unknown): URL | undefined {
  try {
    return typeof value === "string" ? new URL(value.trim()) : undefined;
  } catch (_) {
    return undefined;
  }
}

/** Whether a model can call a tool by this name. */
export function toolName(value: unknown, rule: Rule): Verdict {
  const isName = typeof value === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(value);
  return first(value, rule) ?? (isName ? true : text("fields.toolName", { name: rule.name }));
}

/** Whether a value is a day such as 2026-10-21. */
export function day(value: unknown, rule: Rule): Verdict {
  const isDay = typeof value === "string" && /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(value.trim());
  return first(value, rule) ?? (isDay ? true : text("fields.day", { name: rule.name }));
}

/** Whether a value says where a model stops: a comma list, or a list of texts. */
export function stops(value: unknown, rule: StopsRule): Verdict {
  const { name, most } = rule;
  const begun = first(value, rule);
  if (begun !== undefined) {
    return begun;
  }
  const list = typeof value === "string" ? value.split(",").map((stop) => stop.trim()) : value;
  if (!Array.isArray(list) || list.some((stop) => typeof stop !== "string")) {
    return text("fields.stops", { name });
  }
  return list.filter((stop) => stop !== "").length <= most ? true : text("fields.stopsMost", { name, most });
}

/** Whether a secret has only characters that a key can have. */
export function secret(value: unknown, rule: Rule): Verdict {
  const isOne = typeof value === "string" && /^[\x21-\x7e]+$/.test(value.trim());
  return first(value, rule) ?? (isOne ? true : text("fields.secret", { name: rule.name }));
}

/** Whether a secret is 32 bytes in base64. */
export function secretBytes(value: unknown, rule: Rule): Verdict {
  const isOne = value === KEPT_SECRET || (typeof value === "string" && /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(value.trim()));
  return first(value, rule) ?? (isOne ? true : text("fields.secretBytes", { name: rule.name }));
}

/** Whether a value, or its text, is a JSON object. */
export function object(value: unknown, rule: Rule): Verdict {
  const begun = isObject(value) ? true : first(value, rule);
  if (begun !== undefined) {
    return begun;
  }
  const { name } = rule;
  const { value: found, problem }: Parsed = typeof value === "string" ? parse(value) : { value };
  if (problem !== undefined && isBegun(value)) {
    return notJson(problem, name);
  }
  return isObject(found) ? true : text("fields.object", { name });
}

/** Whether a value is a JSON list with something in it. */
export function list(value: unknown, rule: Rule): Verdict {
  const begun = first(value, rule);
  if (begun !== undefined) {
    return begun;
  }
  const { name } = rule;
  const problem = typeof value === "string" ? parse(value).problem : undefined;
  if (problem !== undefined && isBegun(value)) {
    return notJson(problem, name);
  }
  return Array.isArray(value) && value.length > 0 ? true : text("fields.list", { name });
}

const ABILITIES = ["tools", "vision", "streaming", "jsonSchema", "jsonObject", "sampling", "reasoning"];
const SIZES = ["contextWindow", "maxOutput"];

/** The largest number of 32 bits, which the sidecar counts tokens and messages with. */
const MAX_COUNT = 4_294_967_295;

/** Whether a value says what a model can do. */
export function capabilities(value: unknown, rule: Rule): Verdict {
  const found = object(value, rule);
  const said = typeof value === "string" ? parse(value).value : value;
  if (found !== true || !isObject(said)) {
    return found;
  }
  const { name } = rule;
  const isFlag = (key: string): boolean => said[key] === undefined || said[key] === null || typeof said[key] === "boolean";
  const isSize = (key: string): boolean => {
    const size = said[key] ?? 0;
    return typeof size === "number" && isWithin(size, { name, min: 0, max: MAX_COUNT, whole: true });
  };
  const flags = ABILITIES.find((key) => !isFlag(key));
  const sizes = SIZES.find((key) => !isSize(key));
  if (flags !== undefined) {
    return text("fields.ability", { name, key: flags });
  }
  return sizes === undefined ? true : text("fields.size", { name, key: sizes, max: MAX_COUNT });
}

/** What a text is as JSON, or why it is none. */
interface Parsed {
  value?: unknown;
  problem?: string;
}

export function parse(source: string): Parsed {
  try {
    return { value: JSON.parse(source) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/** Whether a text begins as a list or an object does. Others may be JSON: of a JSON text only what is in its quotes is saved. */
function isBegun(value: unknown): boolean {
  return typeof value === "string" && /^\s*[[{]/.test(value);
}

/** Where JSON breaks off, if the browser says so. Its own words quote what was typed. */
function notJson(problem: string, name: string): string {
  const place = /\bline (\d+) column (\d+)/.exec(problem);
  const [, line = "", column = ""] = place ?? [];
  return place ? text("fields.notJsonAt", { name, line, column }) : text("fields.notJson", { name });
}
