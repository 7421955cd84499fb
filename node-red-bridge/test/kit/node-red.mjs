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
  /** Stops the running nodes and starts these, in this order. */
  RED.deploy = (...flow) => {
    RED.events.emit("flows:stopping");
    for (const node of RED.byId.values()) {
      node.listeners.close?.call(node, !flow.some(({ id }) => id === node.id), () => undefined);
    }
    RED.byId.clear();
    definitions.splice(0, Infinity, ...flow);
    RED.events.emit("flows:starting");
    for (const definition of flow) {
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
