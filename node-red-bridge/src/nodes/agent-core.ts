// An agent: what comes in starts a run in the sidecar, or is a tool's reply; what the run says leaves by its outputs.

import { callOf, runtimeOf } from "../bridge";
import { isToolRequest } from "../calls";
import { Failure } from "../failure";
import { onInput } from "../guard";
import type { Definition, Red, RedNode } from "../red";
import { registerNode } from "../register";
import { endedHere } from "../runs";
import { dropReply } from "../tools";

export = (RED: Red): void => {
  function AgentNode(this: RedNode, definition: Definition): void {
    RED.nodes.createNode(this, definition);
    const runtime = runtimeOf(definition["runtime"]);
    if (runtime === undefined) {
      this.status({ fill: "red", shape: "dot", text: "choose a runtime" });
    } else {
      runtime.agents.attach(this);
    }
    onInput(RED, this, (message, send, done) => {
      if (endedHere(message, send, done)) {
        return;
      }
      const found = callOf(message);
      if (found !== undefined && found.call.agent === this.id) {
        const dropped = found.runtime.tools.returned(found.call, message);
        if (dropped !== undefined) {
          dropReply(this, dropped);
        }
        done();
      } else if (isToolRequest(message) && (found === undefined || found.call.answered)) {
        // A tool's message that is too late must never be taken for a question.
        dropReply(this, "the call it answers is not known any more");
        done();
      } else if (runtime === undefined) {
        done(new Failure("CONFIG_INVALID", "the agent has no runtime; choose a redflow-runtime in it and deploy"));
      } else {
        runtime.runs.start(this, message, send, done);
      }
    });
    this.on("close", (_removed, done) => {
      runtime?.agents.detach(this);
      done();
    });
  }

  registerNode(RED, "agent-core", AgentNode);
};
