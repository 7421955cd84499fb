// The end of a flow that is a tool: what comes here is the call's result.

import { callOf } from "../bridge";
import { errors } from "../errors";
import { onInput } from "../guard";
import type { Definition, Red, RedNode } from "../red";
import { registerNode } from "../register";
import { dropReply } from "../tools";

export = (RED: Red): void => {
  function FlowToolReturnNode(this: RedNode, definition: Definition): void {
    RED.nodes.createNode(this, definition);
    onInput(RED, this, (message, _send, done) => {
      const found = callOf(message);
      const dropped =
        found === undefined
          ? "the message belongs to no call that is known; keep msg._agentCore or msg._msgid in it"
          : found.runtime.tools.returned(found.call, message);
      if (dropped !== undefined) {
        if (found !== undefined) {
          errors.note(found.call.agent, { code: "REPLY_DROPPED", message: dropped });
        }
        dropReply(this, dropped);
      }
      done();
    });
  }

  registerNode(RED, "flow-tool-return", FlowToolReturnNode);
};
