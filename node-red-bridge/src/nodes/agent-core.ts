// An agent: what comes in starts a run in the sidecar, or is a tool's reply; what the run says leaves by its outputs. A
// message of another agent's call is a question like any other, unless it is the reply of a tool that both use.

import { usesTool } from "../bound-tools";
import { callOf, runtimeOf } from "../bridge";
import { isToolRequest } from "../calls";
import { errors } from "../errors";
import { Failure } from "../failure";
import { onInput } from "../guard";
import type { Definition, Red, RedNode } from "../red";
import { endRefusal, isRefusal } from "../refused-edges";
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
          drop(this, dropped);
        }
        done();
      } else if (isRefusal(message) && (runtime?.agents.isRefused(this.id) ?? true)) {
        endRefusal(this);
        done();
      } else if (found !== undefined && usesTool(RED, this, definition["tools"], found.call.node)) {
        // A tool that two agents use answers both: this is for the other one.
        done();
      } else if (found === undefined && isToolRequest(message)) {
        // A tool's message that is too late must never be taken for a question.
        drop(this, "the call it answers is not known any more");
        done();
      } else if (runtime === undefined) {
        const why = "the agent has no runtime; choose a redflow-runtime in it and deploy";
        const failure = new Failure("CONFIG_INVALID", why);
        errors.note(this.id, failure);
        done(failure);
      } else {
        runtime.runs.start(this, message, send, done);
      }
    });
    this.on("close", (removed, done) => {
      runtime?.agents.detach(this);
      if (removed) {
        errors.forget(this.id);
      }
      done();
    });
  }

  registerNode(RED, "agent-core", AgentNode);
};

/** A tool's reply does not count. */
function drop(agent: RedNode, why: string): void {
  errors.note(agent.id, { code: "REPLY_DROPPED", message: why });
  dropReply(agent, why);
}
