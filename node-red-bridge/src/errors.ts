// What went wrong at agents and is no run of the sidecar: messages that began none, and what nobody waited for. Owns how
// much of it is kept, in memory, for people who look. Says nothing to anybody by itself.

import type { AgentError } from "./admin-api";
import { clipped } from "./failure";

/** How much is kept. */
export interface ErrorBounds {
  /** Errors of one agent. */
  perAgent: number;
  /** Agents that have any; of more, the one that has been well for the longest is forgotten. */
  agents: number;
  /** Characters of a sentence. */
  length: number;
}

/** What is used unless a test says otherwise. */
export const ERROR_BOUNDS: ErrorBounds = { perAgent: 50, agents: 1_000, length: 2_000 };

/** Characters of a code: those of a stranger may be long. */
const CODE_LENGTH = 100;

/** The newest errors of each agent. */
export class ErrorBook {
  /** By agent, the one with the newest error last; of each the oldest first. */
  private readonly books = new Map<string, AgentError[]>();

  constructor(
    private readonly bounds: ErrorBounds = ERROR_BOUNDS,
    private readonly now: () => number = Date.now,
  ) {}

  /** Something went wrong at an agent. */
  note(agent: string, { code, message }: { code: string; message: string }): void {
    const { perAgent, agents, length } = this.bounds;
    const book = this.books.get(agent) ?? [];
    book.push({ at: this.now(), code: clipped(code, CODE_LENGTH), message: clipped(message, length) });
    if (book.length > perAgent) {
      book.shift();
    }
    this.books.delete(agent);
    this.books.set(agent, book);
    for (const oldest of this.books.size > agents ? this.books.keys() : []) {
      this.books.delete(oldest);
      break;
    }
  }

  /** The errors of an agent, the newest first. */
  of(agent: string): AgentError[] {
    return (this.books.get(agent) ?? []).toReversed();
  }

  /** The agent is gone. */
  forget(agent: string): void {
    this.books.delete(agent);
  }
}

/** Those of this Node-RED. A deploy that keeps an agent keeps its errors. */
export const errors = new ErrorBook();
