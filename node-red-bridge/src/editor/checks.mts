// What the sidecar's checker says of the flow in the editor, for all who show it. Owns what was said last and which of
// Node-RED's events are changes; judges nothing itself, and guesses nothing when there is no answer.

import type { Diagnostic } from "@redflow/bindings";
import { Refused, ask } from "./ask.mjs";
import { CheckLoop, type CheckState, type NotChecked, type Outcome } from "./checks-loop.mjs";
import { type Verdicts, type Words, bounded, plain, verdictsOf } from "./checks-verdicts.mjs";
import { askedFlow, mapOf } from "./flow.mjs";
import { canvasLabel } from "./label.mjs";
import { text } from "./text.mjs";

export type { CheckState } from "./checks-loop.mjs";

/** Whatever can change what the checker says. Load, import, paste, undo and redo come through these, too. */
const CHANGES = [
  ...["add", "remove"].flatMap((what) => [`links:${what}`, `junctions:${what}`]),
  ...["add", "remove", "change"].flatMap((what) => ["nodes", "flows", "subflows", "groups"].map((of) => `${of}:${what}`)),
  "flows:loaded",
  "workspace:clear",
];

/** The default that stands for the wires in our nodes; see `verdict`. */
const WIRES = "redflowWires";

export const words: Words = {
  from: (name) => text("checks.from", { name }),
  more: (number) => text("checks.more", { number }),
  labelOf: (id) => canvasLabel(RED.nodes.node(id)),
};

let verdicts: Verdicts | undefined;
let now: CheckState = { is: "checking" };
const listeners = new Set<() => void>();

/** What the checker holds against a node, errors first. Nothing if the flow is not checked. */
export function problemsOf(node: string): Diagnostic[] {
  return verdicts?.problemsOf(node) ?? [];
}

/** The same of an agent, with what is wrong with the model, the memory and the tools it binds. */
export function problemsOfAgent(agent: string): Diagnostic[] {
  return verdicts?.problemsOfAgent(agent) ?? [];
}

/** Why nothing can be said of an agent although the flow is checked; empty if all is well with it. */
export function doubtOf(agent: string): string {
  if (verdicts?.unused.has(agent)) {
    return text("checks.unused");
  }
  const number = verdicts?.omitted ?? 0;
  return number > 0 && problemsOfAgent(agent).length === 0 ? text("checks.omitted", { number }) : "";
}

/** The sentence of a wire that is refused. */
export function refusalOf(wire: string): string | undefined {
  return verdicts?.refused.get(wire);
}

export function state(): CheckState {
  return now;
}

/** Tells whenever the verdicts or the state may have changed. Gives what ends that. */
export function onChecked(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** For the `validate` of our nodes: true, or what is wrong with the node and its wires. */
export function verdict(node: EditorNode): true | string[] {
  // Node-RED shows what it finds wrong with a configuration node as HTML.
  const said = node._def.category === "config" ? undefined : verdicts?.sentences.get(node.id);
  const left = (said ?? []).filter(({ property }) => property === undefined || !isRefused(node, property));
  return left.length === 0 ? true : bounded(left.map(({ sentence }) => sentence), words);
}

/** Whether the dialog's own check says already that a property is wrong, in the language of the person. */
function isRefused(node: EditorNode, property: string): boolean {
  const defaults = node._def.defaults;
  const value = node[property];
  // Node-RED takes a variable without asking.
  if (property === WIRES || !Object.hasOwn(defaults, property) || (typeof value === "string" && /^\$[({]/.test(value))) {
    return false;
  }
  const found = defaults[property]?.validate?.call(node, value, {}) ?? true;
  return found !== true;
}

/** What the pages of the nodes use. */
export const checks = { problemsOf, state, onChecked, verdict };

/** Begins to check. Once, when the editor is loaded. */
export function startChecks(): void {
  const loop = new CheckLoop({
    flow: () => askedFlow(RED.nodes.createCompleteNodeSet({ credentials: false })),
    runtimes: ask.runtimes,
    check: (runtime, flow) => ask.check(runtime, flow.nodes),
    visible: () => !document.hidden,
    after: (ms, act) => void setTimeout(act, ms),
    failureOf,
    settled,
    asking: () => tell({ is: "checking" }),
  });
  CHANGES.forEach((event) => RED.events.on(event, () => loop.changed()));
  // A deploy brings and takes runtimes; the topic says that one came or went.
  RED.events.on("deploy", () => loop.sidecarChanged());
  RED.comms.subscribe("redflow/runtimes", () => loop.sidecarChanged());
  document.addEventListener("visibilitychange", () => !document.hidden && loop.seen());
  loop.changed();
}

function settled(outcome: Outcome): void {
  if ("why" in outcome) {
    apply(undefined);
    tell({ is: "not_checked", reason: reasonOf(outcome) });
    return;
  }
  const found = verdictsOf(outcome.report, mapOf(outcome.flow.nodes), words);
  if (found.unusable !== undefined) {
    apply(undefined);
    tell({ is: "not_checked", reason: found.unusable });
    return;
  }
  apply(found);
  tell({ is: "checked", at: Date.now() });
}

/** Puts new verdicts in place of the old, and has Node-RED look again at the nodes they differ about. */
function apply(next: Verdicts | undefined): void {
  const before = verdicts;
  verdicts = next;
  const named = new Set([...(before?.sentences.keys() ?? []), ...(next?.sentences.keys() ?? [])]);
  for (const id of named) {
    const same = JSON.stringify(before?.sentences.get(id)) === JSON.stringify(next?.sentences.get(id));
    // Node-RED has no answer for a node that is gone.
    const node = same ? undefined : RED.nodes.node(id);
    if (node && WIRES in (node._def.defaults ?? {})) {
      RED.editor.validateNode(node);
    }
  }
}

function tell(next: CheckState): void {
  now = next;
  for (const listener of listeners) {
    try {
      listener();
    } catch (error) {
      // What one of them cannot show is no reason to call the flow unchecked.
      console.error("redflow", error);
    }
  }
}

function failureOf(error: unknown): NotChecked {
  if (error instanceof Refused) {
    return { why: "refused", status: error.status, ...error.problem };
  }
  return { why: "refused", status: 0, code: "INTERNAL", message: String(error) };
}

function reasonOf(failure: NotChecked): string {
  switch (failure.why) {
    case "away":
      return text("checks.reason.away", { reason: plain(failure.reason) });
    case "refused":
      return refusal(failure);
    default:
      return text(`checks.reason.${failure.why}`);
  }
}

function refusal({ status, code, message }: { status: number; code: string; message: string }): string {
  if (status === 413) {
    return text("checks.reason.too_large");
  }
  if (message === "") {
    // Node-RED refuses without a word; the sidecar says what its token may not.
    return text(code === "FORBIDDEN" ? "checks.reason.forbidden" : "checks.reason.unreachable");
  }
  return `${plain(message)} (${plain(code)})`;
}
