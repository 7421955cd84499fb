// Validation rules for the properties of nodes. Independent of node types and of the page. A sentence never contains input
// of a user or an imported flow: Node-RED shows some of these sentences as HTML.

import { text } from "./text.mjs";
import { isToolPattern } from "./tool-ids.mjs";

/** True, or a sentence about the problem in the user's language. */
export type Verdict = true | string;

/** The options of every rule. */
export interface Rule {
  /** The label of the field. */
  name: string;
  /** Whether the property may be empty. */
  optional?: boolean;
}

export interface NumberRule extends Rule {
  min?: number;
  max?: number;
  whole?: boolean;
  /** The property that must be greater, if it has a value. */
  below?: { value: unknown; name: string };
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

export interface ListRule extends Rule {
  /** Entries. */
  most: number;
}

/** The text that Node-RED shows for a stored secret. */
export const STORED_SECRET = "__PWRD__";

/** Whether a value is `${NAME}` only: Node-RED replaces it with the variable when the flow starts. */
export function isReference(value: unknown): boolean {
  return typeof value === "string" && /^\$\{\S+\}$/.test(value.trim());
}

export function isBlank(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === "string" && value.trim() === "");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The verdict on a variable and on a blank value, the same for all rules. Undefined for other values. */
function checkBlank(value: unknown, rule: Rule): Verdict | undefined {
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
  const { name, below } = rule;
  const verdict = checkBlank(value, rule) ?? (isWithin(value, rule) ? true : text(numberKey(rule), numberValues(rule)));
  const isTooLarge = below !== undefined && !isBlank(below.value) && Number(value) >= Number(below.value);
  return verdict === true && isTooLarge ? text("fields.below", { name, other: below.name }) : verdict;
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

/** Whether a value is a text within its maximum length. */
export function line(value: unknown, rule: LineRule): Verdict {
  const { name, max = Infinity } = rule;
  const blankVerdict = checkBlank(value, rule);
  if (blankVerdict !== undefined) {
    return blankVerdict;
  }
  if (typeof value !== "string") {
    return text("fields.text", { name });
  }
  return value.length <= max ? true : text("fields.tooLong", { name, max });
}

/** Whether a value is one of the choices. */
export function choice(value: unknown, rule: ChoiceRule): Verdict {
  const isOne = typeof value === "string" && rule.of.includes(value);
  return checkBlank(value, rule) ?? (isOne ? true : text("fields.choice", { name: rule.name, choices: rule.of.join(", ") }));
}

/** Whether a value is yes or no. */
export function flag(value: unknown, rule: Rule): Verdict {
  const isOne = typeof value === "boolean" || value === "true" || value === "false";
  return checkBlank(value, rule) ?? (isOne ? true : text("fields.flag", { name: rule.name }));
}

/** Names of query parameters for keys, such as `api_key` and `sig`. Keys belong in the credentials. */
const KEY_NAME = /(^|[^a-z])(key|apikey|token|secret|password|passwd|code|sig|signature)$/i;

/** Whether a value is an HTTP address without a key. */
export function address(value: unknown, rule: AddressRule): Verdict {
  const { name, example } = rule;
  const blankVerdict = checkBlank(value, rule);
  if (blankVerdict !== undefined) {
    return blankVerdict;
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

/** Whether a value is the address of a Redis server without a password. */
export function redisAddress(value: unknown, rule: Rule): Verdict {
  const { name } = rule;
  const blankVerdict = checkBlank(value, rule);
  if (blankVerdict !== undefined) {
    return blankVerdict;
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
  } catch {
    return undefined;
  }
}

/** Whether a model can call a tool by this name. */
export function toolName(value: unknown, rule: Rule): Verdict {
  const isName = typeof value === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(value);
  return checkBlank(value, rule) ?? (isName ? true : text("fields.toolName", { name: rule.name }));
}

/** A name, an address or a block of addresses, with a port. IPv6 is in brackets. */
const HOST_PORT = /^(\[[0-9A-Fa-f:./]+\]|[^\s:,[\]]+):[0-9]{1,5}$/;

/** Whether a value is a list of hosts with their ports, separated by commas. */
export function hostPorts(value: unknown, rule: ListRule): Verdict {
  const { name, most } = rule;
  const blankVerdict = checkBlank(value, rule);
  if (blankVerdict !== undefined) {
    return blankVerdict;
  }
  const hosts = typeof value === "string" ? value.split(",").flatMap((host) => host.trim() || []) : [];
  if (hosts.length === 0 || !hosts.every((host) => HOST_PORT.test(host))) {
    return text("fields.hostPorts", { name });
  }
  return hosts.length <= most ? true : text("fields.hostPortsMost", { name, most });
}

/** Whether a value is a day such as 2026-10-21. */
export function day(value: unknown, rule: Rule): Verdict {
  const isDay = typeof value === "string" && /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(value.trim());
  return checkBlank(value, rule) ?? (isDay ? true : text("fields.day", { name: rule.name }));
}

/** Whether a value is a list of stop sequences: texts separated by commas, or a list of texts. */
export function stops(value: unknown, rule: ListRule): Verdict {
  const { name, most } = rule;
  const blankVerdict = checkBlank(value, rule);
  if (blankVerdict !== undefined) {
    return blankVerdict;
  }
  const list = typeof value === "string" ? value.split(",").map((stop) => stop.trim()) : value;
  if (!Array.isArray(list) || list.some((stop) => typeof stop !== "string")) {
    return text("fields.stops", { name });
  }
  return list.filter((stop) => stop !== "").length <= most ? true : text("fields.stopsMost", { name, most });
}

/** Whether a secret has only characters that are valid in a key. */
export function secret(value: unknown, rule: Rule): Verdict {
  const isOne = typeof value === "string" && /^[\x21-\x7e]+$/.test(value.trim());
  return checkBlank(value, rule) ?? (isOne ? true : text("fields.secret", { name: rule.name }));
}

/** Whether a secret is 32 bytes in base64. */
export function secretBytes(value: unknown, rule: Rule): Verdict {
  const isOne = value === STORED_SECRET || (typeof value === "string" && /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(value.trim()));
  return checkBlank(value, rule) ?? (isOne ? true : text("fields.secretBytes", { name: rule.name }));
}

/** Whether a value, or its text, is a JSON object. */
export function object(value: unknown, rule: Rule): Verdict {
  const blankVerdict = isObject(value) ? true : checkBlank(value, rule);
  if (blankVerdict !== undefined) {
    return blankVerdict;
  }
  const { name } = rule;
  const { value: found, problem }: Parsed = typeof value === "string" ? parse(value) : { value };
  if (problem !== undefined && startsLikeJson(value)) {
    return notJson(problem, name);
  }
  return isObject(found) ? true : text("fields.object", { name });
}

/** Whether a value is a JSON list with at least one entry. */
export function list(value: unknown, rule: Rule): Verdict {
  const blankVerdict = checkBlank(value, rule);
  if (blankVerdict !== undefined) {
    return blankVerdict;
  }
  const { name } = rule;
  const problem = typeof value === "string" ? parse(value).problem : undefined;
  if (problem !== undefined && startsLikeJson(value)) {
    return notJson(problem, name);
  }
  return Array.isArray(value) && value.length > 0 ? true : text("fields.list", { name });
}

/** The most ids of tools in one list. */
const MAX_TOOL_IDS = 100;

/** Whether a value is a JSON list of ids and patterns of tools. */
export function toolIds(value: unknown, rule: Rule): Verdict {
  const verdict = list(value, rule);
  if (verdict !== true || !Array.isArray(value)) {
    return verdict;
  }
  const areIds = value.length <= MAX_TOOL_IDS && value.every((id) => typeof id === "string" && isToolPattern(id));
  return areIds ? true : text("fields.toolIds", { name: rule.name, most: MAX_TOOL_IDS });
}

/** The most tokens of a resource that a memory recalls. */
const MAX_SPAN_TOKENS = 32_000;

/** Whether a value is a JSON list of resources of MCP servers. */
export function contextSpans(value: unknown, rule: Rule): Verdict {
  const isEmpty = Array.isArray(value) && value.length === 0;
  const verdict = isEmpty ? true : list(value, rule);
  return verdict !== true || !Array.isArray(value) || value.every(isSpan) ? verdict : text("fields.contextSpans", { name: rule.name });
}

function isSpan(span: unknown): boolean {
  if (!isObject(span)) {
    return false;
  }
  const { server, resource, tokens = 1, pin = false } = span;
  const areTexts = [server, resource].every((name) => typeof name === "string" && name.trim() !== "");
  return areTexts && typeof pin === "boolean" && typeof tokens === "number" && isWithin(tokens, { name: "", min: 1, max: MAX_SPAN_TOKENS, whole: true });
}

/** The most categories of a classifier, and the most characters of a name. */
const MAX_CATEGORIES = 200;
const MAX_CATEGORY_CHARS = 200;

/** Whether a value is a JSON list of categories: names, or objects with a name and perhaps a description. Each name is there once. */
export function categories(value: unknown, rule: Rule): Verdict {
  const verdict = list(value, rule);
  if (verdict !== true || !Array.isArray(value)) {
    return verdict;
  }
  const names = value.flatMap((category) => categoryName(category) ?? []);
  if (value.length > MAX_CATEGORIES || names.length < value.length) {
    return text("fields.categories", { name: rule.name, most: MAX_CATEGORIES });
  }
  const fit = new Set(names).size === names.length && names.every((name) => Array.from(name).length <= MAX_CATEGORY_CHARS);
  return fit ? true : text("fields.categoryNames", { name: rule.name, most: MAX_CATEGORY_CHARS });
}

/** The name of a category. Undefined if the value is no category. */
function categoryName(category: unknown): string | undefined {
  const { name, description }: Record<string, unknown> = isObject(category) ? category : { name: category };
  const isDescription = description === undefined || description === null || typeof description === "string";
  return isDescription && typeof name === "string" && name.trim() !== "" ? name.trim() : undefined;
}

const ABILITIES = ["tools", "vision", "streaming", "jsonSchema", "jsonObject", "sampling", "reasoning", "forcedTools"];
const SIZES = ["contextWindow", "maxOutput"];

/** The largest 32-bit number: the sidecar counts tokens and messages with 32 bits. */
const MAX_COUNT = 4_294_967_295;

/** Whether a value describes the capabilities of a model. */
export function capabilities(value: unknown, rule: Rule): Verdict {
  const found = object(value, rule);
  const abilities = typeof value === "string" ? parse(value).value : value;
  if (found !== true || !isObject(abilities)) {
    return found;
  }
  const { name } = rule;
  const isFlag = (key: string): boolean => abilities[key] === undefined || abilities[key] === null || typeof abilities[key] === "boolean";
  const isSize = (key: string): boolean => {
    const size = abilities[key] ?? 0;
    return typeof size === "number" && isWithin(size, { name, min: 0, max: MAX_COUNT, whole: true });
  };
  const wrongFlag = ABILITIES.find((key) => !isFlag(key));
  const wrongSize = SIZES.find((key) => !isSize(key));
  if (wrongFlag !== undefined) {
    return text("fields.ability", { name, key: wrongFlag });
  }
  return wrongSize === undefined ? true : text("fields.size", { name, key: wrongSize, max: MAX_COUNT });
}

/** The value of a JSON text, or the parser's error. */
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

/** Whether a text starts like a JSON list or object. Other texts may be a saved JSON string without its quotes. */
function startsLikeJson(value: unknown): boolean {
  return typeof value === "string" && /^\s*[[{]/.test(value);
}

/** The place of the JSON error, if the browser names one. Does not use the browser's message, which quotes the input. */
function notJson(problem: string, name: string): string {
  const place = /\bline (\d+) column (\d+)/.exec(problem);
  const [, line = "", column = ""] = place ?? [];
  return place ? text("fields.notJsonAt", { name, line, column }) : text("fields.notJson", { name });
}
