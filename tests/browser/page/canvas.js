// The canvas of the Redflow UI, with its own ideas of wires.
//
// A node has as many outputs as its `wires` had entries when it was loaded, and a new node has one. A deleted wire comes
// back, because the saved wires are those of the canvas and those that were loaded. A wire to a node that is gone does
// not.

let nodes = [];
/** The wires on the canvas: `{source, port, target}`. */
let edges = [];

/** Puts the nodes of a flow on the canvas. */
export function loadNodes(loaded) {
  nodes = loaded.map((node) => ({ node, outputs: node.wires?.length || 1 }));
  edges = loaded.flatMap(({ id, wires = [] }) =>
    wires.flatMap((targets, port) => targets.map((target) => ({ source: id, port, target }))),
  );
}

/** A new node has only what the UI gives it. */
export function addNode(node) {
  nodes.push({ node: { name: "", x: 1, y: 1, ...node }, outputs: 1 });
}

export function removeNode(id) {
  nodes = nodes.filter(({ node }) => node.id !== id);
  edges = edges.filter(({ source, target }) => source !== id && target !== id);
}

/** Draws a wire, as with the mouse. Returns why the UI refuses it. */
export function connectNodes(source, port, target) {
  const { outputs } = nodes.find(({ node }) => node.id === source);
  if (port >= outputs) {
    return `the node has only ${outputs} output(s)`;
  }
  edges.push({ source, port, target });
}

export function removeWire(source, port, target) {
  edges = edges.filter((edge) => edge.source !== source || edge.port !== port || edge.target !== target);
}

/** The nodes as the UI saves them. */
export function nodesToSave() {
  const types = new Map(nodes.map(({ node }) => [node.id, node.type]));
  return nodes.map(({ node }) => {
    const wires = [];
    const add = (port, target) => {
      while (wires.length <= port) {
        wires.push([]);
      }
      if (types.has(target) && !wires[port].includes(target)) {
        wires[port].push(target);
      }
    };
    edges.filter(({ source }) => source === node.id).forEach(({ port, target }) => add(port, target));
    node.wires?.forEach((targets, port) => targets.forEach((target) => add(port, target)));
    // The UI draws only one of the two wires between an agent and its chat, or its model.
    for (const { source } of edges.filter(({ target }) => target === node.id && node.type === "agent-core")) {
      if (types.get(source) === "chat-node") {
        add(4, source);
      } else if (types.get(source) === "model.azure.openai") {
        add(0, source);
      }
    }
    return { ...node, wires };
  });
}
