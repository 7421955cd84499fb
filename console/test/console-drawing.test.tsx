// Drawings of flows, and plots with their tables.

import { until } from "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import type { Diagnostic, FlowGraph, GraphNode } from "@redflow/bindings";
import { render } from "preact";
import { FlowDrawing } from "../src/drawing/flow-drawing.js";
import { MAX_DRAWN, MAX_LAID, layFlow } from "../src/drawing/flow-layout.js";
import { COLOURS, Plot, groupSeries, layColumns } from "../src/drawing/plot.js";

const node = (id: string, more: Partial<GraphNode> = {}): GraphNode => ({ id, type: "change", name: id, role: "data", outputs: 1, ...more });
const graph = (nodes: GraphNode[], wires: FlowGraph["wires"] = [], diagnostics: Diagnostic[] = []): FlowGraph => ({ tabs: [], nodes, wires, diagnostics, omitted: 0, omittedParts: 0 });
const problem = (from: string, to: string): Diagnostic => ({
  code: "EDGE_KIND_MISMATCH",
  severity: "error",
  message: "wrong",
  help: "fix",
  node: { id: from, type: "agent-core", name: from },
  port: 0,
  target: { id: to, type: "debug", name: to },
  pointer: null,
  file: null,
  expected: null,
  found: null,
});

test("nodes keep the places of the editor; nodes without one are laid below", () => {
  const laid = layFlow(graph([node("a", { x: 100, y: 100 }), node("b", { x: 400, y: 260 }), node("key")]));
  const [a, b, key] = laid.nodes;
  assert.ok(a && b && key);
  const centre = ({ x, width }: { x: number; width: number }): number => x + width / 2;
  assert.equal(centre(b) - centre(a), 300);
  assert.equal(b.y - a.y, 160);
  assert.ok(key.y > b.y);
  assert.ok(laid.nodes.every(({ x, y, width, height }) => x >= 0 && y >= 0 && x + width <= laid.width && y + height <= laid.height));
});

test("a flow without places is laid from left to right; a circle and a missing node do no harm", () => {
  const laid = layFlow(graph([node("a"), node("b"), node("c")], [
    { from: "a", port: 0, to: "b", kind: "data" },
    { from: "b", port: 0, to: "c", kind: "data" },
    { from: "c", port: 0, to: "a", kind: "reply" },
    { from: "c", port: 0, to: "c", kind: "data" },
    { from: "c", port: 0, to: "gone", kind: "data" },
  ]));
  const [a, b, c] = laid.nodes.map(({ x }) => x);
  assert.ok(a !== undefined && b !== undefined && c !== undefined && a < b && b < c);
  assert.equal(laid.wires.length, 4);
  assert.equal(layFlow(graph([])).nodes.length, 0);
  assert.equal(layFlow(graph(Array.from({ length: MAX_LAID + 1 }, (_, index) => node(String(index))))).nodes.length, MAX_LAID + 1);
});

test("the drawing names each node, marks wrong wires, and has a list of the same", async (t) => {
  const root = document.body.appendChild(document.createElement("div"));
  t.after(() => (render(null, root), root.remove()));
  const drawn = graph(
    [node("agent", { role: "agent", name: "<b>A</b>", x: 0, y: 0 }), node("out", { x: 300, y: 0 })],
    [{ from: "agent", port: 0, to: "out", kind: "model" }, { from: "agent", to: "out", kind: "memory" }],
    [problem("agent", "out")],
  );
  let chosen = "";
  render(<FlowDrawing graph={drawn} statuses={new Map([["agent", "running"]])} onChoose={({ id }) => (chosen = id)} />, root);
  const [agent] = root.querySelectorAll("g.node");
  assert.equal(agent?.getAttribute("aria-label"), "Agent, <b>A</b>, running, has an error");
  assert.equal(root.querySelectorAll("b").length, 0);
  agent?.dispatchEvent(new window.KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  assert.equal(chosen, "agent");
  assert.equal(root.querySelectorAll("path.wire.wrong").length, 1);
  assert.equal(root.querySelectorAll(".flow-box path.binding").length, 1);
  root.querySelector<HTMLElement>("button[aria-pressed]")?.click();
  await until("the list", () => root.querySelectorAll("tbody tr").length === 2);
  assert.match(root.querySelector("tbody tr")?.textContent ?? "", /model → out.*memory → out \(by a property\).*EDGE_KIND_MISMATCH/);
});

test("a flow that is too large is a list, and says so", (t) => {
  const root = document.body.appendChild(document.createElement("div"));
  t.after(() => (render(null, root), root.remove()));
  render(<FlowDrawing graph={{ ...graph([node("a")]), omitted: MAX_DRAWN }} />, root);
  assert.equal(root.querySelector("svg"), null);
  assert.match(root.textContent ?? "", /The flow has 2,001 nodes/);
});

test("a plot stacks every value; keys beyond the colours become one; the table has all of them", async (t) => {
  const days = ["2026-01-01", "2026-01-02"];
  const series = Array.from({ length: 12 }, (_, index) => ({ name: index === 11 ? "" : `k${index}`, values: new Map([["2026-01-01", index + 1]]), total: index + 1 }));
  const shown = groupSeries(series, "others");
  assert.equal(shown.length, COLOURS);
  assert.equal(shown.reduce((sum, { total }) => sum + total, 0), 78);
  assert.equal(layColumns(days, shown).at(-1)?.[0]?.[1], 78);
  const root = document.body.appendChild(document.createElement("div"));
  t.after(() => (render(null, root), root.remove()));
  render(<Plot label="Runs" days={days} series={series} format={String} formatExactly={(value) => value.toFixed(1)} />, root);
  assert.equal(root.querySelectorAll(".plot-box rect").length, COLOURS);
  assert.equal(root.querySelector("svg")?.getAttribute("aria-label"), "Runs: 78 in 2 days. The button Table shows each value.");
  root.querySelector<HTMLElement>("button")?.click();
  await until("the table", () => root.querySelectorAll("tbody td").length === series.length);
  assert.deepEqual([...root.querySelectorAll("tbody td")].slice(0, 3).map((cell) => cell.textContent), ["1.0", "2.0", "3.0"]);
  assert.equal(root.querySelector("thead th:last-child")?.textContent, "others");
});
