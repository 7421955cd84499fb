// Everything of this module that is there once in a process: the runtimes by their nodes, who this Node-RED is, and
// the events and hooks of Node-RED that they need.

import { createHash, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { RuntimeList } from "./admin-api";
import type { Call } from "./calls";
import type { Identity } from "./conversation";
import { clipped } from "./failure";
import { guarded } from "./guard";
import { tellEditors } from "./nudge";
import type { CompleteEvent, Msg, Red } from "./red";
import { Runtime } from "./runtime";
import type { RuntimeSettings } from "./runtime";
import { version } from "./version";

/** The setting of Node-RED that keeps who it is. */
const INSTANCE_SETTING = "redflowInstance";

/** How long a runtime is kept whose node was closed and not made again: flows that are stopped may be started again. */
const ABANDONED_MS = 30_000;

/** Characters of a runtime's name that editors are told. */
const NAME_LENGTH = 200;

interface Kept {
  runtime: Runtime;
  /** Whether its node is there now. */
  present: boolean;
  farewell: NodeJS.Timeout | undefined;
}

const runtimes = new Map<string, Kept>();
/** Runtimes whose nodes are gone, with messages that fail when the flows run again. */
let gone: Runtime[] = [];
let followed = false;

/** A `redflow-runtime` node was made: gives its runtime, the one from before the deploy if there is one. */
export function open(RED: Red, id: string, instance: string, settings: RuntimeSettings): Runtime {
  follow(RED);
  tellEditors(RED);
  const identity = identityOf(RED, id, instance);
  const kept = runtimes.get(id);
  if (kept !== undefined) {
    clearTimeout(kept.farewell);
    kept.present = true;
    kept.runtime.configure(settings, identity);
    return kept.runtime;
  }
  const runtime = new Runtime(RED, identity, settings);
  runtimes.set(id, { runtime, present: true, farewell: undefined });
  if (runtimes.size === 1) {
    RED.hooks.add("onComplete.redflow-bridge", (event) => {
      guarded(RED, "the failure of a tool could not be told", () => failed(event));
    });
  }
  return runtime;
}

/** A `redflow-runtime` node was closed; removed for good, or until it is made again. */
export function close(RED: Red, id: string, removed: boolean): void {
  const kept = runtimes.get(id);
  if (kept === undefined) {
    return;
  }
  kept.present = false;
  if (removed) {
    forget(RED, id, kept, true);
  } else {
    const leave = (): void => forget(RED, id, kept, false);
    kept.farewell = setTimeout(() => guarded(RED, "a runtime could not be left", leave), ABANDONED_MS);
    kept.farewell.unref();
  }
}

/** The runtime of a node: the one it names, or the only one there is. */
export function runtimeOf(named: unknown): Runtime | undefined {
  if (typeof named === "string" && named !== "") {
    const kept = runtimes.get(named);
    return kept?.present === true ? kept.runtime : undefined;
  }
  const present = [...runtimes.values()].filter((kept) => kept.present);
  return present.length === 1 ? present[0]?.runtime : undefined;
}

/** The runtime of a `redflow-runtime` node. */
export function runtimeById(id: string): Runtime | undefined {
  return runtimes.get(id)?.runtime;
}

/** The runtimes of the flow that runs. One whose node a deploy is about to make again is there too. */
export function runtimeList(RED: Red): RuntimeList {
  const views = [...runtimes].map(([id, { runtime }]) => {
    const name: unknown = RED.nodes.getNode(id)?.name;
    return { id, name: typeof name === "string" ? clipped(name, NAME_LENGTH) : "", ...runtime.view };
  });
  return { module: version, runtimes: views };
}

/** The call that a message belongs to, and whose it is. */
export function callOf(message: Msg): { runtime: Runtime; call: Call } | undefined {
  for (const { runtime } of runtimes.values()) {
    const call = runtime.tools.of(message);
    if (call !== undefined) {
      return { runtime, call };
    }
  }
  return undefined;
}

/** Listens to Node-RED's deploys, once. */
export function follow(RED: Red): void {
  if (followed) {
    return;
  }
  followed = true;
  const each = (act: (runtime: Runtime) => void) => () => {
    for (const { runtime } of runtimes.values()) {
      guarded(RED, "a runtime could not follow a deploy", () => act(runtime));
    }
  };
  RED.events.on("flows:stopping", each((runtime) => runtime.pause()));
  // Before the first of the new nodes can send anything, the sidecar has heard of them.
  RED.events.on("flows:starting", each((runtime) => runtime.tell()));
  RED.events.on("flows:started", each((runtime) => runtime.resume()));
  RED.events.on("flows:started", () => {
    const left = gone;
    gone = [];
    left.forEach((runtime) => guarded(RED, "messages of a runtime could not be ended", () => runtime.runs.resume()));
  });
}

function forget(RED: Red, id: string, kept: Kept, removed: boolean): void {
  clearTimeout(kept.farewell);
  if (runtimes.get(id) === kept) {
    runtimes.delete(id);
    tellEditors(RED);
    kept.runtime.dispose(removed);
    gone.push(kept.runtime);
    if (runtimes.size === 0) {
      RED.hooks.remove("*.redflow-bridge");
    }
  }
}

function failed(event: CompleteEvent): void {
  if (event.error === undefined || event.error === null) {
    return;
  }
  for (const { runtime } of runtimes.values()) {
    runtime.tools.failed(event);
  }
}

function identityOf(RED: Red, id: string, instance: string): Omit<Identity, "boot"> {
  const own = instance === "" ? instanceOf(RED) : instance;
  return { instance: sound(`${own}:${id}`), nodeRed: RED.version(), bridge: version };
}

/** An id the sidecar takes: visible ASCII, not too long. */
function sound(id: string): string {
  return /^[\x21-\x7e]{1,200}$/.test(id) ? id : createHash("sha256").update(id).digest("hex");
}

/** The same after a restart: kept in Node-RED's settings, or made of where it runs. */
function instanceOf(RED: Red): string {
  try {
    const kept = RED.settings.get(INSTANCE_SETTING);
    if (typeof kept === "string" && kept !== "") {
      return kept;
    }
    const made = randomUUID();
    RED.settings.set(INSTANCE_SETTING, made).catch(() => undefined);
    return made;
  } catch {
    const place = `${RED.settings.userDir ?? ""}\n${hostname()}`;
    return createHash("sha256").update(place).digest("hex").slice(0, 32);
  }
}
