// The process-wide state of this module: the runtimes by the ids of their nodes, the identity of this Node-RED, and the
// events and hooks of Node-RED that the runtimes need.

import { createHash, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { RuntimeList } from "./admin-api";
import type { Identity } from "./bridge-session";
import type { Call } from "./calls";
import { notifyEditors } from "./editor-notice";
import { clip } from "./failure";
import { guard } from "./guard";
import { isRecord } from "./record";
import type { CompleteEvent, Msg, Red } from "./red";
import { Runtime } from "./runtime";
import type { RuntimeSettings } from "./runtime";
import { version } from "./version";

/** The setting of Node-RED that stores its instance id. */
const INSTANCE_SETTING = "redflowInstance";

/** How long a runtime outlives its closed node: stopped flows may start again. */
const DISPOSE_AFTER_MS = 30_000;

/** Characters of a runtime's name in the editor. */
const NAME_LENGTH = 200;

interface RuntimeEntry {
  runtime: Runtime;
  /** Whether its node exists now. */
  present: boolean;
  disposal: NodeJS.Timeout | undefined;
}

const runtimes = new Map<string, RuntimeEntry>();
/** Disposed runtimes. Their messages fail when the flows run again. */
let disposed: Runtime[] = [];
let followsDeploys = false;

/** Returns the runtime for a new `redflow-runtime` node: the one before the deploy, or a new one. */
export function openRuntime(RED: Red, id: string, instance: string, settings: RuntimeSettings): Runtime {
  followDeploys(RED);
  notifyEditors(RED);
  const identity = identityOf(RED, id, instance);
  const entry = runtimes.get(id);
  if (entry !== undefined) {
    clearTimeout(entry.disposal);
    entry.present = true;
    entry.runtime.configure(settings, identity);
    // Not before: the node may have another sidecar now, which alone may get the new credentials.
    entry.runtime.sendFlow();
    return entry.runtime;
  }
  const runtime = new Runtime(RED, id, identity, settings);
  runtimes.set(id, { runtime, present: true, disposal: undefined });
  if (runtimes.size === 1) {
    RED.hooks.add("onComplete.redflow-bridge", (event) => {
      guard(RED, "the failure of a tool could not be reported", () => onComplete(event));
    });
  }
  return runtime;
}

/**
 * Handles the close of a `redflow-runtime` node that was removed, or stopped and may start again. In a full deploy, and when
 * another project is loaded, Node-RED says of no node that it was removed.
 */
export function closeRuntime(RED: Red, id: string, cause: "removed" | "stopped"): void {
  const entry = runtimes.get(id);
  if (entry === undefined) {
    return;
  }
  entry.present = false;
  if (cause === "removed") {
    dispose(RED, id, entry, cause);
  } else {
    const act = (): void => dispose(RED, id, entry, cause);
    entry.disposal = setTimeout(() => guard(RED, "a runtime could not be closed", act), DISPOSE_AFTER_MS);
    entry.disposal.unref();
  }
}

/** The runtime of an agent: the one that it names, or the only one. */
export function runtimeOf(named: unknown): Runtime | undefined {
  if (typeof named === "string" && named !== "") {
    const entry = runtimes.get(named);
    return entry?.present === true ? entry.runtime : undefined;
  }
  const present = [...runtimes.values()].filter((entry) => entry.present);
  return present.length === 1 ? present[0]?.runtime : undefined;
}

/** The runtime of a `redflow-runtime` node. */
export function runtimeById(id: string): Runtime | undefined {
  return runtimes.get(id)?.runtime;
}

/** The runtimes of the running flow, also those whose node a deploy is about to create again. */
export function runtimeList(RED: Red): RuntimeList {
  const views = [...runtimes].map(([id, { runtime }]) => {
    const name: unknown = RED.nodes.getNode(id)?.name;
    return { id, name: typeof name === "string" ? clip(name, NAME_LENGTH) : "", ...runtime.view };
  });
  return { module: version, runtimes: views };
}

/** The tool call that a message belongs to, with its runtime. */
export function callOf(message: Msg): { runtime: Runtime; call: Call } | undefined {
  for (const { runtime } of runtimes.values()) {
    const call = runtime.tools.findCall(message);
    if (call !== undefined) {
      return { runtime, call };
    }
  }
  return undefined;
}

/** Listens to the deploys of Node-RED. Later calls do nothing. */
export function followDeploys(RED: Red): void {
  if (followsDeploys) {
    return;
  }
  followsDeploys = true;
  const each = (act: (runtime: Runtime) => void, isMeant: (entry: RuntimeEntry) => boolean = () => true) => () => {
    for (const { runtime } of [...runtimes.values()].filter(isMeant)) {
      guard(RED, "a runtime could not follow a deploy", () => act(runtime));
    }
  };
  RED.events.on("flows:stopping", each((runtime) => runtime.pause()));
  // Not to a runtime without a node: that may be gone. `openRuntime` sends the flow to one whose node is created again.
  const sendFlow = each((runtime) => runtime.sendFlow(), ({ present }) => present);
  // At `starting`, so that the sidecar receives the flow before a new node can send a message.
  RED.events.on("flows:starting", sendFlow);
  RED.events.on("flows:started", () => {
    for (const [id, entry] of [...runtimes].filter(([, { present }]) => !present)) {
      guard(RED, "a runtime could not be closed", () => dispose(RED, id, entry, "removed"));
    }
  });
  RED.events.on("flows:started", each((runtime) => runtime.resume()));
  // Node-RED starts a flow that waited for a type before the package of the type is in its list.
  RED.events.on("runtime-event", (event) => {
    if (isRecord(event) && event["id"] === "node/added") {
      sendFlow();
    }
  });
  RED.events.on("flows:started", () => {
    const runtimesToEnd = disposed;
    disposed = [];
    for (const runtime of runtimesToEnd) {
      guard(RED, "messages of a runtime could not be ended", () => runtime.runs.resume());
    }
  });
}

function dispose(RED: Red, id: string, entry: RuntimeEntry, cause: "removed" | "stopped"): void {
  clearTimeout(entry.disposal);
  if (runtimes.get(id) === entry) {
    runtimes.delete(id);
    notifyEditors(RED);
    entry.runtime.dispose(cause);
    disposed.push(entry.runtime);
    if (runtimes.size === 0) {
      RED.hooks.remove("*.redflow-bridge");
    }
  }
}

function onComplete(event: CompleteEvent): void {
  if (event.error === undefined || event.error === null) {
    return;
  }
  for (const { runtime } of runtimes.values()) {
    runtime.tools.handleError(event);
  }
}

function identityOf(RED: Red, id: string, instance: string): Omit<Identity, "boot"> {
  const own = instance === "" ? instanceOf(RED) : instance;
  return { instance: validId(`${own}:${id}`), nodeRed: RED.version(), bridge: version };
}

/** An id that the sidecar accepts: visible ASCII, not too long. */
function validId(id: string): string {
  return /^[\x21-\x7e]{1,200}$/.test(id) ? id : createHash("sha256").update(id).digest("hex");
}

/** An id that stays the same after a restart: stored in Node-RED's settings, or derived from the host and directory. */
function instanceOf(RED: Red): string {
  try {
    const stored = RED.settings.get(INSTANCE_SETTING);
    if (typeof stored === "string" && stored !== "") {
      return stored;
    }
    const instance = randomUUID();
    RED.settings.set(INSTANCE_SETTING, instance).catch(() => undefined);
    return instance;
  } catch {
    const place = `${RED.settings.userDir ?? ""}\n${hostname()}`;
    return createHash("sha256").update(place).digest("hex").slice(0, 32);
  }
}
