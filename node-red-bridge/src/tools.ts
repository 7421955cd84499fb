// Tool calls that run in Node-RED: a flow between `flow-tool` and `flow-tool-return`, or a node on an agent's tool
// port. Makes each call once, and sends back what came of it. Whether a reply still counts is decided by the sidecar.

import type { BridgeMessage, ToolReply } from "@redflow/bindings";
import { Calls } from "./calls";
import type { Call } from "./calls";
import { wouldBeCaught } from "./catching";
import type { Conversation } from "./conversation";
import { TooLarge, encodeValue } from "./encode";
import { wordsOf } from "./failure";
import type { CompleteEvent, Msg, Red, RedNode } from "./red";
import { goesOn } from "./runs";

/** How many replies, and bytes of them, may wait for the sidecar. */
const REPLY_ROOM = { count: 20_000, bytes: 128 * 1024 * 1024 };

type ToolCall = Extract<BridgeMessage, { type: "tool_call" }>;

/** The tool calls of one runtime. */
export class Tools {
  private readonly calls = new Calls();

  constructor(
    private readonly RED: Red,
    private readonly conversation: Conversation,
  ) {}

  /** The sidecar asks for a call, or for what came of it; it has waited here while the flows did not run. */
  call(asked: ToolCall, waited = 0): void {
    const before = this.calls.get(asked.call);
    if (before !== undefined) {
      // It is being made, and answered when it is done; or it was, and the answer was lost.
      if (before.answered) {
        const lost: ToolReply = { type: "unknown", reason: "Node-RED made this call, and has forgotten what came of it" };
        this.post(before, before.reply ?? JSON.stringify(lost));
      }
      return;
    }
    const call = this.calls.add({
      id: asked.call,
      run: asked.run,
      agent: asked.agent,
      node: asked.node,
      tool: asked.tool,
      msgid: this.RED.util.generateId(),
    });
    if (asked.known === true) {
      this.reply(call, { type: "unknown", reason: "Node-RED does not know this call: it was restarted meanwhile" });
      return;
    }
    if (waited > asked.timeoutMs) {
      const error = "the call was not made: its time was over when the flows ran again";
      this.reply(call, { type: "failed", error });
      return;
    }
    try {
      this.make(call, asked);
    } catch (problem) {
      const reason = `Node-RED could not pass the call on: ${wordsOf(problem, "unknown")}`;
      this.reply(call, { type: "unknown", reason });
    }
  }

  /** The call a message belongs to, open or answered. */
  of(message: Msg): Call | undefined {
    return this.calls.of(message);
  }

  /** A message came back from a tool; gives why it does not count, if so. */
  returned(call: Call, message: Msg): string | undefined {
    if (call.answered) {
      return `the call of ${call.tool} was answered already`;
    }
    const { error } = message;
    if (error !== undefined && error !== null && error !== false && error !== "") {
      this.reply(call, { type: "failed", error: sentence(error) });
      return undefined;
    }
    const { maxResultBytes, maxValueDepth } = this.conversation.limits;
    try {
      const limits = { maxBytes: maxResultBytes, maxDepth: maxValueDepth };
      const output = encodeValue(message["payload"] ?? null, limits, "the tool's result");
      this.settle(call, `{"type":"returned","output":${output}}`);
    } catch (problem) {
      const why = problem instanceof TooLarge ? problem.message : "the tool's result cannot be written as JSON";
      this.reply(call, { type: "failed", error: why });
    }
    return undefined;
  }

  /** A node has failed on a message of an open call: if nobody catches that, nothing will come back. */
  failed({ node: { node }, msg, error }: CompleteEvent): void {
    const call = this.calls.of(msg);
    if (call === undefined || call.answered || goesOn(error) || wouldBeCaught(this.RED, node)) {
      return;
    }
    const named = `${node.type}${node.name === undefined ? "" : ` "${node.name}"`}`;
    const why = sentence(`${named} failed: ${sentence(error)}`);
    const first = call.node === node.id || (this.RED.nodes.getNode(call.node)?.wires.flat().includes(node.id) ?? false);
    this.reply(call, first ? { type: "failed", error: why } : { type: "unknown", reason: why });
  }

  private make(call: Call, asked: ToolCall): void {
    const node = this.RED.nodes.getNode(asked.node);
    if (node === null) {
      this.reply(call, { type: "failed", error: `the flow that runs has no node ${asked.node}` });
      return;
    }
    const message: Msg = {
      _msgid: call.msgid,
      // As the model gave it: what looks like a Buffer there is no Buffer.
      payload: asked.input,
      toolName: asked.tool,
      _agentCore: {
        type: "tool_request",
        traceId: asked.run,
        callId: asked.call,
        iteration: asked.iteration,
        tool: asked.tool,
        idempotencyKey: asked.idempotencyKey,
      },
    };
    if (node.type !== "flow-tool") {
      node.receive(message);
    } else if (node.wires.flat().length > 0) {
      node.send(message);
    } else {
      this.reply(call, { type: "failed", error: `the flow-tool ${asked.tool} is wired to nothing` });
    }
  }

  private reply(call: Call, reply: ToolReply): void {
    this.settle(call, JSON.stringify(reply));
  }

  private settle(call: Call, reply: string): void {
    if (this.calls.answer(call, reply)) {
      this.post(call, reply);
    }
  }

  private post(call: Call, reply: string): void {
    const before = `"run":${JSON.stringify(call.run)},"call":${JSON.stringify(call.id)},"reply":`;
    if (this.conversation.post("tool_result", `${before}${reply}}`, REPLY_ROOM) !== undefined) {
      return;
    }
    const full: ToolReply = { type: "unknown", reason: "too many replies waited in Node-RED for the sidecar" };
    this.conversation.post("tool_result", `${before}${JSON.stringify(full)}}`, { count: Infinity, bytes: Infinity });
  }
}

function sentence(error: unknown): string {
  return wordsOf(error, "the tool failed");
}

/** Says that a reply does not count. */
export function dropReply(node: RedNode, why: string): void {
  node.warn(`REPLY_DROPPED: ${why}`);
}
