// Maps a report of the checker to the nodes, agents and wires of the editor. Pure; checks nothing itself.

import type { CheckReport, Diagnostic, Phrase } from "@redflow/bindings";
import { cut } from "./dom.mjs";
import { type FlowMap, isAgent } from "./flow.mjs";

/** The most problems that a node shows; the rest is counted. */
export const MAX_SHOWN_AT_NODE = 3;

/** The most characters of a sentence and of a line: Node-RED's tooltips do not wrap lines. */
const SENTENCE_CHARS = 300;
const LINE_CHARS = 100;

/** The most characters of a node id with its subflow instances. Longer ids are not replaced by labels. */
const ID_CHARS = 500;

/** The texts that do not come from the checker, and how to translate those that do. */
export interface Texts {
  /** For a wire from another node. */
  from(name: string): string;
  more(count: number): string;
  /** The label of a node on the canvas. */
  labelOf(id: string): string | undefined;
  /** A text of the checker in the user's language; the English one if there is no other. */
  translate(phrase: Phrase | undefined, english: string): string;
}

/** A problem as a node shows it. */
export interface NodeProblem {
  sentence: string;
  /** The invalid property, if the problem is about one. */
  property?: string;
}

/** The result of a check. Its nodes have the ids of the editor. */
export interface Verdicts {
  /** The problems of a node, errors first. */
  problemsOf(id: string): Diagnostic[];
  /** The problems of an agent and of its services, errors first. */
  problemsOfAgent(id: string): Diagnostic[];
  /** The errors of each node as sentences. */
  sentences: ReadonlyMap<string, NodeProblem[]>;
  /** The sentence of each refused wire, by `wireKey`. */
  refused: ReadonlyMap<string, string>;
  /** Agents that were not checked because their subflow has no instance. */
  unused: ReadonlySet<string>;
  agents: readonly string[];
  /** The number of problems that the checker did not list. */
  omitted: number;
  /** The problem of the flow as a whole, if the checker could not read it. */
  unusable: string | undefined;
}

export function wireKey(source: string, port: number, target: string): string {
  return `${source}:${port}:${target}`;
}

export function verdictsOf(report: CheckReport, map: FlowMap, texts: Texts): Verdicts {
  const byNode = new Map<string, Diagnostic[]>();
  const sentences = new Map<string, NodeProblem[]>();
  const refused = new Map<string, string>();
  /** Problems of services themselves: every agent that uses the service has them too. */
  const shared = new Map<string, Diagnostic[]>();
  let unusable: string | undefined;
  for (const reported of report.diagnostics) {
    // Infos are for a sidecar without Node-RED.
    if (reported.severity === "info") {
      continue;
    }
    const diagnostic = forEditor(reported, map, texts);
    const { node, target } = diagnostic;
    if (node === null) {
      unusable ??= isError(diagnostic) ? explain(diagnostic).join(". ") : undefined;
      continue;
    }
    const explanation = isError(diagnostic) ? explain(diagnostic) : undefined;
    const [nodeId, targetId] = [map.idOf(node), target === null ? undefined : map.idOf(target)];
    const property = propertyOf(diagnostic);
    const hasTwoEnds = isEdge(diagnostic) || isOfService(diagnostic);
    const ends = [nodeId, hasTwoEnds ? targetId : undefined].filter((id) => id !== undefined);
    for (const id of new Set(ends)) {
      addOnce(byNode, id, diagnostic);
      if (explanation !== undefined) {
        const from = id === nodeId || !isEdge(diagnostic) ? [] : [texts.from(cut(plain(node.name || node.type), SENTENCE_CHARS))];
        const sentence = [...from, ...explanation].join("\n");
        add(sentences, id, { sentence, ...(id === nodeId && property !== undefined && { property }) });
      }
    }
    if (!isAgent(node.type) && !isAgent(target?.type ?? "")) {
      new Set(ends).forEach((id) => addOnce(shared, id, diagnostic));
    }
    const isLocated = explanation !== undefined && nodeId !== undefined;
    const key = isLocated ? wireOf(diagnostic, nodeId, targetId, map) : undefined;
    if (key !== undefined && explanation !== undefined && !refused.has(key)) {
      refused.set(key, explanation.join("\n"));
    }
  }
  return {
    problemsOf: (id) => byNode.get(id) ?? [],
    problemsOfAgent: (id) => {
      const bound = [...map.boundTo(id)].flatMap((service) => shared.get(service) ?? []);
      const all = [...new Set([...(byNode.get(id) ?? []), ...bound])];
      return [...all.filter(isError), ...all.filter((diagnostic) => !isError(diagnostic))];
    },
    sentences,
    refused,
    unused: map.unused,
    agents: map.agents,
    omitted: Object.values(report.omitted ?? {}).reduce((sum, count) => sum + count, 0),
    unusable,
  };
}

/** The first unique sentences, wrapped, and the number of the others. */
export function summarize(sentences: string[], texts: Texts): string[] {
  const unique = [...new Set(sentences)];
  const shown = unique.slice(0, MAX_SHOWN_AT_NODE).map(wrapLines);
  return unique.length > MAX_SHOWN_AT_NODE ? [...shown, texts.more(unique.length - MAX_SHOWN_AT_NODE)] : shown;
}

/** The problem and how to fix it, each cut. */
export function explain({ message, help }: Diagnostic): [string, string] {
  return [cut(plain(message), SENTENCE_CHARS), cut(plain(help), SENTENCE_CHARS)];
}

/**
 * Makes a text one line without control and direction characters: a tooltip has no element that isolates the direction.
 * Also breaks up `\\n `, which Node-RED reads as a new line.
 */
export function plain(text: string): string {
  return text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .replace(/[\u061C\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/g, "\uFFFD")
    .replaceAll("\\n ", "\\n\u00A0");
}

/** Wraps a text at spaces, or inside words that are longer than a line. Indents all lines but the first. */
export function wrapLines(text: string): string {
  return text.split("\n").flatMap(wrapLine).join("\n    ");
}

function wrapLine(text: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ").flatMap(splitWord)) {
    if (line !== "" && line.length + 1 + word.length > LINE_CHARS) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

function splitWord(word: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < word.length; at += LINE_CHARS) {
    parts.push(word.slice(at, at + LINE_CHARS));
  }
  return parts;
}

/**
 * Translates the texts. Replaces the checker's ids, which contain subflow instances, with those of the editor, and ids with
 * labels.
 */
function forEditor(diagnostic: Diagnostic, map: FlowMap, texts: Texts): Diagnostic {
  const convert = (end: Diagnostic["node"]): Diagnostic["node"] => {
    const id = end === null ? undefined : map.idOf(end);
    return end === null || id === undefined ? end : { ...end, id, name: end.name || (texts.labelOf(id) ?? "") };
  };
  const { node, target, messagePhrase, helpPhrase } = diagnostic;
  const message = withLabels(texts.translate(messagePhrase, diagnostic.message), map, texts);
  const help = withLabels(texts.translate(helpPhrase, diagnostic.help), map, texts);
  return { ...diagnostic, node: convert(node), target: convert(target), message, help };
}

/** Replaces the ids of unnamed nodes with their labels, because the canvas shows no ids. */
function withLabels(sentence: string, map: FlowMap, texts: Texts): string {
  // A name may contain a backtick, so a closing backtick may also open the next quote.
  return sentence.replace(/`([^`]+)(?=`)/g, (quoted: string, id: string) => {
    const found = id.length > ID_CHARS ? undefined : map.idOfUnnamed(id);
    const label = found === undefined ? undefined : texts.labelOf(found);
    return label === undefined ? quoted : `\`${label.replaceAll("`", "'")}`;
  });
}

/** The property that a configuration problem is about. */
function propertyOf({ code, pointer }: Diagnostic): string | undefined {
  return code === "CONFIG_INVALID" ? /^\/([^/~]+)(?=\/|$)/.exec(pointer ?? "")?.[1] : undefined;
}

/** Whether a problem is about both ends of a wire. */
function isEdge({ code }: Diagnostic): boolean {
  return code.startsWith("EDGE_") || code === "RESULT_ON_MEMORY_PORT";
}

/** Whether a problem is about a service that keeps an agent from running. */
function isOfService({ node, target }: Diagnostic): boolean {
  return !isAgent(node?.type ?? "") && isAgent(target?.type ?? "");
}

/** The drawn wire that a problem is about: the first one if it passes junctions. */
function wireOf(diagnostic: Diagnostic, node: string, target: string | undefined, map: FlowMap): string | undefined {
  const match = /^\/wires\/(\d{1,6})\/(\d{1,6})$/.exec(diagnostic.pointer ?? "");
  if (match !== null) {
    const [port, index] = [Number(match[1]), Number(match[2])];
    const drawn = map.targetOf(node, port, index);
    return drawn === undefined ? undefined : wireKey(node, port, drawn);
  }
  const { port } = diagnostic;
  const drawn = port !== null && target !== undefined && map.hasWire(node, port, target);
  return drawn ? wireKey(node, port, target) : undefined;
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

/** Adds a diagnostic once, although the checker reports it for each instance of a subflow. */
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
