// One `redflow-runtime`: its connection to the sidecar, its agents, runs and tools. Outlives the nodes of a deploy, so that
// a deploy drops no socket and no run. Never runs an agent itself.

import { randomBytes, randomUUID } from "node:crypto";
import type { BridgeMessage, Diagnostic, ServiceProblem } from "@redflow/bindings";
import type { RuntimeView } from "./admin-api";
import { agentErrors } from "./agent-errors";
import { Agents, withCode } from "./agents";
import { BridgeSession } from "./bridge-session";
import type { FirstMessage, Identity, Welcome } from "./bridge-session";
import { nodeLabel, sentenceWithLabels, withLabels } from "./node-label";
import { notifyEditors } from "./editor-notice";
import { Failure, clip } from "./failure";
import { snapshotFlow } from "./flows";
import type { FlowSnapshot } from "./flows";
import { guard, logOnce } from "./guard";
import { ManagedSidecar } from "./managed-sidecar";
import { UNLIMITED } from "./outbox";
import type { Red } from "./red";
import { refusedEdges, setRefusedEdges } from "./refused-edges";
import { Runs } from "./runs";
import type { RunLimits } from "./runs";
import { type Sentence, sentence } from "./sentence";
import { SidecarApi } from "./sidecar-api";
import type { CurrentSidecar } from "./sidecar-api";
import { readLogLine } from "./sidecar-log";
import { SidecarConnection, offlineWith, refusedWith } from "./sidecar-connection";
import type { ConnectionState } from "./sidecar-connection";
import { MAX_REMOTE_TEXT } from "./target";
import { Tools } from "./tools";

/** The settings of a `redflow-runtime` node. */
export interface RuntimeSettings extends RunLimits {
  mode: "remote" | "managed";
  url: string;
  token: string;
  binary: string;
  dataDir: string;
  /** `HOST:PORT`, separated by commas. */
  allowPrivate: string;
  events: boolean;
}

/** Bytes of a frame around its flow. */
const FRAME_OVERHEAD = 1_024;

/** The settings that need a new connection when they change, and those that select another sidecar. */
const CONNECTION_SETTINGS: Record<RuntimeSettings["mode"], (keyof RuntimeSettings)[]> = {
  remote: ["mode", "url", "token"],
  managed: ["mode", "binary", "dataDir", "allowPrivate"],
};
const SIDECAR_SETTINGS: typeof CONNECTION_SETTINGS = { remote: ["mode", "url"], managed: ["mode", "dataDir"] };

/** Keeps an attacker from guessing credentials by the revision of a flow. */
const secret = randomBytes(32).toString("hex");

/** One sidecar with its agents. */
export class Runtime {
  readonly agents: Agents;
  readonly runs: Runs;
  readonly tools: Tools;
  readonly api: SidecarApi;
  private readonly session: BridgeSession;
  private readonly connection: SidecarConnection;
  private identity: Identity;
  private managed: ManagedSidecar | undefined;
  /** Resolves when the previous sidecar has exited: two must not use the same data directory. */
  private previousExit: Promise<void> = Promise.resolve();
  private flow: FlowSnapshot | undefined;
  /** The revision whose diagnostics were logged. */
  private loggedRevision: string | undefined;
  private loggedState = "";
  /** The reason if the sidecar cannot receive the flow. */
  private flowProblem: Extract<ConnectionState, { is: "refused" }> | undefined;
  /** The address of the sidecar, for users. */
  private address = "";

  constructor(
    private readonly RED: Red,
    /** The id of its node. */
    private readonly id: string,
    identity: Omit<Identity, "boot">,
    private settings: RuntimeSettings,
  ) {
    // A new boot, because this runtime does not know the tool calls of an earlier runtime of the same node.
    this.identity = { ...identity, boot: randomUUID() };
    this.agents = new Agents(RED, () => notifyEditors(RED));
    const session = new BridgeSession(this.identity, {
      onWelcome: (welcome, kind) => this.onWelcome(welcome, kind),
      onMessage: (message, waitedMs) => this.onMessage(message, waitedMs),
      onClosing: (closing) => this.connection.onClosing(closing),
      onAck: () => this.runs.updateWaiting(),
      firstMessage: () => this.firstMessage(),
    });
    this.session = session;
    this.connection = new SidecarConnection(session, (state) => this.onConnectionChange(state));
    this.runs = new Runs(RED, session, this.agents, () => {
      const { state } = this;
      const problem = state.is === "refused" ? state.message : undefined;
      return { ...this.settings, url: withoutSecrets(this.address), problem };
    });
    this.tools = new Tools(RED, session);
    this.api = new SidecarApi(() => this.sidecar);
    // Messages of the sidecar wait until their nodes exist.
    this.pause();
    this.sendFlow();
    this.connect();
  }

  /** Applies new settings of the node. Reconnects only if they need it. */
  configure(settings: RuntimeSettings, identity: Omit<Identity, "boot">): void {
    const before = this.settings;
    this.settings = settings;
    if (identity.instance !== this.identity.instance) {
      this.identity = { ...this.identity, ...identity };
      this.session.changeIdentity(this.identity);
    } else if (isSame(before, settings, CONNECTION_SETTINGS[settings.mode])) {
      if (before.events !== settings.events) {
        this.session.sendNow({ type: "watch", events: settings.events });
      }
      return;
    }
    if (!isSame(before, settings, SIDECAR_SETTINGS[before.mode])) {
      this.runs.failSent(new Failure("RUNTIME_UNREACHABLE", "another sidecar was chosen during the run"));
      this.session.discardSent();
    }
    this.disconnect();
    this.connect();
  }

  /** Disconnects, because the node was removed or the flows were stopped. Stopped flows leave their runs to a later start. */
  dispose(cause: "removed" | "stopped"): void {
    const reason =
      cause === "removed" ? "the redflow-runtime of this run was removed" : "the flows were stopped before a run began";
    this.pause();
    this.refuse([]);
    this.runs.close(new Failure("RUNTIME_UNREACHABLE", reason), cause === "removed" ? "all" : "unsent");
    this.disconnect();
  }

  /** A deploy replaces nodes: messages of the sidecar wait. */
  pause(): void {
    this.session.pause();
    this.runs.pause();
  }

  /** The new nodes exist: handles the messages that arrived meanwhile. */
  resume(): void {
    for (const start of this.runs.resume()) {
      const rest = `"start":"${start}","reason":"the agent has another runtime now"}`;
      this.session.post("cancel", rest, UNLIMITED);
    }
    this.agents.forgetStatuses("removed");
    this.session.resume();
  }

  /** Sends the flow that starts now, unless the sidecar has this revision. */
  sendFlow(): void {
    const flow = snapshotFlow(this.RED, this.id, secret);
    if (flow.revision === this.flow?.revision) {
      return;
    }
    this.flow = flow;
    // The user may have fixed the refused wires: until the checker answers, the sidecar alone refuses messages.
    this.refuse([]);
    this.agents.markUnchecked();
    flow.warnings.forEach((warning) => this.RED.log.warn(`[redflow-runtime] ${warning}`));
    const hadProblem = this.flowProblem !== undefined;
    if (this.fits(flow)) {
      // Also while the sidecar is offline: it may return with the previous flow in its memory.
      this.session.postLatest("flows", flow.rest);
      if (hadProblem) {
        this.disconnect();
        this.connect();
      }
    }
  }

  /** Whether its agents use a node. Its sidecar has the credentials of these nodes only. */
  agentsUse(node: string): boolean {
    return this.flow?.own.services.has(node) === true;
  }

  /** The instance id of this Node-RED, which its runs carry. */
  get instance(): string {
    return this.identity.instance;
  }

  get state(): ConnectionState {
    return this.connection.state;
  }

  /** The address of the sidecar and the state of the connection. */
  get sidecar(): CurrentSidecar {
    return this.connection;
  }

  /** The runtime as the editor shows it. */
  get view(): Omit<RuntimeView, "id" | "name"> {
    const { mode } = this.settings;
    const address = clip(withoutSecrets(this.address), MAX_REMOTE_TEXT);
    return { mode, address, state: this.state, waiting: this.runs.waiting };
  }

  /** The last log lines of a managed sidecar. */
  log(): string[] {
    return this.managed?.log() ?? [];
  }

  private connect(): void {
    const { mode, url, token, binary, dataDir, allowPrivate } = this.settings;
    this.address = mode === "remote" ? url : "127.0.0.1";
    if (mode === "remote") {
      this.connection.start({ url, token });
      return;
    }
    this.managed = new ManagedSidecar(
      { binary, dataDir, allowPrivate },
      {
        onListening: (target) => {
          this.address = target.url;
          this.connection.start(target);
        },
        onExit: (reason) => this.connection.stopWith(offlineWith(reason)),
        onUnavailable: (problem) => this.connection.stopWith(refusedWith("SIDECAR_UNREACHABLE", problem)),
        onLogLine: (line) => {
          const { level, text } = readLogLine(line, (id) => nodeLabel(this.RED, id));
          guard(this.RED, "the sidecar's log", () => this.RED.log[level](`[redflow-runtime] ${text}`));
        },
      },
    );
    this.managed.start(this.previousExit).catch((error: unknown) => {
      logOnce(this.RED, "the sidecar could not be started", error);
    });
  }

  private disconnect(): void {
    this.connection.stop();
    if (this.managed !== undefined) {
      const stopped = this.managed.stop().catch((error: unknown) => {
        logOnce(this.RED, "the sidecar could not be stopped", error);
      });
      this.previousExit = Promise.all([this.previousExit, stopped]).then(() => undefined);
      this.managed = undefined;
    }
  }

  private firstMessage(): FirstMessage | undefined {
    return this.flow !== undefined && this.fits(this.flow) ? { type: "flows", rest: this.flow.rest } : undefined;
  }

  /** Whether the sidecar can receive the flow. Stops the connection with the reason if not. */
  private fits(flow: FlowSnapshot): boolean {
    const bytes = Buffer.byteLength(flow.rest) + FRAME_OVERHEAD;
    const limit = this.session.limits.maxFrameBytes;
    if (flow.tooDeep !== undefined) {
      this.flowProblem = refusedWith("FLOW_TOO_DEEP", flow.tooDeep);
    } else if (bytes > limit) {
      const values = { bytes: { text: String(bytes) }, limit: { text: String(limit) } };
      this.flowProblem = refusedWith("FLOW_TOO_LARGE", sentence("flow_over_limit", values));
    } else {
      this.flowProblem = undefined;
    }
    if (this.flowProblem !== undefined) {
      this.connection.stopWith(this.flowProblem);
    }
    return this.flowProblem === undefined;
  }

  private onWelcome(welcome: Welcome, kind: "new" | "resumed"): void {
    if (this.flowProblem !== undefined) {
      this.connection.stopWith(this.flowProblem);
      return;
    }
    if (kind === "new") {
      this.agents.forgetStatuses("all");
    }
    if (this.settings.events) {
      this.session.sendNow({ type: "watch", events: true });
    }
    this.connection.onWelcome(welcome.version);
  }

  private onConnectionChange(state: ConnectionState): void {
    this.agents.setConnection(state);
    this.runs.updateWaiting();
    const text = describeState(state, withoutSecrets(this.address));
    // The same sentence after every attempt would fill the log.
    if (text !== this.loggedState) {
      this.loggedState = text;
      const level = state.is === "refused" ? "error" : state.is === "offline" ? "warn" : "info";
      guard(this.RED, "the state of the sidecar could not be logged", () => {
        this.RED.log[level](`[redflow-runtime] ${text}`);
      });
    }
  }

  private onMessage(message: BridgeMessage, waitedMs: number): void {
    try {
      this.handle(message, waitedMs);
    } catch (error) {
      // Without this the session would not ack the message, and the sidecar would send it again and again.
      logOnce(this.RED, `a message of the sidecar (${message.type}) could not be handled`, error);
    }
  }

  private handle(message: BridgeMessage, waitedMs: number): void {
    switch (message.type) {
      case "send":
        return this.runs.output(message);
      case "stream":
        return this.runs.stream(message);
      case "tool_call":
        return this.tools.call(message, waitedMs);
      case "start_failed":
        return this.runs.startFailed(message);
      case "start_done":
        return this.runs.startDone(message);
      case "status": {
        const { node, fill, shape, text, phrase } = message;
        return this.agents.setRunStatus(node, { fill, shape, text, phrase });
      }
      case "health": {
        const { node, problem } = message;
        return this.agents.setFailing(node, problem && this.labelled(problem));
      }
      case "deployed":
        return this.onDeployed(message);
      case "flows_refused": {
        const { code, message: why } = message.error;
        this.RED.log.error(`[redflow-runtime] the sidecar cannot use this flow: ${why} (${code})`);
        const diagnostics = message.error.report?.diagnostics ?? [];
        const first = diagnostics.find(({ severity }) => severity === "error");
        const problem = first === undefined ? { text: why } : { text: first.message, phrase: first.messagePhrase };
        this.agents.setProblems(new Map(), withCode(code, sentenceWithLabels(this.RED, problem)));
        return this.logDiagnostics(message.revision, diagnostics);
      }
      case "notice":
        return this.notice(message.node, message);
      case "event":
        return this.RED.events.emit("redflow:event", message.event);
      default:
        // A newer sidecar may send messages that this module does not know.
        return;
    }
  }

  private onDeployed({ revision, agents, report }: Extract<BridgeMessage, { type: "deployed" }>): void {
    if (revision !== this.flow?.revision) {
      return;
    }
    const problems = new Map<string, Sentence>();
    for (const { node, ready, problems: own } of agents) {
      if (!ready) {
        const first = own.find((problem) => problem.severity === "error") ?? own[0];
        const { message: text, messagePhrase: phrase } = first ?? {};
        const problem = text === undefined ? sentence("status_not_ready") : { text, phrase };
        problems.set(node.id, sentenceWithLabels(this.RED, problem));
      }
    }
    this.agents.setProblems(problems);
    this.refuse(report.diagnostics);
    this.logDiagnostics(revision, report.diagnostics);
  }

  /** Drops messages on the wires that the checker refuses. */
  private refuse(diagnostics: Diagnostic[]): void {
    const edges = refusedEdges(diagnostics, (id) => this.agents.get(id) !== undefined);
    const labelled = [...edges].map(([edge, problem]) => [edge, sentenceWithLabels(this.RED, problem)] as const);
    setRefusedEdges(this.RED, this, new Map(labelled));
  }

  /** A problem with labels in place of ids. */
  private labelled({ code, message: text, phrase: own }: ServiceProblem): ServiceProblem {
    const { text: message, phrase } = sentenceWithLabels(this.RED, { text, phrase: own });
    return { code, message, ...(phrase === undefined ? {} : { phrase }) };
  }

  /** Logs the checker's diagnostics, once for each flow. */
  private logDiagnostics(revision: string, diagnostics: Diagnostic[]): void {
    if (this.loggedRevision === revision) {
      return;
    }
    this.loggedRevision = revision;
    // The sidecar has no credentials of what other runtimes use, and theirs report the problems of it.
    const isForeign = ({ node }: Diagnostic): boolean => node !== null && this.flow?.own.foreign.has(node.id) === true;
    for (const { code, severity, message, help, node } of diagnostics.filter((one) => !isForeign(one))) {
      const text = withLabels(this.RED, `${code}: ${message}. ${help}`);
      const own = node === null ? null : this.RED.nodes.getNode(node.id);
      const level = severity === "error" ? "error" : "warn";
      if (own === null) {
        this.RED.log[level](`[redflow-runtime] ${text}`);
      } else {
        own[level](text);
      }
    }
  }

  private notice(id: string, { code, message }: { code: string; message: string }): void {
    // The message names a command for users without an editor, so the sidebar comes first.
    const hint = code === "TOOL_OUTCOME_UNKNOWN" ? "Answer it in the sidebar Redflow (Ctrl-G R). " : "";
    const text = `${hint}${code}: ${message}`;
    if (this.agents.get(id) !== undefined) {
      agentErrors.add(id, { code, message });
    }
    const node = this.RED.nodes.getNode(id);
    if (node === null) {
      this.RED.log.warn(`[redflow-runtime] ${text}`);
    } else {
      node.warn(text);
    }
  }
}

function isSame(before: RuntimeSettings, after: RuntimeSettings, keys: (keyof RuntimeSettings)[]): boolean {
  return keys.every((key) => before[key] === after[key]);
}

function describeState(state: ConnectionState, url: string): string {
  switch (state.is) {
    case "connecting":
      return `connecting to the sidecar at ${url}`;
    case "connected":
      return `connected to redflow ${state.version} at ${url}`;
    case "offline":
      return `the sidecar at ${url} is offline: ${state.reason}`;
    case "refused": {
      // A program that is missing has no address.
      const place = state.code === "SIDECAR_UNREACHABLE" ? "" : `the sidecar at ${url}: `;
      return `${place}${state.message} (${state.code})`;
    }
  }
}

/** Removes the password and the query of a URL, which may contain a key. */
function withoutSecrets(url: string): string {
  try {
    const { protocol, host, pathname } = new URL(url);
    if (/^https?:$/.test(protocol)) {
      // A password that contains a slash is parsed as a part of the path.
      return `${protocol}//${`${host}${pathname}`.replace(/^.*@/, "")}`.replace(/\/+$/, "");
    }
  } catch {
    // Not a URL, but users should see what they entered.
  }
  return /[@?#]/.test(url) ? "an address that cannot be read" : url;
}
