// The tool calls that the sidecar has requested, open or answered. A call that the sidecar requests again gets the same
// answer and does not run again. Bounded in number, in time and in bytes of answers. Makes no calls.

/** A tool call. */
export interface Call {
  readonly id: string;
  readonly run: string;
  readonly agent: string;
  readonly node: string;
  readonly tool: string;
  readonly msgid: string;
  /** The property of the returned message that is the result, such as `payload.id`. */
  readonly result: string;
  readonly at: number;
  /** Its answer as JSON. */
  reply: string | undefined;
  answered: boolean;
}

/** How many calls are kept, for how long, and how many bytes of answers. */
export const CALL_LIMITS = { count: 10_000, ms: 60 * 60 * 1000, replyBytes: 64 * 1024 * 1024 };

/** Calls by their id and by the id of the message that carries them. */
export class Calls {
  private readonly byId = new Map<string, Call>();
  private readonly byMsgid = new Map<string, Call>();
  /** All calls, the oldest at `first`: finding the first entry of a map after many deletions is slow. */
  private order: Call[] = [];
  private first = 0;
  private replyBytes = 0;

  constructor(
    private readonly limits = CALL_LIMITS,
    private readonly now: () => number = Date.now,
  ) {}

  /** Adds a call before it runs. */
  add(call: Omit<Call, "at" | "reply" | "answered">): Call {
    this.forgetOld();
    const added: Call = { ...call, at: this.now(), reply: undefined, answered: false };
    this.byId.set(call.id, added);
    this.byMsgid.set(call.msgid, added);
    this.order.push(added);
    return added;
  }

  get(id: string): Call | undefined {
    return this.byId.get(id);
  }

  /** The call that a message belongs to: `_agentCore` wins over `_msgid`. */
  findByMessage(message: Record<string, unknown>): Call | undefined {
    const named = namedCall(message);
    const found = named === undefined ? undefined : this.byId.get(named);
    const msgid = message["_msgid"];
    return found ?? (typeof msgid === "string" ? this.byMsgid.get(msgid) : undefined);
  }

  /** Stores the answer of a call. False if it has one already. */
  answer(call: Call, reply: string): boolean {
    if (call.answered) {
      return false;
    }
    call.answered = true;
    call.reply = reply;
    this.replyBytes += reply.length;
    for (let at = this.first; this.replyBytes > this.limits.replyBytes && at < this.order.length; at += 1) {
      const old = this.order[at];
      if (old !== undefined && old !== call) {
        this.dropReply(old);
      }
    }
    return true;
  }

  private forgetOld(): void {
    const now = this.now();
    if (this.first >= this.limits.count) {
      this.order = this.order.slice(this.first);
      this.first = 0;
    }
    for (let call = this.order[this.first]; call !== undefined; call = this.order[this.first]) {
      if (call.at + this.limits.ms > now && this.byId.size < this.limits.count) {
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

/** The id of the call in a message's `_agentCore`. */
export function namedCall(message: Record<string, unknown>): string | undefined {
  const core = agentCore(message);
  const id = core?.["callId"];
  return typeof id === "string" ? id : undefined;
}

/** Whether a message belongs to a tool call by its `_agentCore`. */
export function isToolRequest(message: Record<string, unknown>): boolean {
  return agentCore(message)?.["type"] === "tool_request";
}

function agentCore(message: Record<string, unknown>): Record<string, unknown> | undefined {
  const core = message["_agentCore"];
  return typeof core === "object" && core !== null ? (core as Record<string, unknown>) : undefined;
}
