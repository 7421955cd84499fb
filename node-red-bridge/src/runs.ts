// Holds the messages of agents until their runs end, and sends what the agents output. Calls `done` for each message, and
// never sends an output twice. Does not decide what a run does.

import { randomUUID } from "node:crypto";
import type { BridgeMessage } from "@redflow/bindings";
import { agentErrors } from "./agent-errors";
import type { Agents } from "./agents";
import type { BridgeSession } from "./bridge-session";
import { RESULT_PROPERTIES, addDecoded, decodeMessage } from "./decode";
import { encodeMessage } from "./encode";
import { Failure, errorText } from "./failure";
import { guard } from "./guard";
import { clearHttpStatus, setHttpStatus } from "./http-status";
import type { Entry } from "./outbox";
import { RecentSet } from "./recent-set";
import type { DoneCallback, Msg, Red, RedNode, Send } from "./red";

/** Bytes of messages that may wait for the sidecar. */
const QUEUE_BYTES = 64 * 1024 * 1024;

/** How many outputs are remembered, so that none is sent twice. */
const REMEMBERED_OUTPUTS = 10_000;

/** The last output of an agent. */
const LAST_PORT = 4;

/** Limits that a user can set. */
export interface RunLimits {
  maxQueued: number;
  queueSeconds: number;
  maxHeldRuns: number;
}

type SendMessage = Extract<BridgeMessage, { type: "send" }>;
type StreamMessage = Extract<BridgeMessage, { type: "stream" }>;

/** Ends a held message with the `send` and `done` of the node that has it now. */
type Finish = (message: Msg, send: Send, done: DoneCallback) => void;

interface HeldMessage {
  readonly agent: string;
  /** The node object that received it; a deploy may replace it. */
  readonly node: RedNode;
  readonly message: Msg;
  readonly send: Send;
  readonly done: DoneCallback;
  readonly entry: Entry;
  expiry: NodeJS.Timeout | undefined;
}

/** The end of a message that waits until a deploy has created its nodes. */
interface DeferredFinish {
  readonly agent: string;
  readonly held: HeldMessage | undefined;
  readonly message: Msg;
  readonly finish: Finish;
}

/** Messages that pass through their agent a second time, to leave by the node object of the latest deploy. */
const finishing = new WeakMap<Msg, Finish>();

/** Failures whose messages have left the agent as a result too, so the flow continues. */
const sentAsResult = new WeakSet<object>();

/** Whether the message that failed with this error has left its agent with the failure as its result. */
export function hasLeftWithResult(error: unknown): boolean {
  return typeof error === "object" && error !== null && sentAsResult.has(error);
}

/** Ends a message that passes through its agent a second time. False if it is a new message. */
export function finishIfEnding(message: Msg, send: Send, done: DoneCallback): boolean {
  const finish = finishing.get(message);
  finishing.delete(message);
  finish?.(message, send, done);
  return finish !== undefined;
}

/** The runs of one runtime. */
export class Runs {
  private readonly held = new Map<string, HeldMessage>();
  private readonly outputs = new RecentSet(REMEMBERED_OUTPUTS);
  private paused = false;
  private deferred: DeferredFinish[] = [];

  constructor(
    private readonly RED: Red,
    private readonly session: BridgeSession,
    private readonly agents: Agents,
    /** `problem` says why the sidecar accepts no messages, if it is known. */
    private readonly settings: () => RunLimits & { url: string; problem: string | undefined },
  ) {}

  /** Starts a run with a message of an agent. */
  start(node: RedNode, message: Msg, send: Send, done: DoneCallback): void {
    const { maxQueued, queueSeconds, maxHeldRuns } = this.settings();
    const { maxMessageBytes, maxValueDepth } = this.session.limits;
    let text: string;
    try {
      text = encodeMessage(message, { maxBytes: maxMessageBytes, maxDepth: maxValueDepth });
    } catch (error) {
      const invalid = new Failure("MESSAGE_INVALID", "the message cannot be written as JSON");
      this.refuse(node.id, message, done, error instanceof Failure ? error : invalid);
      return;
    }
    if (this.held.size + this.deferred.length >= maxHeldRuns) {
      const full = `${maxHeldRuns} runs are active already; send the message again later`;
      this.refuse(node.id, message, done, new Failure("QUEUE_FULL", full));
      return;
    }
    const start = randomUUID();
    const body = `"start":"${start}","node":${JSON.stringify(node.id.toWellFormed())},"message":${text}}`;
    const entry = this.session.post("start", body, { count: maxQueued, bytes: QUEUE_BYTES });
    if (entry === undefined) {
      const full = `${maxQueued} messages wait for the sidecar already; send the message again later`;
      this.refuse(node.id, message, done, new Failure("QUEUE_FULL", full));
      return;
    }
    const held: HeldMessage = { agent: node.id, node, message, send, done, entry, expiry: undefined };
    if (entry.seq === 0) {
      const expire = (): void => this.expire(start, queueSeconds);
      held.expiry = setTimeout(() => guard(this.RED, "a message could not be expired", expire), queueSeconds * 1000);
      held.expiry.unref();
    }
    this.held.set(start, held);
    this.agents.clearEndedRun(node.id);
    this.updateWaiting();
  }

  /** Shows how many messages wait, after an ack or a change of the connection. */
  updateWaiting(): void {
    this.agents.setWaiting(this.waiting);
  }

  /** How many messages wait for a sidecar that is offline. */
  get waiting(): number {
    return this.session.connected ? 0 : this.session.unacknowledged("start");
  }

  /** A start began no run. */
  startFailed({ start, code, message }: Extract<BridgeMessage, { type: "start_failed" }>): void {
    this.fail(start, new Failure(code, message));
  }

  /** A start has ended without an output. */
  startDone({ start }: Extract<BridgeMessage, { type: "start_done" }>): void {
    const held = this.held.get(start);
    this.release(start);
    if (held !== undefined) {
      this.end(held.agent, held, held.message, (_message, _send, done) => this.complete(held.agent, done));
    }
  }

  /** Sends an output of an agent. */
  output(sent: SendMessage): void {
    if (!this.outputs.add(`${sent.run} ${sent.effect ?? "-"} ${sent.port}`)) {
      return;
    }
    const held = sent.start === undefined ? undefined : this.held.get(sent.start);
    if (sent.port > LAST_PORT) {
      return;
    }
    if (sent.last) {
      this.release(sent.start);
      const message = held?.message ?? decodeMessage(sent.message);
      const agent = held?.agent ?? sent.node;
      this.end(agent, held, message, (own, send, done) => {
        const failure = sendLast(own, held === undefined ? "stored" : "held", sent, send);
        // Without an effect there is no run in the sidecar that shows the failure.
        if (failure !== undefined && sent.effect === undefined) {
          this.refuse(agent, own, done, failure);
        } else {
          this.complete(agent, done, failure);
        }
      });
      return;
    }
    const node = this.agents.get(sent.node);
    if (node !== undefined && (node.wires[sent.port]?.length ?? 0) > 0) {
      guard(this.RED, `an output of a run of ${node.id} could not be sent`, () => {
        const message = held === undefined ? decodeMessage(sent.message) : this.copy(held.message);
        node.send(byPort(sent.port, held === undefined ? message : withResult(message, sent.message)));
      });
    }
  }

  /**
   * Sends a piece of an answer while the model writes it, on a copy of the message that started the run. It is lost if its
   * agent is not wired, or a deploy goes on.
   */
  stream({ node: id, port, start, message }: StreamMessage): void {
    const node = this.paused || port > LAST_PORT ? undefined : this.agents.get(id);
    if (node !== undefined && (node.wires[port]?.length ?? 0) > 0) {
      guard(this.RED, `a piece of an answer of ${id} could not be sent`, () => {
        // Not a deep copy: a long answer has thousands of pieces.
        const own = { ...(start === undefined ? undefined : this.held.get(start)?.message) };
        delete own["stream"];
        node.send(byPort(port, withResult(own, message)));
      });
    }
  }

  /** A deploy replaces nodes: messages that end now leave by the new nodes, after `resume`. */
  pause(): void {
    this.paused = true;
  }

  /**
   * The new nodes exist: ends the deferred messages, and the messages of agents that left this runtime. Returns the
   * starts of agents that another runtime has now; the sidecar itself detects removed agents.
   */
  resume(): string[] {
    this.paused = false;
    const deferred = this.deferred;
    this.deferred = [];
    for (const { agent, held, message, finish } of deferred) {
      this.end(agent, held, message, finish);
    }
    const moved: string[] = [];
    for (const [start, held] of [...this.held]) {
      if (this.agents.get(held.agent) === undefined) {
        if (this.currentNode(held) !== undefined) {
          moved.push(start);
        }
        this.fail(start, new Failure("CANCELLED", "the agent has another runtime now"));
      }
    }
    return moved;
  }

  /** Fails every message that was sent to a sidecar that is no longer used. Unsent messages go to the next one. */
  failSent(failure: Failure): void {
    this.failWhere(failure, ({ entry }) => entry.seq !== 0);
  }

  /** Closes the runtime: fails all messages or only the unsent ones, and drops the rest. */
  close(failure: Failure, which: "all" | "unsent"): void {
    this.failWhere(failure, ({ entry }) => which === "all" || entry.seq === 0);
    [...this.held.keys()].forEach((start) => this.release(start));
  }

  private failWhere(failure: Failure, matches: (held: HeldMessage) => boolean): void {
    for (const [start, held] of [...this.held]) {
      if (matches(held)) {
        this.fail(start, failure);
      }
    }
  }

  private expire(start: string, seconds: number): void {
    const entry = this.held.get(start)?.entry;
    // The sidecar may have started a run for a sent message: that message waits for the sidecar's return.
    if (entry !== undefined && this.session.withdraw(entry)) {
      const { url, problem } = this.settings();
      const reason =
        problem === undefined ? `the sidecar at ${url} has been offline for ${seconds} s` : `no run began within ${seconds} s: ${problem}`;
      this.fail(start, new Failure("RUNTIME_UNREACHABLE", reason));
    }
  }

  private fail(start: string, failure: Failure): void {
    const held = this.held.get(start);
    this.release(start);
    if (held !== undefined) {
      this.end(held.agent, held, held.message, (message, _send, done) => this.refuse(held.agent, message, done, failure));
      this.updateWaiting();
    }
  }

  private release(start: string | undefined): void {
    if (start !== undefined) {
      clearTimeout(this.held.get(start)?.expiry);
      this.held.delete(start);
    }
  }

  /** Ends a message at the current node object, so that Catch and Complete nodes of a new deploy receive it too. */
  private end(agent: string, held: HeldMessage | undefined, message: Msg, finish: Finish): void {
    if (this.paused) {
      this.deferred.push({ agent, held, message, finish });
      return;
    }
    const node = this.agents.get(agent) ?? (held === undefined ? undefined : this.currentNode(held));
    if (node === undefined) {
      return;
    }
    if (held !== undefined && held.node === node) {
      finish(message, held.send, held.done);
      return;
    }
    finishing.set(message, finish);
    guard(this.RED, `a message could not end at ${agent}`, () => node.receive(message));
  }

  /** The node with the id and type of the agent that received a message, also if another runtime has it now. */
  private currentNode({ agent, node }: HeldMessage): RedNode | undefined {
    const current = this.RED.nodes.getNode(agent);
    return current !== null && current.type === node.type ? current : undefined;
  }

  /** Fails a message without a run in the sidecar. Its error is kept here for the editor. */
  private refuse(agent: string, message: Msg, done: DoneCallback, failure: Failure): void {
    setHttpStatus(message, failure.code);
    this.complete(agent, done, failure);
    agentErrors.add(agent, failure);
  }

  /** Calls `done`. Node-RED may throw then, because of the properties of a message from outside. */
  private complete(agent: string, done: DoneCallback, failure?: Failure): void {
    if (failure === undefined) {
      guard(this.RED, `${agent} could not complete a message`, () => done());
    } else {
      const what = `${agent} could not report that a message failed with "${failure.message}" (${failure.code})`;
      guard(this.RED, what, () => done(failure));
    }
  }

  private copy(message: Msg): Msg {
    try {
      return this.RED.util.cloneMessage(message);
    } catch {
      return { ...message };
    }
  }
}

/** The properties of a message that its result removes or sets. */
const CHANGED = [...RESULT_PROPERTIES, "_error"];

/** Sends the last output of a run, on the held message or on one decoded from storage. Returns the failure of the input. */
function sendLast(
  message: Msg,
  source: "held" | "stored",
  { port, message: result }: SendMessage,
  send: Send,
): Failure | undefined {
  try {
    const { error } = result;
    const isHeld = source === "held";
    // A message that cannot be changed stays as it is, and a copy leaves.
    const own = isHeld && !isChangeable(message) ? { ...message } : message;
    const before = isHeld && Object.hasOwn(own, "error") ? { error: own["error"] } : undefined;
    const isFailure = error !== undefined && error !== null;
    if (isHeld) {
      if (!isFailure) {
        clearHttpStatus(own);
      }
      withResult(own, result);
    }
    if (!isFailure) {
      send(byPort(port, own));
      return undefined;
    }
    const failure = failureOf(error);
    setHttpStatus(own, failure.code);
    send(byPort(port, { ...own, error }));
    // Node-RED sets its own `error` for Catch nodes and moves the present one to `_error`. That must be the error that came
    // in: Node-RED detects by it a message that goes round in a loop.
    delete own["error"];
    Object.assign(own, before);
    sentAsResult.add(failure);
    return failure;
  } catch (problem) {
    return new Failure("INTERNAL", `the result could not leave the agent: ${errorText(problem, "unknown")}`);
  }
}

/** Whether a message accepts a result: it may be frozen or have fixed properties. */
function isChangeable(message: Msg): boolean {
  return (
    Object.isExtensible(message) &&
    CHANGED.every((key) => Object.getOwnPropertyDescriptor(message, key)?.configurable !== false)
  );
}

/** Puts the result of a run on the message that started it. Its other properties stay. */
export function withResult(message: Msg, result: Msg): Msg {
  if (Object.hasOwn(message, "error")) {
    message["_error"] = message["error"];
  }
  for (const key of RESULT_PROPERTIES) {
    delete message[key];
  }
  return addDecoded(message, result);
}

function failureOf(error: unknown): Failure {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return new Failure(typeof code === "string" ? code : "INTERNAL", typeof message === "string" ? message : String(error));
}

function byPort(port: number, message: Msg): (Msg | null)[] {
  const outputs: (Msg | null)[] = Array.from({ length: port }, () => null);
  outputs.push(message);
  return outputs;
}
