// Nodes that are agents: a message starts a run in the sidecar, or is the reply of a tool. The run's outputs leave by the ports. A
// message of another agent's tool call is an ordinary message, unless it is the reply of a tool that both agents use.

import { agentErrors } from "./agent-errors";
import { publishPhrase } from "./agents";
import { hasWireTo, usesTool } from "./bound-tools";
import { isToolRequest } from "./calls";
import { Failure } from "./failure";
import { onInput } from "./guard";
import { setHttpStatus } from "./http-status";
import type { Definition, Msg, Red, RedNode } from "./red";
import { dropRefusedAgain, isRefusal } from "./refused-edges";
import { registerNode } from "./register";
import { finishIfEnding } from "./runs";
import { callOf, runtimeOf } from "./runtime-registry";
import { sentence } from "./sentence";
import { warnDroppedReply } from "./tools";

/** Registers the type of an agent. */
export function registerAgent(RED: Red, type: string): void {
  function AgentNode(this: RedNode, definition: Definition): void {
    RED.nodes.createNode(this, definition);
    const runtime = runtimeOf(definition["runtime"]);
    const hasToolPort = type === "agent-core";
    if (runtime === undefined) {
      const status = sentence("choose_runtime");
      publishPhrase(RED, this.id, status);
      this.status({ fill: "red", shape: "dot", text: status.text });
    } else {
      runtime.agents.attach(this);
    }
    onInput(RED, this, (message, send, done) => {
      if (finishIfEnding(message, send, done)) {
        return;
      }
      const found = callOf(message);
      if (found !== undefined && !hasToolPort && isBindingMessage(RED, found.call.node, this, message)) {
        done();
      } else if (found !== undefined && found.call.agent === this.id) {
        const problem = found.runtime.tools.handleReturn(found.call, message);
        if (problem !== undefined) {
          dropReply(this, problem);
        }
        done();
      } else if (isRefusal(message) && (runtime?.agents.isRefused(this.id) ?? true)) {
        dropRefusedAgain(this);
        done();
      } else if (found !== undefined && usesTool(RED, this, definition["tools"], found.call.node)) {
        // A tool that two agents use sends its reply to both. This one is for the other agent.
        done();
      } else if (found === undefined && isToolRequest(message)) {
        // A tool's late message must never start a run.
        dropReply(this, "its call is no longer known");
        done();
      } else if (runtime === undefined) {
        const { text, phrase } = sentence("no_runtime");
        const failure = new Failure("CONFIG_INVALID", text);
        agentErrors.add(this.id, { code: failure.code, message: text, phrase });
        setHttpStatus(message, failure.code);
        done(failure);
      } else {
        runtime.runs.start(this, message, send, done);
      }
    });
    this.on("close", (removed, done) => {
      if (runtime === undefined) {
        publishPhrase(RED, this.id);
      } else {
        runtime.agents.detach(this);
      }
      if (removed) {
        agentErrors.forget(this.id);
      }
      done();
    });
  }

  registerNode(RED, type, AgentNode);
}

/**
 * Whether a message of a call comes by the wire that binds the flow tool to an agent without a tool port. A flow-tool-return
 * brings the reply. A message with an error comes from a Catch node.
 */
function isBindingMessage(RED: Red, tool: string, agent: RedNode, { error }: Msg): boolean {
  return error === undefined && RED.nodes.getNode(tool)?.type === "flow-tool" && hasWireTo(RED, tool, agent);
}

/** Reports a tool's reply that does not count. */
function dropReply(agent: RedNode, reason: string): void {
  agentErrors.add(agent.id, { code: "REPLY_DROPPED", message: reason });
  warnDroppedReply(agent, reason);
}
