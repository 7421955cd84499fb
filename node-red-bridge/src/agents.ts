// The agents of one runtime that run in Node-RED now, and their status. Chooses what the status shows: the connection, the
// checker's problem, a service that fails or the run. Never starts or ends a run.

import type { AgentError } from "./admin-api";
import { agentErrors } from "./agent-errors";
import { guard } from "./guard";
import type { Red, RedNode, Status } from "./red";
import { englishTemplate } from "./english";
import { statusText } from "./phrase-text";
import { type Sentence, sentence } from "./sentence";
import type { ConnectionState } from "./sidecar-connection";

/** The topic on /comms for the phrase of an agent's status. Node-RED's own topic has room for the English text alone. */
const PHRASE_TOPIC = "redflow/status";

/** A status, and what it says in any language. */
export type AgentStatus = Pick<Status, "fill" | "shape"> & Partial<Sentence>;

/** Sends a status with its phrase to the editors, or removes it. Node-RED keeps it for those that open later. */
export function publishPhrase({ comms }: Pick<Red, "comms">, id: string, status?: Sentence): void {
  comms.publish(`${PHRASE_TOPIC}/${id}`, status ?? {}, status !== undefined);
}

/** A problem after its code. Without a phrase there is nothing to translate. */
export function withCode(code: string, problem: Sentence): Sentence {
  const { text, phrase } = sentence("status_refused", { code: { text: code }, message: problem });
  return problem.phrase === undefined ? { text } : { text, phrase };
}

/** Agents by their id. */
export class Agents {
  private readonly nodes = new Map<string, RedNode>();
  private readonly runStatuses = new Map<string, AgentStatus>();
  /** A sentence for each agent that runs without one of its services. */
  private readonly failing = new Map<string, Sentence>();
  private readonly lastShown = new WeakMap<RedNode, string>();
  /** The agents whose editors have a phrase. */
  private readonly withPhrase = new Set<string>();
  private problems = new Map<string, Sentence>();
  private problemOfAll: Sentence | undefined;
  /** Whether `problems` belongs to the running flow. */
  private checked = false;
  private connection: ConnectionState = { is: "connecting" };
  private waiting = 0;

  constructor(
    private readonly RED: Pick<Red, "log" | "comms">,
    private readonly onChange: () => void = () => undefined,
  ) {}

  /** Adds a new node. It replaces an earlier node with the same id. */
  attach(node: RedNode): void {
    this.nodes.set(node.id, node);
    this.show(node);
  }

  /** Removes a closed node, unless another one has replaced it. */
  detach(node: RedNode): void {
    if (this.nodes.get(node.id) === node) {
      this.nodes.delete(node.id);
      this.publishPhrase(node.id, {});
    }
  }

  get(id: string): RedNode | undefined {
    return this.nodes.get(id);
  }

  setConnection(connection: ConnectionState): void {
    this.connection = connection;
    this.showAll();
    this.onChange();
  }

  /** Sets how many messages wait for the sidecar. */
  setWaiting(waiting: number): void {
    if (waiting !== this.waiting) {
      this.waiting = waiting;
      if (this.connection.is === "offline" || this.connection.is === "connecting") {
        this.showAll();
      }
      this.onChange();
    }
  }

  /** Sets the checker's problems: a sentence for each agent that is not ready, or one for all agents. */
  setProblems(problems: Map<string, Sentence>, ofAll?: Sentence): void {
    this.problems = problems;
    this.problemOfAll = ofAll;
    this.checked = true;
    this.showAll();
  }

  /** The flow has changed: its problems may be fixed. They stay visible until the checker has answered. */
  markUnchecked(): void {
    this.checked = false;
  }

  /** Whether the sidecar has refused an agent of the running flow: it fails every message. */
  isRefused(id: string): boolean {
    return this.checked && (this.problemOfAll !== undefined || this.problems.has(id));
  }

  /** Sets the status of an agent's run. */
  setRunStatus(id: string, status: AgentStatus): void {
    const node = this.nodes.get(id);
    if (node !== undefined) {
      this.runStatuses.set(id, status);
      this.show(node);
    }
  }

  /** Sets which service of an agent fails; undefined if all work. */
  setFailing(id: string, problem: Omit<AgentError, "at"> | undefined): void {
    const node = this.nodes.get(id);
    if (node === undefined || problem === undefined) {
      this.failing.delete(id);
    } else {
      this.failing.set(id, { text: problem.message, phrase: problem.phrase });
    }
    agentErrors.setLasting(id, node === undefined ? undefined : problem);
    if (node !== undefined) {
      this.show(node);
    }
  }

  /** A new message has arrived: the status of an ended run goes at once. One that still runs keeps its status. */
  clearEndedRun(id: string): void {
    const node = this.nodes.get(id);
    if (node !== undefined && this.runStatuses.get(id)?.shape === "dot") {
      this.runStatuses.delete(id);
      this.show(node);
    }
  }

  /** Drops the statuses from the sidecar: of all agents for a new sidecar session, else of removed agents. */
  forgetStatuses(which: "all" | "removed"): void {
    const ids = [...this.runStatuses.keys(), ...this.failing.keys()];
    for (const id of ids.filter((id) => which === "all" || !this.nodes.has(id))) {
      this.runStatuses.delete(id);
      this.setFailing(id, undefined);
    }
  }

  private showAll(): void {
    this.nodes.forEach((node) => this.show(node));
  }

  private show(node: RedNode): void {
    const { fill, shape, text, phrase } = this.statusOf(node.id);
    const key = `${fill} ${shape} ${text}`;
    // Node-RED sends each status to every open editor, so an unchanged status is not sent again.
    if (this.lastShown.get(node) !== key) {
      this.lastShown.set(node, key);
      const isEmpty = fill === undefined || shape === undefined;
      const status = isEmpty ? {} : { fill, shape, text: statusText({ text: text ?? "", phrase }, englishTemplate).toWellFormed() };
      guard(this.RED, `the status of ${node.id} could not be shown`, () => {
        this.publishPhrase(node.id, { ...status, phrase });
        node.status(status);
      });
    }
  }

  /** Sends the phrase of a status to the editors, or removes the last one. */
  private publishPhrase(id: string, { text, phrase }: AgentStatus): void {
    if (phrase !== undefined) {
      this.withPhrase.add(id);
      publishPhrase(this.RED, id, { text: text ?? "", phrase });
    } else if (this.withPhrase.delete(id)) {
      publishPhrase(this.RED, id);
    }
  }

  private statusOf(id: string): AgentStatus {
    const { connection } = this;
    const waiting = { text: String(this.waiting) };
    if (connection.is === "refused") {
      const { code, message: text, phrase } = connection;
      const problem = code === "SIDECAR_UNREACHABLE" ? { text, phrase } : withCode(code, { text, phrase });
      return { fill: "red", shape: "dot", ...problem };
    }
    if (connection.is === "offline") {
      const reason = { text: connection.reason, phrase: connection.phrase };
      const offline = this.waiting > 0 ? sentence("status_offline_waiting", { reason, waiting }) : sentence("status_offline", { reason });
      return { fill: "grey", shape: "ring", ...offline };
    }
    if (connection.is === "connecting") {
      const connecting = this.waiting > 0 ? sentence("status_connecting_waiting", { waiting }) : sentence("status_connecting");
      return { fill: "grey", shape: "ring", ...connecting };
    }
    const problem = this.problemOfAll ?? this.problems.get(id);
    if (problem !== undefined) {
      return { fill: "red", shape: "dot", ...problem };
    }
    const run: AgentStatus = this.runStatuses.get(id) ?? {};
    const failing = this.failing.get(id);
    // A run that goes on, waits or has failed is more urgent.
    const isCalm = run.shape !== "ring" && run.fill !== "red";
    return failing !== undefined && isCalm ? { fill: "yellow", shape: "dot", ...failing } : run;
  }
}
