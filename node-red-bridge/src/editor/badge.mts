// The badge on an agent: how many errors, else how many warnings, else "?" if it is not checked, else nothing. Owns how
// it looks and what its tooltip says; what is wrong comes from `checks`.

import type { Diagnostic } from "@redflow/bindings";
import { doubtOf, onChecked, problemsOfAgent, state, words } from "./checks.mjs";
import { explained, inLines, plain, TOLD_AT_NODE } from "./checks-verdicts.mjs";
import { isAgent } from "./flow.mjs";
import { text } from "./text.mjs";

const SVG = "http://www.w3.org/2000/svg";

type Kind = "error" | "warning" | "unknown";

interface Badge {
  kind: Kind;
  label: string;
}

/** The highest number that is written out. */
const MOST = 99;

const HEIGHT = 12;

/** What each agent has, until the next check. */
const badges = new Map<string, Badge | undefined>();
/** What is drawn at a node. */
const drawn = new WeakMap<EditorNode, { key: string; element: SVGElement; width: number }>();

export function startBadges(): void {
  onChecked(() => {
    // While a question is on its way, what was said before stays.
    if (state().is !== "checking") {
      badges.clear();
      RED.view.redraw();
    }
  });
  RED.view.annotations.register("redflow-checks", {
    type: "badge",
    class: "redflow-badge",
    filter: ({ type }: EditorNode) => isAgent(type),
    show,
    refresh: (node: EditorNode) => drawn.get(node)?.key !== keyOf(badgeOf(node)),
    element: draw,
    tooltip,
  });
}

function badgeOf({ id }: EditorNode): Badge | undefined {
  if (!badges.has(id)) {
    badges.set(id, judge(id));
  }
  return badges.get(id);
}

function judge(id: string): Badge | undefined {
  const problems = problemsOfAgent(id);
  const errors = problems.filter(isError).length;
  if (errors > 0) {
    return { kind: "error", label: number(errors) };
  }
  if (problems.length > 0) {
    return { kind: "warning", label: number(problems.length) };
  }
  return state().is === "not_checked" || doubtOf(id) !== "" ? { kind: "unknown", label: "?" } : undefined;
}

/**
 * Node-RED measures a badge at every redraw, and each time the browser lays out the whole canvas for it: with 200 agents
 * that alone makes the canvas slow. This one knows its width.
 */
function show(node: EditorNode): boolean {
  const place = drawn.get(node);
  const group = place?.element.parentElement;
  if (place && group && !Object.hasOwn(group, "getBoundingClientRect")) {
    group.getBoundingClientRect = () => new DOMRect(0, 0, (drawn.get(node) ?? place).width * RED.view.scale(), HEIGHT);
  }
  // Nodes that were on the canvas before this was registered have not been asked for by `filter`.
  return isAgent(node.type) && badgeOf(node) !== undefined;
}

function draw(node: EditorNode): SVGElement {
  const badge = badgeOf(node);
  const group = document.createElementNS(SVG, "g");
  const label = badge?.label ?? "";
  const width = Math.max(HEIGHT, 6 + 6 * label.length);
  drawn.set(node, { key: keyOf(badge), element: group, width });
  const back = document.createElementNS(SVG, "rect");
  const size = { width, height: HEIGHT, rx: 6, ry: 6, y: -1 };
  Object.entries(size).forEach(([name, value]) => back.setAttribute(name, String(value)));
  back.setAttribute("class", `redflow-badge-${badge?.kind ?? "none"}`);
  const front = document.createElementNS(SVG, "text");
  front.setAttribute("x", String(width / 2));
  front.setAttribute("y", "8.5");
  front.textContent = label;
  group.append(back, front);
  return group;
}

/** Node-RED shows it as text, a line for each line. */
function tooltip({ id }: EditorNode): string {
  const problems = problemsOfAgent(id);
  const now = state();
  if (problems.length > 0) {
    const shown = problems.slice(0, TOLD_AT_NODE).map(lineOf);
    const rest = problems.length - shown.length;
    return [...shown, ...(rest > 0 ? [words.more(rest)] : [])].join("\n");
  }
  if (now.is === "not_checked") {
    return `${text("checks.notChecked")}\n${inLines(plain(now.reason))}`;
  }
  return inLines(doubtOf(id));
}

function lineOf(diagnostic: Diagnostic): string {
  const kind = text(isError(diagnostic) ? "checks.error" : "checks.warning");
  return inLines(`${kind} ${explained(diagnostic).join("\n")}`);
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

function number(count: number): string {
  return count > MOST ? `${MOST}+` : String(count);
}

function keyOf(badge: Badge | undefined): string {
  return badge === undefined ? "" : `${badge.kind} ${badge.label}`;
}
