// The checker's results for the flow of the editor. Owns the last result and the list of Node-RED's events that change a flow.
// Checks nothing itself, and assumes nothing without a result.

import type { Diagnostic } from "@redflow/bindings";
import { RequestError, adminApi } from "./admin-client.mjs";
import { CheckLoop, type CheckState, type NotChecked, type Outcome } from "./checks-loop.mjs";
import { type Texts, type Verdicts, plain, summarize, verdictsOf } from "./checks-verdicts.mjs";
import { flowToCheck, createFlowMap } from "./flow.mjs";
import { canvasLabel } from "./node-label.mjs";
import { phraseText } from "./phrases.mjs";
import { text } from "./text.mjs";

export type { CheckState } from "./checks-loop.mjs";

/** The events that may change the result. Load, import, paste, undo and redo emit them too. */
const CHANGE_EVENTS = [
  ...["add", "remove"].flatMap((change) => [`links:${change}`, `junctions:${change}`]),
  ...["add", "remove", "change"].flatMap((change) => ["nodes", "flows", "subflows", "groups"].map((kind) => `${kind}:${change}`)),
  "flows:loaded",
  "workspace:clear",
];

/** The name of the pseudo property for wires in our nodes; see `verdict`. */
const WIRES_PROPERTY = "redflowWires";

export const texts: Texts = {
  from: (name) => text("checks.from", { name }),
  more: (number) => text("checks.more", { number }),
  labelOf: (id) => canvasLabel(RED.nodes.node(id)),
  translate: phraseText,
};

let verdicts: Verdicts | undefined;
let current: CheckState = { is: "checking" };
const listeners = new Set<() => void>();

/** The problems of a node, errors first. Empty if the flow is not checked. */
export function problemsOf(node: string): Diagnostic[] {
  return verdicts?.problemsOf(node) ?? [];
}

/** The problems of an agent, its model, its memory and its tools. */
export function problemsOfAgent(agent: string): Diagnostic[] {
  return verdicts?.problemsOfAgent(agent) ?? [];
}

/** The reason why an agent is not checked although the flow is; empty if it is checked. */
export function doubtOf(agent: string): string {
  if (verdicts?.unused.has(agent)) {
    return text("checks.unused");
  }
  const number = verdicts?.omitted ?? 0;
  return number > 0 && problemsOfAgent(agent).length === 0 ? text("checks.omitted", { number }) : "";
}

/** The sentence of a refused wire. */
export function refusalOf(wire: string): string | undefined {
  return verdicts?.refused.get(wire);
}

export function state(): CheckState {
  return current;
}

/** Calls `listener` when the result or the state may have changed. Returns the function that unsubscribes. */
export function onChecked(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** For the `validate` of our nodes: true, or the problems of the node and its wires. */
export function verdict(node: EditorNode): true | string[] {
  // Node-RED shows the problems of a config node as HTML.
  const problems = node._def.category === "config" ? undefined : verdicts?.sentences.get(node.id);
  const shown = (problems ?? []).filter(({ property }) => property === undefined || !isInvalid(node, property));
  return shown.length === 0 ? true : summarize(shown.map(({ sentence }) => sentence), texts);
}

/** Whether the dialog's own validation rejects a property: its sentence is in the user's language. */
function isInvalid(node: EditorNode, property: string): boolean {
  const defaults = node._def.defaults;
  const value = node[property];
  // Node-RED accepts a variable without validation.
  if (property === WIRES_PROPERTY || !Object.hasOwn(defaults, property) || (typeof value === "string" && /^\$[({]/.test(value))) {
    return false;
  }
  const found = defaults[property]?.validate?.call(node, value, {}) ?? true;
  return found !== true;
}

/** For the html files of the nodes. */
export const checks = { problemsOf, state, onChecked, verdict };

/** Starts to check. Called once, when the editor is loaded. */
export function startChecks(): void {
  const loop = new CheckLoop({
    flow: () => flowToCheck(RED.nodes.createCompleteNodeSet({ credentials: false }), (id) => RED.nodes.node(id)?.credentials),
    runtimes: adminApi.runtimes,
    check: (runtime, flow) => adminApi.check(runtime, flow.nodes),
    visible: () => !document.hidden,
    after: (ms, act) => void setTimeout(act, ms),
    failureOf,
    onOutcome,
    onRequest: () => setState({ is: "checking" }),
  });
  CHANGE_EVENTS.forEach((event) => RED.events.on(event, () => loop.changed()));
  // A deploy adds and removes runtimes. The topic announces changes of their connections.
  RED.events.on("deploy", () => loop.sidecarChanged());
  RED.comms.subscribe("redflow/runtimes", () => loop.sidecarChanged());
  document.addEventListener("visibilitychange", () => !document.hidden && loop.onVisible());
  loop.changed();
}

function onOutcome(outcome: Outcome): void {
  if ("why" in outcome) {
    apply(undefined);
    setState({ is: "not_checked", reason: reasonOf(outcome) });
    return;
  }
  const found = verdictsOf(outcome.report, createFlowMap(outcome.flow.nodes), texts);
  if (found.unusable !== undefined) {
    apply(undefined);
    setState({ is: "not_checked", reason: found.unusable });
    return;
  }
  apply(found);
  setState({ is: "checked", at: Date.now() });
}

/** Replaces the verdicts, and validates the nodes whose sentences differ. */
function apply(next: Verdicts | undefined): void {
  const before = verdicts;
  verdicts = next;
  const ids = new Set([...(before?.sentences.keys() ?? []), ...(next?.sentences.keys() ?? [])]);
  for (const id of ids) {
    const same = JSON.stringify(before?.sentences.get(id)) === JSON.stringify(next?.sentences.get(id));
    // Undefined for a removed node.
    const node = same ? undefined : RED.nodes.node(id);
    if (node && WIRES_PROPERTY in (node._def.defaults ?? {})) {
      RED.editor.validateNode(node);
    }
  }
}

function setState(next: CheckState): void {
  current = next;
  for (const listener of listeners) {
    try {
      listener();
    } catch (error) {
      // A failing listener does not change the state of the check.
      console.error("redflow", error);
    }
  }
}

function failureOf(error: unknown): NotChecked {
  if (error instanceof RequestError) {
    return { why: "refused", status: error.status, ...error.problem };
  }
  return { why: "refused", status: 0, code: "INTERNAL", message: String(error) };
}

function reasonOf(failure: NotChecked): string {
  switch (failure.why) {
    case "offline":
      return text("checks.reason.offline", { reason: plain(phraseText(failure.phrase, failure.reason)) });
    case "refused":
      return describeRefusal(failure);
    default:
      return text(`checks.reason.${failure.why}`);
  }
}

function describeRefusal({ status, code, message, phrase }: NotChecked & { why: "refused" }): string {
  if (status === 413) {
    return text("checks.reason.too_large");
  }
  if (message === "") {
    // Node-RED refuses without a message; the sidecar explains what its token may not do.
    return text(code === "FORBIDDEN" ? "checks.reason.forbidden" : "checks.reason.unreachable");
  }
  return `${plain(phraseText(phrase, message))} (${plain(code)})`;
}
