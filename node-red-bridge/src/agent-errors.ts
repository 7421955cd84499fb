// Errors of agents that belong to no run of the sidecar: messages that started none, replies that came too late, and services
// that fail now.
// Keeps the newest of each agent in memory for the editor, within limits.

import type { AgentError } from "./admin-api";
import { clip } from "./failure";

/** How many errors are kept. */
export interface ErrorLimits {
  /** Errors of one agent. */
  perAgent: number;
  /** Agents with errors; beyond this the agent without a new error for the longest time is dropped. */
  agents: number;
  /** Characters of a message. */
  length: number;
}

export const ERROR_LIMITS: ErrorLimits = { perAgent: 50, agents: 1_000, length: 2_000 };

/** Characters of a code: another server's code may be long. */
const CODE_LENGTH = 100;

/** The newest errors of each agent. */
export class AgentErrorLog {
  /** By agent, the agent with the newest error last; the errors of each agent oldest first. */
  private readonly byAgent = new Map<string, AgentError[]>();

  /** The service of each agent that fails now. */
  private readonly lasting = new Map<string, AgentError>();

  constructor(
    private readonly limits: ErrorLimits = ERROR_LIMITS,
    private readonly now: () => number = Date.now,
  ) {}

  add(agent: string, error: Omit<AgentError, "at">): void {
    const { perAgent, agents } = this.limits;
    const errors = this.byAgent.get(agent) ?? [];
    errors.push({ at: this.now(), ...this.clipped(error) });
    if (errors.length > perAgent) {
      errors.shift();
    }
    this.byAgent.delete(agent);
    this.byAgent.set(agent, errors);
    for (const oldest of this.byAgent.size > agents ? this.byAgent.keys() : []) {
      this.byAgent.delete(oldest);
      break;
    }
  }

  /** Sets the error of an agent that lasts until it is set to none. Only for agents that run, which bounds their number. */
  setLasting(agent: string, error: Omit<AgentError, "at"> | undefined): void {
    if (error === undefined) {
      this.lasting.delete(agent);
    } else {
      this.lasting.set(agent, this.clipped(error));
    }
  }

  /** The errors of an agent: the one that lasts, then the newest first. */
  list(agent: string): AgentError[] {
    const lasting = this.lasting.get(agent);
    return [...(lasting === undefined ? [] : [lasting]), ...(this.byAgent.get(agent) ?? []).toReversed()];
  }

  private clipped({ code, message, phrase }: Omit<AgentError, "at">): AgentError {
    const texts = { code: clip(code, CODE_LENGTH), message: clip(message, this.limits.length) };
    return phrase === undefined ? texts : { ...texts, phrase };
  }

  /** Drops the errors of an agent that was removed. */
  forget(agent: string): void {
    this.lasting.delete(agent);
    this.byAgent.delete(agent);
  }
}

/** The errors of this Node-RED. They outlive a deploy that keeps their agent. */
export const agentErrors = new AgentErrorLog();
