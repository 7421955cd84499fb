// A fake Node-RED that deploys the nodes of this module, sends them messages and calls the admin routes.

import { EventEmitter } from "node:events";
import { FakeNode, fakeRed } from "./red.mjs";

export function nodeRed() {
  const types = new Map();
  const definitions = [];
  const hooks = new Map();
  const routes = [];
  const RED = Object.assign(fakeRed([], definitions), {
    version: () => "4.1.0",
    events: new EventEmitter(),
    hooks: {
      add: (name, hook) => hooks.set(name, hook),
      remove: (name) => (name.startsWith("*") ? hooks.clear() : hooks.delete(name)),
    },
    settings: { get: () => "me", set: async () => undefined, available: () => true },
    auth: { needsPermission: (permission) => permission },
    httpAdmin: Object.fromEntries(
      ["GET", "POST", "DELETE"].map((method) => [
        method.toLowerCase(),
        (path, permission, handler) => routes.push({ method, path, permission, handler }),
      ]),
    ),
    routes,
    addedHooks: hooks,
  });
  RED.nodes.registerType = (type, constructor) => types.set(type, constructor);
  RED.nodes.createNode = (node, definition) => {
    Object.assign(node, new FakeNode(definition.id, definition.type, definition.wires), { name: definition.name, listeners: {} });
    node.on = (event, listener) => (node.listeners[event] = listener);
  };
  const send = (node, message) => {
    const sent = [];
    const done = [];
    node.listeners.input.call(node, message, (out) => sent.push(out), (error) => {
      done.push(error);
      RED.onDone?.(message, error);
    });
    return { sent, done };
  };
  /** Sends a message to a node. Returns what the node sends and its calls of `done`. */
  RED.send = (id, message) => send(RED.byId.get(id), message);
  /** Replaces the flow. Nodes for which `keeps` is true go on. The others stop, and hear it by `saysRemoved` if they are gone. */
  const replace = (flow, { keeps = () => false, saysRemoved }) => {
    RED.events.emit("flows:stopping");
    const old = new Map(definitions.map((definition) => [definition.id, JSON.stringify(definition)]));
    const kept = flow.filter((definition) => RED.byId.has(definition.id) && keeps(definition, old));
    for (const node of RED.byId.values()) {
      if (!kept.some(({ id }) => id === node.id)) {
        node.listeners.close?.call(node, saysRemoved && !flow.some(({ id }) => id === node.id), () => undefined);
        RED.byId.delete(node.id);
      }
    }
    definitions.splice(0, Infinity, ...flow);
    RED.events.emit("flows:starting");
    const isOff = ({ d, z }) => d === true || flow.some(({ id, disabled }) => id === z && disabled === true);
    for (const definition of flow.filter((one) => !kept.includes(one) && !isOff(one))) {
      const constructor = types.get(definition.type);
      if (constructor !== undefined) {
        const node = Object.create(FakeNode.prototype);
        constructor.call(node, definition);
        node.ends = [];
        node.receive = (message) => node.ends.push(send(node, message));
        RED.byId.set(definition.id, node);
      }
    }
    RED.events.emit("flows:started");
  };
  /** Stops the running nodes and starts these, in this order. */
  RED.deploy = (...flow) => replace(flow, { saysRemoved: true });
  /** A full deploy, or a change of the project: Node-RED says of no node that it was removed. */
  RED.reload = (...flow) => replace(flow, { saysRemoved: false });
  /** A deploy of the changed nodes. */
  RED.deployChanged = (...flow) => {
    replace(flow, { saysRemoved: true, keeps: (definition, old) => old.get(definition.id) === JSON.stringify(definition) });
  };
  /** Calls an admin route as Express does. Resolves with the response. */
  RED.request = (method, url, { body, type = "application/json" } = {}) => {
    const segments = url.split("?")[0].split("/");
    const matches = ({ path }) => {
      const parts = path.split("/");
      return parts.length === segments.length && parts.every((part, at) => part.startsWith(":") || part === segments[at]);
    };
    // Like Express, the first match.
    const { path, handler } = routes.find((route) => route.method === method && matches(route));
    const pairs = path.split("/").flatMap((part, at) => (part.startsWith(":") ? [[part.slice(1), segments[at]]] : []));
    const params = Object.fromEntries(pairs.map(([name, value]) => [name, decodeURIComponent(value)]));
    const headers = {};
    return new Promise((resolve) => {
      const response = { setHeader: (name, value) => (headers[name] = value) };
      response.end = (text) => resolve({ status: response.statusCode, headers, body: JSON.parse(text) });
      handler({ url, params, headers: { "content-type": type }, body }, response);
    });
  };
  return RED;
}
