// One sidecar as this Node-RED sees it: a `redflow-runtime` node's link, its agents, runs and tools. Outlives the
// nodes of a deploy, so that a deploy drops no socket and no run. Never runs an agent itself.

import { randomBytes, randomUUID } from "node:crypto";
import type { BridgeMessage, Diagnostic } from "@redflow/bindings";
import type { RuntimeView } from "./admin-api";
import { Agents } from "./agents";
import { Conversation } from "./conversation";
import type { Closing, Identity, Welcome } from "./conversation";
import { errors } from "./errors";
import { Failure, clipped } from "./failure";
import { tellFlows } from "./flows";
import type { Told } from "./flows";
import { guarded, report } from "./guard";
import { Link } from "./link";
import type { LinkState } from "./link";
import { Managed } from "./managed";
import { tellEditors } from "./nudge";
import type { Red } from "./red";
import { edgesOf, refuse } from "./refused-edges";
import { Runs } from "./runs";
import type { RunBounds } from "./runs";
import { SidecarApi } from "./sidecar-api";
import { SAID_LENGTH } from "./target";
import { Tools } from "./tools";

/** What a `redflow-runtime` node says. */
export interface RuntimeSettings extends RunBounds {
  mode: "remote" | "managed";
  url: string;
  token: string;
  binary: string;
  dataDir: string;
  events: boolean;
}

/** A frame has a little more than what it carries. */
const FRAME_OVERHEAD = 1_024;

/** What makes a connection, and what says which sidecar it goes to. */
const CONNECTION: Record<RuntimeSettings["mode"], (keyof RuntimeSettings)[]> = {
  remote: ["mode", "url", "token"],
  managed: ["mode", "binary", "dataDir"],
};
const PLACE: typeof CONNECTION = { remote: ["mode", "url"], managed: ["mode", "dataDir"] };

const ALWAYS = { count: Infinity, bytes: Infinity };

/** Keeps credentials from being guessed from a flow's revision. */
const secret = randomBytes(32).toString("hex");

/** One sidecar. */
export class Runtime {
  readonly agents: Agents;
  readonly runs: Runs;
  readonly tools: Tools;
  readonly api: SidecarApi;
  private readonly conversation: Conversation;
  private readonly link: Link;
  private identity: Identity;
  private managed: Managed | undefined;
  /** When the sidecar before has ended: two must not have the same data. */
  private gone: Promise<void> = Promise.resolve();
  private told: Told | undefined;
  private reported: string | undefined;
  private saidState = "";
  /** Why the sidecar cannot be told the flow. */
  private unfit: Extract<LinkState, { is: "refused" }> | undefined;
  /** Where the sidecar is, for people. */
  private address = "";

  constructor(
    private readonly RED: Red,
    identity: Omit<Identity, "boot">,
    private settings: RuntimeSettings,
  ) {
    // Another runtime of the same node remembers no calls of this one, so it must not be taken for it.
    this.identity = { ...identity, boot: randomUUID() };
    this.agents = new Agents(RED, () => tellEditors(RED));
    const conversation = new Conversation(this.identity, {
      welcomed: (welcome, fresh) => this.welcomed(welcome, fresh),
      take: (message, waited) => this.take(message, waited),
      closing: (closing) => this.closing(closing),
      taken: () => this.runs.count(),
      opening: () => this.opening(),
    });
    this.conversation = conversation;
    this.link = new Link(conversation, (state) => this.changed(state));
    this.runs = new Runs(RED, conversation, this.agents, () => ({ ...this.settings, url: withoutSecrets(this.address) }));
    this.tools = new Tools(RED, conversation);
    this.api = new SidecarApi(() => this.link);
    // Nothing is taken until the nodes that take it are there.
    this.pause();
    this.tell();
    this.connect();
  }

  /** The node has other settings now: only what they change is begun anew. */
  configure(settings: RuntimeSettings, identity: Omit<Identity, "boot">): void {
    const before = this.settings;
    this.settings = settings;
    if (identity.instance !== this.identity.instance) {
      this.identity = { ...this.identity, ...identity };
      this.conversation.rename(this.identity);
    } else if (isSame(before, settings, CONNECTION[settings.mode])) {
      if (before.events !== settings.events) {
        this.conversation.say({ type: "watch", events: settings.events });
      }
      return;
    }
    if (!isSame(before, settings, PLACE[before.mode])) {
      this.runs.failBegun(new Failure("RUNTIME_UNREACHABLE", "another sidecar was chosen while the run went on"));
      this.conversation.abandon();
    }
    this.disconnect();
    this.connect();
  }

  /** The node was removed; or the flows were stopped, and what the sidecar began is for whoever comes after. */
  dispose(removed: boolean): void {
    const why = removed ? "the redflow-runtime of this run was removed" : "the flows were stopped before a run began";
    this.pause();
    this.refuse([]);
    this.runs.leaveAll(new Failure("RUNTIME_UNREACHABLE", why), removed);
    this.disconnect();
  }

  /** Nodes are being exchanged: what comes waits. */
  pause(): void {
    this.conversation.pause();
    this.runs.pause();
  }

  /** The nodes of the flow are there: what came meanwhile is taken. */
  resume(): void {
    for (const start of this.runs.resume()) {
      const rest = `"start":"${start}","reason":"the agent has another runtime now"}`;
      this.conversation.post("cancel", rest, ALWAYS);
    }
    this.agents.forgetSaid(false);
    this.conversation.resume();
  }

  /** Tells the sidecar the flow that is being started, if it does not know it. */
  tell(): void {
    const told = tellFlows(this.RED, secret);
    if (told.revision === this.told?.revision) {
      return;
    }
    this.told = told;
    // What was refused may have been mended: until the sidecar has looked, it alone decides.
    this.refuse([]);
    this.agents.forgetVerdicts();
    told.warnings.forEach((warning) => this.RED.log.warn(`[redflow-runtime] ${warning}`));
    const wasUnfit = this.unfit !== undefined;
    if (this.fits(told)) {
      // Also while the sidecar is away: it may come back and go on with the flow it has.
      this.conversation.postNewest("flows", told.rest);
      if (wasUnfit) {
        this.disconnect();
        this.connect();
      }
    }
  }

  /** Who this Node-RED is for the sidecar: its runs have that name. */
  get instance(): string {
    return this.identity.instance;
  }

  /** How things stand with the sidecar. */
  get state(): LinkState {
    return this.link.state;
  }

  /** What people see of it. */
  get view(): Omit<RuntimeView, "id" | "name"> {
    const { mode } = this.settings;
    const address = clipped(withoutSecrets(this.address), SAID_LENGTH);
    return { mode, address, state: this.state, waiting: this.runs.waiting };
  }

  /** The last lines of a sidecar that was started here. */
  log(): string[] {
    return this.managed?.log() ?? [];
  }

  private connect(): void {
    const { mode, url, token, binary, dataDir } = this.settings;
    this.address = mode === "remote" ? url : "127.0.0.1";
    if (mode === "remote") {
      this.link.start({ url, token });
      return;
    }
    this.managed = new Managed(
      { binary, dataDir },
      {
        up: (target) => {
          this.address = target.url;
          this.link.start(target);
        },
        down: (reason) => this.link.say({ is: "away", reason }),
        missing: (message) => this.link.say({ is: "refused", code: "SIDECAR_UNREACHABLE", message }),
        line: (text) => {
          guarded(this.RED, "the sidecar's log", () => this.RED.log.info(`[redflow-runtime] ${text}`));
        },
      },
    );
    this.managed.start(this.gone).catch((error: unknown) => report(this.RED, "the sidecar could not be started", error));
  }

  private disconnect(): void {
    this.link.stop();
    if (this.managed !== undefined) {
      const stopped = this.managed.stop().catch((error: unknown) => {
        report(this.RED, "the sidecar could not be stopped", error);
      });
      this.gone = Promise.all([this.gone, stopped]).then(() => undefined);
      this.managed = undefined;
    }
  }

  private opening(): { type: string; rest: string } | undefined {
    return this.told !== undefined && this.fits(this.told) ? { type: "flows", rest: this.told.rest } : undefined;
  }

  private fits(told: Told): boolean {
    const bytes = Buffer.byteLength(told.rest) + FRAME_OVERHEAD;
    const most = this.conversation.limits.maxFrameBytes;
    if (told.tooDeep !== undefined) {
      this.unfit = { is: "refused", code: "FLOW_TOO_DEEP", message: told.tooDeep };
    } else if (bytes > most) {
      const message = `the flow has ${bytes} bytes; the sidecar takes ${most}`;
      this.unfit = { is: "refused", code: "FLOW_TOO_LARGE", message };
    } else {
      this.unfit = undefined;
    }
    if (this.unfit !== undefined) {
      this.link.say(this.unfit);
    }
    return this.unfit === undefined;
  }

  private welcomed(welcome: Welcome, fresh: boolean): void {
    if (this.unfit !== undefined) {
      this.link.say(this.unfit);
      return;
    }
    if (fresh) {
      this.agents.forgetSaid(true);
    }
    if (this.settings.events) {
      this.conversation.say({ type: "watch", events: true });
    }
    this.link.welcomed(welcome.version);
  }

  private closing(closing: Closing): void {
    this.link.closing(closing);
  }

  private changed(state: LinkState): void {
    this.agents.setLink(state);
    this.runs.count();
    const text = sentenceOf(state, withoutSecrets(this.address));
    // The same sentence with every try would fill the log.
    if (text !== this.saidState) {
      this.saidState = text;
      const level = state.is === "refused" ? "error" : state.is === "away" ? "warn" : "info";
      guarded(this.RED, "the state of the sidecar could not be logged", () => {
        this.RED.log[level](`[redflow-runtime] ${text}`);
      });
    }
  }

  private take(message: BridgeMessage, waited: number): void {
    try {
      this.handle(message, waited);
    } catch (error) {
      // A node that throws must not make the sidecar send the same message for ever.
      report(this.RED, `a message of the sidecar (${message.type}) could not be used`, error);
    }
  }

  private handle(message: BridgeMessage, waited: number): void {
    switch (message.type) {
      case "send":
        return this.runs.leave(message);
      case "tool_call":
        return this.tools.call(message, waited);
      case "start_failed":
        return this.runs.startFailed(message);
      case "start_done":
        return this.runs.startDone(message);
      case "status": {
        const { node, fill, shape, text } = message;
        return this.agents.setSaid(node, { fill, shape, text });
      }
      case "deployed":
        return this.deployed(message);
      case "flows_refused": {
        const { code, message: why } = message.error;
        this.RED.log.error(`[redflow-runtime] the sidecar cannot use this flow: ${why} (${code})`);
        this.agents.setProblems(new Map(), `${code}: ${why}`);
        return this.report(message.revision, message.error.report?.diagnostics ?? []);
      }
      case "notice":
        return this.notice(message.node, message);
      case "event":
        return this.RED.events.emit("redflow:event", message.event);
      default:
        // A newer sidecar may say more than this module knows.
        return;
    }
  }

  private deployed({ revision, agents, report }: Extract<BridgeMessage, { type: "deployed" }>): void {
    if (revision !== this.told?.revision) {
      return;
    }
    const problems = new Map<string, string>();
    for (const { node, ready, problems: own } of agents) {
      if (!ready) {
        const first = own.find((problem) => problem.severity === "error") ?? own[0];
        problems.set(node.id, first === undefined ? "the agent is not ready" : `${first.code}: ${first.message}`);
      }
    }
    this.agents.setProblems(problems);
    this.refuse(report.diagnostics);
    this.report(revision, report.diagnostics);
  }

  /** Messages on the wires that the checker refuses are kept from the agents. */
  private refuse(diagnostics: Diagnostic[]): void {
    const edges = edgesOf(diagnostics, (id) => this.agents.get(id) !== undefined);
    refuse(this.RED, this, edges);
  }

  /** Writes what the checker says into the log, once for each flow. */
  private report(revision: string, diagnostics: Diagnostic[]): void {
    if (this.reported === revision) {
      return;
    }
    this.reported = revision;
    for (const { code, severity, message, help, node } of diagnostics) {
      const text = `${code}: ${message}. ${help}`;
      const own = node === null ? null : this.RED.nodes.getNode(node.id);
      if (severity === "error") {
        own === null ? this.RED.log.error(`[redflow-runtime] ${text}`) : own.error(text);
      } else {
        own === null ? this.RED.log.warn(`[redflow-runtime] ${text}`) : own.warn(text);
      }
    }
  }

  private notice(id: string, { code, message }: { code: string; message: string }): void {
    // The command is for those who have no editor.
    const first = code === "TOOL_OUTCOME_UNKNOWN" ? "Answer it in the sidebar Redflow (Ctrl-G R). " : "";
    const text = `${first}${code}: ${message}`;
    if (this.agents.get(id) !== undefined) {
      errors.note(id, { code, message });
    }
    const node = this.RED.nodes.getNode(id);
    if (node === null) {
      this.RED.log.warn(`[redflow-runtime] ${id}: ${text}`);
    } else {
      node.warn(text);
    }
  }
}

function isSame(before: RuntimeSettings, after: RuntimeSettings, keys: (keyof RuntimeSettings)[]): boolean {
  return keys.every((key) => before[key] === after[key]);
}

function sentenceOf(state: LinkState, url: string): string {
  switch (state.is) {
    case "connecting":
      return `connecting to the sidecar at ${url}`;
    case "connected":
      return `connected to redflow ${state.version} at ${url}`;
    case "away":
      return `the sidecar at ${url} is away: ${state.reason}`;
    case "refused":
      return `the sidecar at ${url}: ${state.message} (${state.code})`;
  }
}

/** A URL may have a password in it, or a key in its query. */
function withoutSecrets(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    if (/^https?:$/.test(protocol)) {
      // A password with a slash in it is read as a path.
      return `${protocol}//${`${host}${pathname}`.replace(/^.*@/, "")}`.replace(/\/+$/, "");
    }
  } catch {
    // No address; but people should see what they wrote.
  }
  return /[@?#]/.test(url) ? "an address that cannot be read" : url;
}
