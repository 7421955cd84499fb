// Tool calls that run in Node-RED: a flow between `flow-tool` and `flow-tool-return`, or a node on an agent's tool port.
// Makes each call once and sends its outcome. The sidecar decides whether a late reply still counts.

import type { BridgeMessage, ToolReply } from "@redflow/bindings";
import type { BridgeSession } from "./bridge-session";
import { Calls } from "./calls";
import type { Call } from "./calls";
import { wouldBeCaught } from "./catch-nodes";
import { TooLarge, encodeValue } from "./encode";
import { errorText } from "./failure";
import { UNLIMITED } from "./outbox";
import type { CompleteEvent, Msg, Red, RedNode } from "./red";
import { hasLeftWithResult } from "./runs";

/** How many replies, and bytes of them, may wait for the sidecar. */
const REPLY_LIMIT = { count: 20_000, bytes: 128 * 1024 * 1024 };

type ToolCall = Extract<BridgeMessage, { type: "tool_call" }>;

/** The tool calls of one runtime. */
export class Tools {
  private readonly calls = new Calls();

  constructor(
    private readonly RED: Red,
    private readonly session: BridgeSession,
  ) {}

  /** Handles a request for a call, or for the outcome of an earlier one. It waited here while the flows were stopped. */
  call(request: ToolCall, waitedMs = 0): void {
    const before = this.calls.get(request.call);
    if (before !== undefined) {
      // The call still runs and will be answered; or it was answered, and the answer was lost.
      if (before.answered) {
        const lost: ToolReply = { type: "unknown", reason: "Node-RED made this call, but no longer has its result" };
        this.post(before, before.reply ?? JSON.stringify(lost));
      }
      return;
    }
    const call = this.calls.add({
      id: request.call,
      run: request.run,
      agent: request.agent,
      node: request.node,
      tool: request.tool,
      msgid: this.RED.util.generateId(),
      result: request.operation?.result ?? "payload",
    });
    if (request.known === true) {
      this.reply(call, { type: "unknown", reason: "Node-RED does not know this call: it was restarted meanwhile" });
      return;
    }
    if (waitedMs > request.timeoutMs) {
      const error = "the call was not made: its timeout had passed when the flows ran again";
      this.reply(call, { type: "failed", error });
      return;
    }
    try {
      this.make(call, request);
    } catch (problem) {
      const reason = `Node-RED could not pass the call on: ${errorText(problem, "unknown")}`;
      this.reply(call, { type: "unknown", reason });
    }
  }

  /** The call that a message belongs to, open or answered. */
  findCall(message: Msg): Call | undefined {
    return this.calls.findByMessage(message);
  }

  /** Handles the message that a tool returns. Returns the reason if it does not count. */
  handleReturn(call: Call, message: Msg): string | undefined {
    if (call.answered) {
      return `the call of ${call.tool} was answered already`;
    }
    const { error } = message;
    if (error !== undefined && error !== null && error !== false && error !== "") {
      this.reply(call, { type: "failed", error: toolErrorText(error) });
      return undefined;
    }
    const { maxResultBytes, maxValueDepth } = this.session.limits;
    try {
      const limits = { maxBytes: maxResultBytes, maxDepth: maxValueDepth };
      const output = encodeValue(propertyOf(message, call.result), limits, "the tool's result");
      this.finish(call, `{"type":"returned","output":${output}}`);
    } catch (problem) {
      const reason = problem instanceof TooLarge ? problem.message : "the tool's result cannot be written as JSON";
      this.reply(call, { type: "failed", error: reason });
    }
    return undefined;
  }

  /** Fails an open call when a node fails on its message and no Catch node handles that: no reply will come. */
  handleError({ node: { node }, msg, error }: CompleteEvent): void {
    const call = this.calls.findByMessage(msg);
    if (call === undefined || call.answered || hasLeftWithResult(error) || wouldBeCaught(this.RED, node)) {
      return;
    }
    const name = `${node.type}${node.name === undefined ? "" : ` "${node.name}"`}`;
    const reason = toolErrorText(`${name} failed: ${toolErrorText(error)}`);
    // If the first node fails, no later node has run: the call has failed. Otherwise its outcome is unknown.
    const isFirst = call.node === node.id || (this.RED.nodes.getNode(call.node)?.wires.flat().includes(node.id) ?? false);
    this.reply(call, isFirst ? { type: "failed", error: reason } : { type: "unknown", reason });
  }

  private make(call: Call, request: ToolCall): void {
    const node = this.RED.nodes.getNode(request.node);
    if (node === null) {
      this.reply(call, { type: "failed", error: `the running flow has no node ${request.node}` });
      return;
    }
    const message: Msg = {
      toolName: request.tool,
      // As the model wrote it: JSON that looks like an encoded Buffer is not decoded.
      ...(request.operation?.msg ?? { payload: request.input }),
      _msgid: call.msgid,
      _agentCore: {
        type: "tool_request",
        traceId: request.run,
        callId: request.call,
        iteration: request.iteration,
        tool: request.tool,
        idempotencyKey: request.idempotencyKey,
      },
    };
    if (node.type !== "flow-tool") {
      node.receive(message);
    } else if (node.wires.flat().length > 0) {
      node.send(message);
    } else {
      this.reply(call, { type: "failed", error: `the flow-tool ${request.tool} has no wire` });
    }
  }

  private reply(call: Call, reply: ToolReply): void {
    this.finish(call, JSON.stringify(reply));
  }

  private finish(call: Call, reply: string): void {
    if (this.calls.answer(call, reply)) {
      this.post(call, reply);
    }
  }

  private post(call: Call, reply: string): void {
    const head = `"run":${JSON.stringify(call.run)},"call":${JSON.stringify(call.id)},"reply":`;
    if (this.session.post("tool_result", `${head}${reply}}`, REPLY_LIMIT) !== undefined) {
      return;
    }
    const full: ToolReply = { type: "unknown", reason: "too many replies waited in Node-RED for the sidecar" };
    this.session.post("tool_result", `${head}${JSON.stringify(full)}}`, UNLIMITED);
  }
}

/** The value at a path such as `payload.id` in a message; null if it is missing. */
function propertyOf(message: Msg, path: string): unknown {
  let value: unknown = message;
  for (const name of path.split(".")) {
    const isThere = typeof value === "object" && value !== null && Object.hasOwn(value, name);
    value = isThere ? (value as Msg)[name] : undefined;
  }
  return value ?? null;
}

function toolErrorText(error: unknown): string {
  return errorText(error, "the tool failed");
}

/** Warns that a reply does not count. */
export function warnDroppedReply(node: RedNode, reason: string): void {
  node.warn(`REPLY_DROPPED: ${reason}`);
}
