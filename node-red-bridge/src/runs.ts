// The messages that came to agents, held until their runs are over, and what leaves the agents. Owns who gets `done`,
// and that nothing leaves twice; never decides what a run does.

import { randomUUID } from "node:crypto";
import type { BridgeMessage } from "@redflow/bindings";
import type { Agents } from "./agents";
import type { Conversation } from "./conversation";
import { MADE_BY_RUN, addDecoded, decodeMessage } from "./decode";
import { encodeMessage } from "./encode";
import { errors } from "./errors";
import { Failure, wordsOf } from "./failure";
import { guarded } from "./guard";
import type { Entry } from "./outbox";
import { Recent } from "./recent";
import type { Done, Msg, Red, RedNode, Send } from "./red";

/** Bytes of messages that may wait for the sidecar. */
const QUEUE_BYTES = 64 * 1024 * 1024;

/** How many outputs are remembered, so that none leaves twice. */
const REMEMBERED_OUTPUTS = 10_000;

/** The last output an agent has. */
const LAST_PORT = 4;

/** Bounds a person may set. */
export interface RunBounds {
  maxQueued: number;
  queueSeconds: number;
  maxHeldRuns: number;
}

type SendMessage = Extract<BridgeMessage, { type: "send" }>;

/** How a message goes on: what is done with it by the node that has it now. */
type Ending = (message: Msg, send: Send, done: Done) => void;

interface Held {
  readonly agent: string;
  /** The node object that took it; a deploy may put another one in its place. */
  readonly node: RedNode;
  readonly message: Msg;
  readonly send: Send;
  readonly done: Done;
  readonly entry: Entry;
  expiry: NodeJS.Timeout | undefined;
}

/** An ending that waits until the nodes of a deploy are there. */
interface Late {
  readonly agent: string;
  readonly held: Held | undefined;
  readonly message: Msg;
  readonly act: Ending;
}

/** Messages on their way through an agent a second time: only to leave it by the node that is there now. */
const endings = new WeakMap<Msg, Ending>();

/** Failures whose messages have left their agents all the same: who is wired there goes on with them. */
const withResults = new WeakSet<object>();

/** Whether a message that failed with this goes on, with the failure as its result. */
export function goesOn(error: unknown): boolean {
  return typeof error === "object" && error !== null && withResults.has(error);
}

/** If a message came only to leave: lets it. Gives whether that was so. */
export function endedHere(message: Msg, send: Send, done: Done): boolean {
  const ending = endings.get(message);
  endings.delete(message);
  ending?.(message, send, done);
  return ending !== undefined;
}

/** The runs of one runtime. */
export class Runs {
  private readonly held = new Map<string, Held>();
  private readonly outputs = new Recent(REMEMBERED_OUTPUTS);
  private paused = false;
  private late: Late[] = [];

  constructor(
    private readonly RED: Red,
    private readonly conversation: Conversation,
    private readonly agents: Agents,
    private readonly settings: () => RunBounds & { url: string },
  ) {}

  /** A message came to an agent. */
  start(node: RedNode, message: Msg, send: Send, done: Done): void {
    const { maxQueued, queueSeconds, maxHeldRuns } = this.settings();
    const { maxMessageBytes, maxValueDepth } = this.conversation.limits;
    let text: string;
    try {
      text = encodeMessage(message, { maxBytes: maxMessageBytes, maxDepth: maxValueDepth });
    } catch (error) {
      const unsound = new Failure("MESSAGE_INVALID", "the message cannot be written as JSON");
      this.refuse(node.id, done, error instanceof Failure ? error : unsound);
      return;
    }
    if (this.held.size + this.late.length >= maxHeldRuns) {
      const full = `${maxHeldRuns} runs are going on already; send the message again later`;
      this.refuse(node.id, done, new Failure("QUEUE_FULL", full));
      return;
    }
    const start = randomUUID();
    const body = `"start":"${start}","node":${JSON.stringify(node.id.toWellFormed())},"message":${text}}`;
    const entry = this.conversation.post("start", body, { count: maxQueued, bytes: QUEUE_BYTES });
    if (entry === undefined) {
      const full = `${maxQueued} messages wait for the sidecar already; send the message again later`;
      this.refuse(node.id, done, new Failure("QUEUE_FULL", full));
      return;
    }
    const held: Held = { agent: node.id, node, message, send, done, entry, expiry: undefined };
    if (entry.seq === 0) {
      const expire = (): void => this.expire(start, queueSeconds);
      held.expiry = setTimeout(() => guarded(this.RED, "a message could not be given up", expire), queueSeconds * 1000);
      held.expiry.unref();
    }
    this.held.set(start, held);
    this.count();
  }

  /** The sidecar has taken starts, or the socket has changed. */
  count(): void {
    this.agents.setWaiting(this.waiting);
  }

  /** Messages that wait for a sidecar that is away. */
  get waiting(): number {
    return this.conversation.connected ? 0 : this.conversation.untaken("start");
  }

  /** Nothing was begun by a start. */
  startFailed({ start, code, message }: Extract<BridgeMessage, { type: "start_failed" }>): void {
    this.fail(start, new Failure(code, message));
  }

  /** A start is over, and nothing leaves the agent. */
  startDone({ start }: Extract<BridgeMessage, { type: "start_done" }>): void {
    const held = this.held.get(start);
    this.release(start);
    if (held !== undefined) {
      this.end(held.agent, held, held.message, (_message, _send, done) => this.finish(held.agent, done));
    }
  }

  /** A message leaves an agent. */
  leave(sent: SendMessage): void {
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
        const failure = leaving(own, held !== undefined, sent, send);
        // Without an effect no run has begun that the sidecar could tell of.
        if (failure !== undefined && sent.effect === undefined) {
          this.refuse(agent, done, failure);
        } else {
          this.finish(agent, done, failure);
        }
      });
      return;
    }
    const node = this.agents.get(sent.node);
    if (node !== undefined && (node.wires[sent.port]?.length ?? 0) > 0) {
      guarded(this.RED, `what a run of ${node.id} says could not leave it`, () => {
        const message = held === undefined ? decodeMessage(sent.message) : this.copy(held.message);
        node.send(byPort(sent.port, held === undefined ? message : withResult(message, sent.message)));
      });
    }
  }

  /** Nodes are being exchanged: what ends now ends by the nodes that will be there. */
  pause(): void {
    this.paused = true;
  }

  /**
   * The nodes of the flow are there: ends what had to wait for them, and the messages of agents that are not ours any
   * more. Gives the starts of agents that run elsewhere now; of those that are gone the sidecar knows by itself.
   */
  resume(): string[] {
    this.paused = false;
    const late = this.late;
    this.late = [];
    for (const { agent, held, message, act } of late) {
      this.end(agent, held, message, act);
    }
    const elsewhere: string[] = [];
    for (const [start, held] of [...this.held]) {
      if (this.agents.get(held.agent) === undefined) {
        if (this.elsewhere(held) !== undefined) {
          elsewhere.push(start);
        }
        this.fail(start, new Failure("CANCELLED", "the agent has another runtime now"));
      }
    }
    return elsewhere;
  }

  /** Ends every run that a sidecar may have begun: it is not ours any more. What waits still may go to the next one. */
  failBegun(failure: Failure): void {
    this.failWhere(failure, ({ entry }) => entry.seq !== 0);
  }

  /** The runtime is left: ends everything, or only what no sidecar can have begun, and forgets the rest. */
  leaveAll(failure: Failure, begunToo: boolean): void {
    this.failWhere(failure, ({ entry }) => begunToo || entry.seq === 0);
    [...this.held.keys()].forEach((start) => this.release(start));
  }

  private failWhere(failure: Failure, which: (held: Held) => boolean): void {
    for (const [start, held] of [...this.held]) {
      if (which(held)) {
        this.fail(start, failure);
      }
    }
  }

  private expire(start: string, seconds: number): void {
    const entry = this.held.get(start)?.entry;
    // What a socket had may have begun: it waits until the sidecar is back.
    if (entry !== undefined && this.conversation.takeBack(entry)) {
      const { url } = this.settings();
      this.fail(start, new Failure("RUNTIME_UNREACHABLE", `the sidecar at ${url} has been away for ${seconds} s`));
    }
  }

  private fail(start: string, failure: Failure): void {
    const held = this.held.get(start);
    this.release(start);
    if (held !== undefined) {
      this.end(held.agent, held, held.message, (_message, _send, done) => this.refuse(held.agent, done, failure));
      this.count();
    }
  }

  private release(start: string | undefined): void {
    if (start !== undefined) {
      clearTimeout(this.held.get(start)?.expiry);
      this.held.delete(start);
    }
  }

  /** Lets a message go on by the node that is there now: so Catch and Complete nodes of a new deploy get it too. */
  private end(agent: string, held: Held | undefined, message: Msg, act: Ending): void {
    if (this.paused) {
      this.late.push({ agent, held, message, act });
      return;
    }
    const node = this.agents.get(agent) ?? (held === undefined ? undefined : this.elsewhere(held));
    if (node === undefined) {
      return;
    }
    if (held !== undefined && held.node === node) {
      act(message, held.send, held.done);
      return;
    }
    endings.set(message, act);
    guarded(this.RED, `a message could not end at ${agent}`, () => node.receive(message));
  }

  /** The agent that took a message, if another runtime has it now, or none. */
  private elsewhere({ agent, node }: Held): RedNode | undefined {
    const now = this.RED.nodes.getNode(agent);
    return now !== null && now.type === node.type ? now : undefined;
  }

  /** A message has begun no run, or none that the sidecar tells of: what is wrong is kept here. */
  private refuse(agent: string, done: Done, failure: Failure): void {
    this.finish(agent, done, failure);
    errors.note(agent, failure);
  }

  /** Says that a message is done with. Node-RED throws then for messages that a stranger can make. */
  private finish(agent: string, done: Done, failure?: Failure): void {
    if (failure === undefined) {
      guarded(this.RED, `${agent} could not be done with a message`, () => done());
    } else {
      const what = `${agent} could not say that a message failed with "${failure.message}" (${failure.code})`;
      guarded(this.RED, what, () => done(failure));
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

/** Properties that are taken off a message, or put on it, for its result. */
const CHANGED = [...MADE_BY_RUN, "_error"];

/** The last message of a run leaves. Gives what its input fails with, if so. */
function leaving(message: Msg, held: boolean, { port, message: result }: SendMessage, send: Send): Failure | undefined {
  try {
    const { error } = result;
    // What cannot be changed stays as it is, and a copy leaves.
    const own = held && !isChangeable(message) ? { ...message } : message;
    const before = held && Object.hasOwn(own, "error") ? { error: own["error"] } : undefined;
    if (held) {
      withResult(own, result);
    }
    if (error === undefined || error === null) {
      send(byPort(port, own));
      return undefined;
    }
    send(byPort(port, { ...own, error }));
    // Node-RED puts an `error` of its own on what Catch nodes get, and moves the one that is there to `_error`: that must
    // be the one that came in, by which it also notices a message that goes round in circles.
    delete own["error"];
    Object.assign(own, before);
    const failure = failureOf(error);
    withResults.add(failure);
    return failure;
  } catch (problem) {
    return new Failure("INTERNAL", `the result could not leave the agent: ${wordsOf(problem, "unknown")}`);
  }
}

/** Whether a result can be put on a message: it may be frozen, or have properties that stay. */
function isChangeable(message: Msg): boolean {
  return (
    Object.isExtensible(message) &&
    CHANGED.every((key) => Object.getOwnPropertyDescriptor(message, key)?.configurable !== false)
  );
}

/** Puts what a run made on the message that began it. What came with that message stays as it is. */
export function withResult(message: Msg, result: Msg): Msg {
  if (Object.hasOwn(message, "error")) {
    message["_error"] = message["error"];
  }
  for (const key of MADE_BY_RUN) {
    delete message[key];
  }
  return addDecoded(message, result);
}

function failureOf(error: unknown): Failure {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return new Failure(typeof code === "string" ? code : "INTERNAL", typeof message === "string" ? message : String(error));
}

function byPort(port: number, message: Msg): (Msg | null)[] {
  const outputs: (Msg | null)[] = new Array<null>(port).fill(null);
  outputs.push(message);
  return outputs;
}
