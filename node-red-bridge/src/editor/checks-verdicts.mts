// What a report of the checker means for each node, each agent and each wire in the editor. Pure; judges nothing itself.

import type { CheckReport, Diagnostic } from "@redflow/bindings";
import { type FlowMap, isAgent } from "./flow.mjs";

/** Problems that are told at one node; the rest is counted. */
export const TOLD_AT_NODE = 3;

/** Characters of one sentence, and of one line: Node-RED's tooltips do not break lines themselves. */
const SENTENCE_CHARS = 300;
const LINE_CHARS = 100;

/** Characters of a node's id with the way into its subflows. What is longer stays as it is. */
const ID_CHARS = 500;

/** The words that are not the checker's. */
export interface Words {
  /** Of a wire that begins elsewhere. */
  from(name: string): string;
  more(count: number): string;
  /** What the canvas calls a node. */
  labelOf(id: string): string | undefined;
}

/** What is said at a node. */
export interface Said {
  sentence: string;
  /** The property that is wrong, if it is one of the node's own. */
  property?: string;
}

/** What a report says. Its nodes have the ids of the editor. */
export interface Verdicts {
  /** What is held against a node, errors first. */
  problemsOf(id: string): Diagnostic[];
  /** What keeps an agent from running, or should be known of it: its own, and what is wrong with what it binds. */
  problemsOfAgent(id: string): Diagnostic[];
  /** What is said at a node that has errors. */
  sentences: ReadonlyMap<string, Said[]>;
  /** The sentence of each wire that is refused, by `wireKey`. */
  refused: ReadonlyMap<string, string>;
  /** Agents that nothing was said of, because nobody uses the subflow they stand in. */
  unused: ReadonlySet<string>;
  agents: readonly string[];
  /** Problems that the checker counted and did not list. */
  omitted: number;
  /** What is wrong with the flow as a whole, if the checker could not look into it. */
  unusable: string | undefined;
}

export function wireKey(source: string, port: number, target: string): string {
  return `${source}:${port}:${target}`;
}

export function verdictsOf(report: CheckReport, map: FlowMap, words: Words): Verdicts {
  const byNode = new Map<string, Diagnostic[]>();
  const lines = new Map<string, Said[]>();
  const refused = new Map<string, string>();
  /** Problems of services and tools alone: whoever binds one has them too. */
  const shared = new Map<string, Diagnostic[]>();
  let unusable: string | undefined;
  for (const told of report.diagnostics) {
    // What is only worth knowing is for a sidecar without a Node-RED.
    if (told.severity === "info") {
      continue;
    }
    const diagnostic = inEditor(told, map, words);
    const { node, target } = diagnostic;
    if (node === null) {
      unusable ??= isError(diagnostic) ? explained(diagnostic).join(". ") : undefined;
      continue;
    }
    const said = isError(diagnostic) ? explained(diagnostic) : undefined;
    const [at, far] = [map.idOf(node), target === null ? undefined : map.idOf(target)];
    const property = propertyOf(diagnostic);
    const ends = [at, isEdge(diagnostic) ? far : undefined].filter((id) => id !== undefined);
    for (const id of new Set(ends)) {
      addOnce(byNode, id, diagnostic);
      if (said !== undefined) {
        const begins = id === at ? [] : [words.from(cut(plain(node.name || node.type)))];
        add(lines, id, { sentence: [...begins, ...said].join("\n"), ...(id === at && property !== undefined && { property }) });
      }
    }
    if (!isAgent(node.type) && !isAgent(target?.type ?? "")) {
      new Set(ends).forEach((id) => addOnce(shared, id, diagnostic));
    }
    const key = said !== undefined && at !== undefined ? wireOf(diagnostic, at, far, map) : undefined;
    if (key !== undefined && said !== undefined && !refused.has(key)) {
      refused.set(key, said.join("\n"));
    }
  }
  return {
    problemsOf: (id) => byNode.get(id) ?? [],
    problemsOfAgent: (id) => {
      const bound = [...map.boundTo(id)].flatMap((service) => shared.get(service) ?? []);
      const all = [...new Set([...(byNode.get(id) ?? []), ...bound])];
      return [...all.filter(isError), ...all.filter((diagnostic) => !isError(diagnostic))];
    },
    sentences: lines,
    refused,
    unused: map.unused,
    agents: map.agents,
    omitted: Object.values(report.omitted ?? {}).reduce((sum, count) => sum + count, 0),
    unusable,
  };
}

/** Texts of a report as a list that is short enough to be read. The same sentence is said once. */
export function bounded(sentences: string[], words: Words): string[] {
  const each = [...new Set(sentences)];
  const shown = each.slice(0, TOLD_AT_NODE).map(inLines);
  return each.length > TOLD_AT_NODE ? [...shown, words.more(each.length - TOLD_AT_NODE)] : shown;
}

/** What is wrong, and how to mend it. */
export function explained({ message, help }: Diagnostic): [string, string] {
  return [cut(plain(message)), cut(plain(help))];
}

function cut(text: string): string {
  return text.length > SENTENCE_CHARS ? `${text.slice(0, SENTENCE_CHARS).replace(/[\uD800-\uDBFF]$/, "")}…` : text;
}

/**
 * One line without what turns or hides text: a tooltip has no element to keep a name's direction in.
 * Also without Node-RED's own sign for a new line, at which it would end.
 */
export function plain(text: string): string {
  return text
    .replace(/[\s\u0000-\u001F\u007F-\u009F]+/g, " ")
    .replace(/[\u061C\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/g, "\uFFFD")
    .replaceAll("\\n ", "\\n\u00A0");
}

/** Broken into lines at spaces, or where a word is longer than a line; all but the first are set in. */
export function inLines(text: string): string {
  return text.split("\n").flatMap(broken).join("\n    ");
}

function broken(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap(pieces)) {
    if (line !== "" && line.length + 1 + word.length > LINE_CHARS) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

function pieces(word: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < word.length; at += LINE_CHARS) {
    parts.push(word.slice(at, at + LINE_CHARS));
  }
  return parts;
}

/** The same with the editor's ids: inside a subflow a node is called by the way there. And with the names of the canvas. */
function inEditor(diagnostic: Diagnostic, map: FlowMap, words: Words): Diagnostic {
  const own = (end: Diagnostic["node"]): Diagnostic["node"] => {
    const id = end === null ? undefined : map.idOf(end);
    return end === null || id === undefined ? end : { ...end, id, name: end.name || (words.labelOf(id) ?? "") };
  };
  const { node, target, message, help } = diagnostic;
  const named = (said: string): string => withLabels(said, map, words);
  return { ...diagnostic, node: own(node), target: own(target), message: named(message), help: named(help) };
}

/** The checker calls a node without a name by its id, which the canvas shows nowhere. */
function withLabels(said: string, map: FlowMap, words: Words): string {
  // What closes one may open the next: a name may have such a sign in it.
  return said.replace(/`([^`]+)(?=`)/g, (quoted: string, id: string) => {
    const found = id.length > ID_CHARS ? undefined : map.unnamed(id);
    const label = found === undefined ? undefined : words.labelOf(found);
    return label === undefined ? quoted : `\`${label.replaceAll("`", "'")}`;
  });
}

/** The property that a problem with the properties of a node is about. */
function propertyOf({ code, pointer }: Diagnostic): string | undefined {
  return code === "CONFIG_INVALID" ? /^\/([^/~]+)(?=\/|$)/.exec(pointer ?? "")?.[1] : undefined;
}

/** Whether both ends of a wire have a part in it. */
function isEdge({ code }: Diagnostic): boolean {
  return code.startsWith("EDGE_") || code === "RESULT_ON_MEMORY_PORT";
}

/** The wire a problem is about, as it is drawn: the first one, if there are junctions on the way. */
function wireOf(diagnostic: Diagnostic, node: string, target: string | undefined, map: FlowMap): string | undefined {
  const place = /^\/wires\/(\d{1,6})\/(\d{1,6})$/.exec(diagnostic.pointer ?? "");
  if (place !== null) {
    const [port, index] = [Number(place[1]), Number(place[2])];
    const drawn = map.targetOf(node, port, index);
    return drawn === undefined ? undefined : wireKey(node, port, drawn);
  }
  const { port } = diagnostic;
  const drawn = port !== null && target !== undefined && map.joins(node, port, target);
  return drawn ? wireKey(node, port, target) : undefined;
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

/** What stands in a subflow is told for each instance: once is enough. */
function addOnce(lists: Map<string, Diagnostic[]>, id: string, diagnostic: Diagnostic): void {
  const { code, message, pointer } = diagnostic;
  const same = (known: Diagnostic): boolean =>
    known.code === code && known.message === message && known.pointer === pointer;
  if (!lists.get(id)?.some(same)) {
    add(lists, id, diagnostic);
  }
}

function add<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const known = lists.get(key);
  if (known === undefined) {
    lists.set(key, [item]);
  } else {
    known.push(item);
  }
}
