// The agents of one runtime that run in Node-RED now, and their status. Chooses what the status shows: the connection, the
// checker's problem, a service that fails or the run. Never starts or ends a run.

import { agentErrors } from "./agent-errors";
import { clip } from "./failure";
import { guard } from "./guard";
import type { Red, RedNode, Status } from "./red";
import type { ConnectionState } from "./sidecar-connection";

/** Characters of a status: more does not fit under a node. The tab Errors has the whole sentence. */
export const STATUS_LENGTH = 40;

/** Agents by their id. */
export class Agents {
  private readonly nodes = new Map<string, RedNode>();
  private readonly runStatuses = new Map<string, Status>();
  /** A sentence for each agent that runs without one of its services. */
  private readonly failing = new Map<string, string>();
  private readonly lastShown = new WeakMap<RedNode, string>();
  private problems = new Map<string, string>();
  private problemOfAll: string | undefined;
  /** Whether `problems` belongs to the running flow. */
  private checked = false;
  private connection: ConnectionState = { is: "connecting" };
  private waiting = 0;

  constructor(
    private readonly RED: Pick<Red, "log">,
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
      if (this.connection.is === "away" || this.connection.is === "connecting") {
        this.showAll();
      }
      this.onChange();
    }
  }

  /** Sets the checker's problems: a sentence for each agent that is not ready, or one for all agents. */
  setProblems(problems: Map<string, string>, ofAll?: string): void {
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
  setRunStatus(id: string, status: Status): void {
    const node = this.nodes.get(id);
    if (node !== undefined) {
      this.runStatuses.set(id, status);
      this.show(node);
    }
  }

  /** Sets which service of an agent fails; undefined if all work. */
  setFailing(id: string, problem: { code: string; message: string } | undefined): void {
    const node = this.nodes.get(id);
    if (node === undefined || problem === undefined) {
      this.failing.delete(id);
    } else {
      this.failing.set(id, problem.message);
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

  /** Drops what the sidecar has told: of all agents for a new sidecar session, else of removed agents. */
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
    const { fill, shape, text } = this.statusOf(node.id);
    const key = `${fill} ${shape} ${text}`;
    // Node-RED sends each status to every open editor, so an unchanged status is not sent again.
    if (this.lastShown.get(node) !== key) {
      this.lastShown.set(node, key);
      const status = fill === undefined || shape === undefined ? {} : { fill, shape, text: clip(text ?? "", STATUS_LENGTH) };
      guard(this.RED, `the status of ${node.id} could not be shown`, () => node.status(status));
    }
  }

  private statusOf(id: string): Status {
    const { connection } = this;
    const waiting = this.waiting > 0 ? ` (${this.waiting} waiting)` : "";
    if (connection.is === "refused") {
      const { code, message } = connection;
      return { fill: "red", shape: "dot", text: code === "SIDECAR_UNREACHABLE" ? message : `${code}: ${message}` };
    }
    if (connection.is === "away") {
      return { fill: "grey", shape: "ring", text: `sidecar away: ${connection.reason}${waiting}` };
    }
    if (connection.is === "connecting") {
      return { fill: "grey", shape: "ring", text: `connecting${waiting}` };
    }
    const problem = this.problemOfAll ?? this.problems.get(id);
    if (problem !== undefined) {
      return { fill: "red", shape: "dot", text: problem };
    }
    const run = this.runStatuses.get(id) ?? {};
    const failing = this.failing.get(id);
    // A run that goes on, waits or has failed is more urgent.
    const isCalm = run.shape !== "ring" && run.fill !== "red";
    return failing !== undefined && isCalm ? { fill: "yellow", shape: "dot", text: failing } : run;
  }
}
