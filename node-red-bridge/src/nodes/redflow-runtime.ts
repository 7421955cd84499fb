// `redflow-runtime`: the config node with the address of a sidecar, or with the settings to start one.

import { join } from "node:path";
import { serveEditor } from "../admin";
import { findBinary } from "../binary";
import { guard } from "../guard";
import type { Definition, Red, RedNode } from "../red";
import { registerNode, reportSharedTypes } from "../register";
import type { RuntimeSettings } from "../runtime";
import { closeRuntime, followDeploys, openRuntime } from "../runtime-registry";

const DEFAULTS = { url: "http://127.0.0.1:1881", maxQueued: 1_000, queueSeconds: 60, maxHeldRuns: 1_000 };

/** The longest wait of a message; a timer can count it. */
const MAX_QUEUE_SECONDS = 86_400;

/** The most messages that may wait or be held: each takes memory. */
const MAX_MESSAGES = 100_000;

function settingsOf(RED: Red, node: RedNode, definition: Definition): RuntimeSettings {
  const text = (key: string): string => (typeof definition[key] === "string" ? definition[key].trim() : "");
  const count = (key: "maxQueued" | "queueSeconds" | "maxHeldRuns", max: number): number => {
    const given = definition[key];
    const value = given === "" || given === undefined || given === null ? NaN : Number(given);
    return Number.isFinite(value) && value >= 1 ? Math.min(Math.floor(value), max) : DEFAULTS[key];
  };
  const token = node.credentials?.["token"];
  const mode = definition["mode"] === "managed" ? "managed" : "remote";
  const warn = (text: string): void => {
    if (mode === "managed") {
      RED.log.warn(`[redflow-runtime] ${text}`);
    }
  };
  return {
    mode,
    url: text("url") || DEFAULTS.url,
    token: typeof token === "string" ? token.trim() : "",
    binary: findBinary(text("binary"), undefined, warn),
    dataDir: text("dataDir") || join(RED.settings.userDir ?? process.cwd(), "redflow"),
    allowPrivate: text("allowPrivate"),
    events: definition["events"] === true,
    maxQueued: count("maxQueued", MAX_MESSAGES),
    queueSeconds: count("queueSeconds", MAX_QUEUE_SECONDS),
    maxHeldRuns: count("maxHeldRuns", MAX_MESSAGES),
  };
}

export = (RED: Red): void => {
  function RuntimeNode(this: RedNode, definition: Definition): void {
    RED.nodes.createNode(this, definition);
    const instance = definition["instance"];
    openRuntime(RED, this.id, typeof instance === "string" ? instance.trim() : "", settingsOf(RED, this, definition));
    this.on("close", (removed, done) => {
      guard(RED, "a runtime could not be closed", () => closeRuntime(RED, this.id, removed ? "removed" : "stopped"));
      done();
    });
  }

  followDeploys(RED);
  reportSharedTypes(RED);
  if (!registerNode(RED, "redflow-runtime", RuntimeNode, { credentials: { token: { type: "password" } } })) {
    return;
  }
  serveEditor(RED);
};
