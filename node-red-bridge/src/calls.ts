// The tool calls the sidecar has asked for: open, or answered with what came of them. So a call that is asked for
// again is answered and not made again. Bounded in number, in time and in bytes of answers; makes no calls itself.

/** A call. */
export interface Call {
  readonly id: string;
  readonly run: string;
  readonly agent: string;
  readonly node: string;
  readonly tool: string;
  readonly msgid: string;
  readonly at: number;
  /** What came of it, as JSON. */
  reply: string | undefined;
  answered: boolean;
}

/** How much is remembered. */
export const CALLS = { count: 10_000, ms: 60 * 60 * 1000, replyBytes: 64 * 1024 * 1024 };

/** Calls by their id and by the id of the message that carries them. */
export class Calls {
  private readonly byId = new Map<string, Call>();
  private readonly byMsgid = new Map<string, Call>();
  /** All of them, the oldest at `first`: to look for the first of a map that much was deleted from is slow. */
  private order: Call[] = [];
  private first = 0;
  private replyBytes = 0;

  constructor(
    private readonly bounds = CALLS,
    private readonly now: () => number = Date.now,
  ) {}

  /** A call that is about to be made. */
  add(call: Omit<Call, "at" | "reply" | "answered">): Call {
    this.forgetOld();
    const added: Call = { ...call, at: this.now(), reply: undefined, answered: false };
    this.byId.set(call.id, added);
    this.byMsgid.set(call.msgid, added);
    this.order.push(added);
    return added;
  }

  /** A call by its id. */
  get(id: string): Call | undefined {
    return this.byId.get(id);
  }

  /** The call a message belongs to: what it says itself comes before its id. */
  of(message: Record<string, unknown>): Call | undefined {
    const named = namedCall(message);
    const found = named === undefined ? undefined : this.byId.get(named);
    const msgid = message["_msgid"];
    return found ?? (typeof msgid === "string" ? this.byMsgid.get(msgid) : undefined);
  }

  /** Keeps what came of a call; `false` if that is known already. */
  answer(call: Call, reply: string): boolean {
    if (call.answered) {
      return false;
    }
    call.answered = true;
    call.reply = reply;
    this.replyBytes += reply.length;
    for (let at = this.first; this.replyBytes > this.bounds.replyBytes && at < this.order.length; at += 1) {
      const old = this.order[at];
      if (old !== undefined && old !== call) {
        this.dropReply(old);
      }
    }
    return true;
  }

  private forgetOld(): void {
    const now = this.now();
    if (this.first >= this.bounds.count) {
      this.order = this.order.slice(this.first);
      this.first = 0;
    }
    for (let call = this.order[this.first]; call !== undefined; call = this.order[this.first]) {
      if (call.at + this.bounds.ms > now && this.byId.size < this.bounds.count) {
        return;
      }
      this.first += 1;
      this.forget(call);
    }
  }

  private forget(call: Call): void {
    this.dropReply(call);
    this.byId.delete(call.id);
    this.byMsgid.delete(call.msgid);
  }

  private dropReply(call: Call): void {
    this.replyBytes -= call.reply?.length ?? 0;
    call.reply = undefined;
  }
}

/** The call a message names in `_agentCore`. */
export function namedCall(message: Record<string, unknown>): string | undefined {
  const core = agentCore(message);
  const id = core?.["callId"];
  return typeof id === "string" ? id : undefined;
}

/** Whether a message says that it is on its way through a tool. */
export function isToolRequest(message: Record<string, unknown>): boolean {
  return agentCore(message)?.["type"] === "tool_request";
}

function agentCore(message: Record<string, unknown>): Record<string, unknown> | undefined {
  const core = message["_agentCore"];
  return typeof core === "object" && core !== null ? (core as Record<string, unknown>) : undefined;
}
