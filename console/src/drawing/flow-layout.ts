// The places of a flow's nodes and wires: those of the editor. Nodes without a place get one.

import { Graph, layout } from "@dagrejs/dagre";
import type { Diagnostic, FlowGraph, GraphNode, GraphWire } from "@redflow/bindings";

/** Flows with more nodes are shown as a list. */
export const MAX_DRAWN = 2_000;
/** Flows without places and with more nodes than this are laid in rows. */
export const MAX_LAID = 500;

const [MIN_WIDTH, HEIGHT, CHARACTER, PORT, MARGIN] = [110, 30, 7, 13, 30];
const [ROW_NODES, ROW_STEP, COLUMN_STEP] = [6, 60, 210];
const MAX_LABEL = 28;

export interface PlacedNode {
  node: GraphNode;
  label: string;
  /** The left and upper corner. */
  x: number;
  y: number;
  width: number;
  height: number;
  problems: readonly Diagnostic[];
}

export interface PlacedWire {
  wire: GraphWire;
  path: string;
  problems: readonly Diagnostic[];
}

export interface FlowLayout {
  nodes: readonly PlacedNode[];
  wires: readonly PlacedWire[];
  width: number;
  height: number;
}

/** The text of a node: its name, else its type. */
export function labelOf({ name, type }: Pick<GraphNode, "name" | "type">): string {
  const text = name || type;
  return text.length > MAX_LABEL ? `${text.slice(0, MAX_LABEL - 1)}…` : text;
}

function sizeOf(node: GraphNode): { width: number; height: number } {
  const width = Math.max(MIN_WIDTH, labelOf(node).length * CHARACTER + 44);
  return { width, height: Math.max(HEIGHT, node.outputs * PORT + 8) };
}

/** Places all nodes and wires. */
export function layFlow(graph: FlowGraph): FlowLayout {
  const centres = placeNodes(graph);
  const all = graph.nodes.map((node) => {
    const { width, height } = sizeOf(node);
    const { x, y } = centres.get(node.id) ?? { x: 0, y: 0 };
    return { node, label: labelOf(node), x: x - width / 2, y: y - height / 2, width, height, problems: problemsOf(graph, node) };
  });
  const [dx, dy] = [MARGIN - Math.min(...all.map(({ x }) => x)), MARGIN - Math.min(...all.map(({ y }) => y))];
  const nodes = all.map((one) => ({ ...one, x: one.x + dx, y: one.y + dy }));
  const byId = new Map(nodes.map((one) => [one.node.id, one]));
  const wires = graph.wires.flatMap((wire): PlacedWire[] => {
    const [from, to] = [byId.get(wire.from), byId.get(wire.to)];
    return from === undefined || to === undefined ? [] : [{ wire, path: pathOf(from, to, wire), problems: wireProblems(graph, wire) }];
  });
  return {
    nodes,
    wires,
    width: Math.max(0, ...nodes.map(({ x, width }) => x + width)) + MARGIN,
    height: Math.max(0, ...nodes.map(({ y, height }) => y + height)) + MARGIN,
  };
}

/** The centres of nodes. */
function placeNodes(graph: FlowGraph): Map<string, { x: number; y: number }> {
  const centres = new Map<string, { x: number; y: number }>();
  for (const { id, x, y } of graph.nodes) {
    if (x !== undefined && y !== undefined) {
      centres.set(id, { x, y });
    }
  }
  const rest = graph.nodes.filter(({ id }) => !centres.has(id));
  if (centres.size === 0 && rest.length <= MAX_LAID) {
    return layWithDagre(graph);
  }
  const bottom = Math.max(0, ...[...centres.values()].map(({ y }) => y)) + ROW_STEP * 1.5;
  const left = Math.min(...[...centres.values()].map(({ x }) => x), 120);
  for (const [index, { id }] of rest.entries()) {
    const [column, row] = [index % ROW_NODES, Math.floor(index / ROW_NODES)];
    centres.set(id, { x: left + column * COLUMN_STEP, y: bottom + row * ROW_STEP });
  }
  return centres;
}

function layWithDagre(graph: FlowGraph): Map<string, { x: number; y: number }> {
  const laid = new Graph();
  laid.setGraph({ rankdir: "LR", nodesep: 30, ranksep: 70 });
  laid.setDefaultEdgeLabel(() => ({}));
  for (const node of graph.nodes) {
    laid.setNode(node.id, sizeOf(node));
  }
  for (const { from, to } of graph.wires) {
    if (laid.hasNode(from) && laid.hasNode(to) && from !== to) {
      laid.setEdge(from, to);
    }
  }
  layout(laid);
  return new Map(graph.nodes.map(({ id }) => {
    const { x, y } = laid.node(id) as { x: number; y: number };
    return [id, { x, y }];
  }));
}

function problemsOf({ diagnostics }: FlowGraph, { id }: GraphNode): Diagnostic[] {
  return diagnostics.filter(({ node, target }) => node?.id === id || (node === null && target?.id === id));
}

function wireProblems({ diagnostics }: FlowGraph, { from, to, port }: GraphWire): Diagnostic[] {
  return diagnostics.filter((one) => one.node?.id === from && one.target?.id === to && (one.port === null || one.port === (port ?? null)));
}

/** A curve from an output to the input of a node. A binding by a property begins and ends in the middle. */
function pathOf(from: PlacedNode, to: PlacedNode, { port }: GraphWire): string {
  if (port === undefined) {
    const [x1, y1] = [from.x + from.width / 2, from.y + from.height / 2];
    const [x2, y2] = [to.x + to.width / 2, to.y + to.height / 2];
    return `M ${x1} ${y1} L ${x2} ${y2}`;
  }
  const outputs = Math.max(1, from.node.outputs);
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2 + (port - (outputs - 1) / 2) * PORT];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const reach = Math.max(40, Math.min(160, Math.abs(x2 - x1) * 0.6));
  return `M ${x1} ${y1} C ${x1 + reach} ${y1} ${x2 - reach} ${y2} ${x2} ${y2}`;
}

/** The heights of the outputs of a node. */
export function outputsOf({ node, y, height }: PlacedNode): number[] {
  return Array.from({ length: Math.min(node.outputs, 50) }, (_, index) => y + height / 2 + (index - (node.outputs - 1) / 2) * PORT);
}
