// The config node that says where the sidecar is, or starts it.

import { join } from "node:path";
import { findBinary } from "../binary";
import { serveEditor } from "../admin";
import { close, follow, open } from "../bridge";
import { guarded } from "../guard";
import type { Definition, Red, RedNode } from "../red";
import { registerNode, reportSharedTypes } from "../register";
import type { RuntimeSettings } from "../runtime";

const DEFAULTS = { url: "http://127.0.0.1:1881", maxQueued: 1_000, queueSeconds: 60, maxHeldRuns: 1_000 };

/** The longest a message may wait, which timers can still count. */
const MAX_QUEUE_SECONDS = 86_400;

/** The most messages that may wait or be held: each is kept in memory. */
const MAX_MESSAGES = 100_000;

function settingsOf(RED: Red, node: RedNode, definition: Definition): RuntimeSettings {
  const text = (key: string): string => (typeof definition[key] === "string" ? definition[key].trim() : "");
  const count = (key: "maxQueued" | "queueSeconds" | "maxHeldRuns", most: number): number => {
    const given = definition[key];
    const value = given === "" || given === undefined || given === null ? NaN : Number(given);
    return Number.isFinite(value) && value >= 1 ? Math.min(Math.floor(value), most) : DEFAULTS[key];
  };
  const token = node.credentials?.["token"];
  const mode = definition["mode"] === "managed" ? "managed" : "remote";
  const passedOver = (what: string): void => {
    if (mode === "managed") {
      RED.log.warn(`[redflow-runtime] ${what}`);
    }
  };
  return {
    mode,
    url: text("url") || DEFAULTS.url,
    token: typeof token === "string" ? token.trim() : "",
    binary: findBinary(text("binary"), undefined, passedOver),
    dataDir: text("dataDir") || join(RED.settings.userDir ?? process.cwd(), "redflow"),
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
    open(RED, this.id, typeof instance === "string" ? instance.trim() : "", settingsOf(RED, this, definition));
    this.on("close", (removed, done) => {
      guarded(RED, "a runtime could not be left", () => close(RED, this.id, removed));
      done();
    });
  }

  follow(RED);
  reportSharedTypes(RED);
  if (!registerNode(RED, "redflow-runtime", RuntimeNode, { credentials: { token: { type: "password" } } })) {
    return;
  }
  serveEditor(RED);
};
