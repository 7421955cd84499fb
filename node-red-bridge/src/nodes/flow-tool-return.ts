// `flow-tool-return`: the end of a flow tool. A message that arrives here is the result of the call.

import { agentErrors } from "../agent-errors";
import { onInput } from "../guard";
import type { Definition, Red, RedNode } from "../red";
import { registerNode } from "../register";
import { callOf } from "../runtime-registry";
import { warnDroppedReply } from "../tools";

export = (RED: Red): void => {
  function FlowToolReturnNode(this: RedNode, definition: Definition): void {
    RED.nodes.createNode(this, definition);
    onInput(RED, this, (message, _send, done) => {
      const found = callOf(message);
      const problem =
        found === undefined
          ? "the message belongs to no known call; keep msg._agentCore or msg._msgid in it"
          : found.runtime.tools.handleReturn(found.call, message);
      if (problem !== undefined) {
        if (found !== undefined) {
          agentErrors.add(found.call.agent, { code: "REPLY_DROPPED", message: problem });
        }
        warnDroppedReply(this, problem);
      }
      done();
    });
  }

  registerNode(RED, "flow-tool-return", FlowToolReturnNode);
};
