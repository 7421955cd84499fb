// The badge on an agent: the number of errors, else of warnings, else "?" if it is not checked, else no badge. Owns its look
// and its tooltip.

import type { Diagnostic } from "@redflow/bindings";
import { doubtOf, onChecked, problemsOfAgent, state, texts } from "./checks.mjs";
import { MAX_SHOWN_AT_NODE, explain, plain, wrapLines } from "./checks-verdicts.mjs";
import { isAgent } from "./flow.mjs";
import { text } from "./text.mjs";

const SVG = "http://www.w3.org/2000/svg";

type Kind = "error" | "warning" | "unknown";

interface Badge {
  kind: Kind;
  label: string;
}

/** The highest number on a badge. */
const MAX_NUMBER = 99;

const HEIGHT = 12;

/** The badge of each agent, until the next check. */
const badges = new Map<string, Badge | undefined>();
/** The drawn badge of each node. */
const drawn = new WeakMap<EditorNode, { key: string; element: SVGElement; width: number }>();

export function startBadges(): void {
  onChecked(() => {
    // The badges of the previous check stay during a check.
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
    badges.set(id, createBadge(id));
  }
  return badges.get(id);
}

function createBadge(id: string): Badge | undefined {
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
 * Whether to show the badge. Also replaces its measurement: Node-RED measures a badge at every redraw, and each time the
 * browser lays out the whole canvas. With 200 agents this makes the canvas slow, and the width is known.
 */
function show(node: EditorNode): boolean {
  const badge = drawn.get(node);
  const group = badge?.element.parentElement;
  if (badge && group && !Object.hasOwn(group, "getBoundingClientRect")) {
    group.getBoundingClientRect = () => new DOMRect(0, 0, (drawn.get(node) ?? badge).width * RED.view.scale(), HEIGHT);
  }
  // Node-RED has not called `filter` for nodes that were on the canvas before the registration.
  return isAgent(node.type) && badgeOf(node) !== undefined;
}

function draw(node: EditorNode): SVGElement {
  const badge = badgeOf(node);
  const group = document.createElementNS(SVG, "g");
  const label = badge?.label ?? "";
  const width = Math.max(HEIGHT, 6 + 6 * label.length);
  drawn.set(node, { key: keyOf(badge), element: group, width });
  const background = document.createElementNS(SVG, "rect");
  const size = { width, height: HEIGHT, rx: 6, ry: 6, y: -1 };
  Object.entries(size).forEach(([name, value]) => background.setAttribute(name, String(value)));
  background.setAttribute("class", `redflow-badge-${badge?.kind ?? "none"}`);
  const caption = document.createElementNS(SVG, "text");
  caption.setAttribute("x", String(width / 2));
  caption.setAttribute("y", "8.5");
  caption.textContent = label;
  group.append(background, caption);
  return group;
}

/** The tooltip. Node-RED shows it as text and keeps its lines. */
function tooltip({ id }: EditorNode): string {
  const problems = problemsOfAgent(id);
  const now = state();
  if (problems.length > 0) {
    const shown = problems.slice(0, MAX_SHOWN_AT_NODE).map(lineOf);
    const rest = problems.length - shown.length;
    return [...shown, ...(rest > 0 ? [texts.more(rest)] : [])].join("\n");
  }
  if (now.is === "not_checked") {
    return `${text("checks.notChecked")}\n${wrapLines(plain(now.reason))}`;
  }
  return wrapLines(doubtOf(id));
}

function lineOf(diagnostic: Diagnostic): string {
  const kind = text(isError(diagnostic) ? "checks.error" : "checks.warning");
  return wrapLines(`${kind} ${explain(diagnostic).join("\n")}`);
}

function isError({ severity }: Diagnostic): boolean {
  return severity === "error";
}

function number(count: number): string {
  return count > MAX_NUMBER ? `${MAX_NUMBER}+` : String(count);
}

function keyOf(badge: Badge | undefined): string {
  return badge === undefined ? "" : `${badge.kind} ${badge.label}`;
}
