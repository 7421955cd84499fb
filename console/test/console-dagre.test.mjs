// The parts of dagre that the console leaves out: what is left lays a graph as the whole does.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";

import { looseParts } from "../scripts/dagre.mjs";

const FILE = join(import.meta.dirname, "..", "node_modules", "@dagrejs", "dagre", "dist", "dagre.esm.js");
const source = readFileSync(FILE, "utf8");

function lay({ Graph, layout }) {
  const graph = new Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 30, ranksep: 70 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (let node = 0; node < 40; node += 1) {
    graph.setNode(String(node), { width: 100 + node, height: 30 });
  }
  // With circles, and with wires over several columns.
  for (let node = 0; node < 120; node += 1) {
    graph.setEdge(String(node % 40), String((node * 7 + 3) % 40));
  }
  layout(graph);
  return graph.nodes().map((node) => graph.node(node));
}

test("dagre without its lists of exports lays a graph as before", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "redflow-dagre-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "dagre.mjs");
  writeFileSync(file, looseParts(source));
  const [whole, loose] = await Promise.all([FILE, file].map((path) => import(pathToFileURL(path).href)));
  assert.deepEqual(lay(loose), lay(whole));
});

test("a dagre of another form is refused, so that no build is larger without a word", () => {
  assert.throws(() => looseParts("export const layout = 1;"), /scripts\/dagre\.mjs/);
});
