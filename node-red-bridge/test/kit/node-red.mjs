// As much of Node-RED as deploys nodes: it makes them, closes them, gives them messages, and asks its admin routes.

import { EventEmitter } from "node:events";
import { FakeNode, fakeRed } from "./red.mjs";

/** As much of Node-RED as deploys nodes: it makes them, closes them, and gives them messages. */
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
    hooked: hooks,
  });
  RED.nodes.registerType = (type, constructor) => types.set(type, constructor);
  RED.nodes.createNode = (node, definition) => {
    Object.assign(node, new FakeNode(definition.id, definition.type, definition.wires), { name: definition.name, listeners: {} });
    node.on = (event, listener) => (node.listeners[event] = listener);
  };
  const give = (node, message) => {
    const sent = [];
    const done = [];
    node.listeners.input.call(node, message, (out) => sent.push(out), (error) => {
      done.push(error);
      RED.onDone?.(message, error);
    });
    return { sent, done };
  };
  RED.give = (id, message) => give(RED.byId.get(id), message);
  /** Stops what runs, and starts these nodes: the config nodes first. */
  RED.deploy = (...wanted) => {
    RED.events.emit("flows:stopping");
    for (const node of RED.byId.values()) {
      node.listeners.close?.call(node, !wanted.some(({ id }) => id === node.id), () => undefined);
    }
    RED.byId.clear();
    definitions.splice(0, Infinity, ...wanted);
    RED.events.emit("flows:starting");
    for (const definition of wanted) {
      const constructor = types.get(definition.type);
      if (constructor !== undefined) {
        const node = Object.create(FakeNode.prototype);
        constructor.call(node, definition);
        node.ends = [];
        node.receive = (message) => node.ends.push(give(node, message));
        RED.byId.set(definition.id, node);
      }
    }
    RED.events.emit("flows:started");
  };
  /** Asks an admin route as Express does; what it answers. */
  RED.ask = (method, url, { body, type = "application/json" } = {}) => {
    const asked = url.split("?")[0].split("/");
    const fits = ({ path }) => {
      const parts = path.split("/");
      return parts.length === asked.length && parts.every((part, at) => part.startsWith(":") || part === asked[at]);
    };
    // As Express does it, the first that fits.
    const { path, handler } = routes.find((route) => route.method === method && fits(route));
    const named = path.split("/").flatMap((part, at) => (part.startsWith(":") ? [[part.slice(1), asked[at]]] : []));
    const params = Object.fromEntries(named.map(([name, value]) => [name, decodeURIComponent(value)]));
    const headers = {};
    return new Promise((resolve) => {
      const response = { setHeader: (name, value) => (headers[name] = value) };
      response.end = (text) => resolve({ status: response.statusCode, headers, body: JSON.parse(text) });
      handler({ url, params, headers: { "content-type": type }, body }, response);
    });
  };
  return RED;
}
