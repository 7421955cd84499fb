// The agents of one runtime that run in Node-RED now, and what is shown under them. Owns the choice between what the
// link, the checker and the run have to say; never starts or ends a run.

import { clipped } from "./failure";
import { guarded } from "./guard";
import type { LinkState } from "./link";
import type { Red, RedNode, Status } from "./red";

/** Characters of a status: more does not fit under a node. */
const STATUS_LENGTH = 120;

/** Agents by their id. */
export class Agents {
  private readonly nodes = new Map<string, RedNode>();
  private readonly said = new Map<string, Status>();
  private readonly shown = new WeakMap<RedNode, string>();
  private problems = new Map<string, string>();
  private problemOfAll: string | undefined;
  /** Whether the problems are those of the flow that runs. */
  private judged = false;
  private link: LinkState = { is: "connecting" };
  private waiting = 0;

  constructor(
    private readonly RED: Pick<Red, "log">,
    private readonly changed: () => void = () => undefined,
  ) {}

  /** A node was made: it is the one of its id from now on. */
  attach(node: RedNode): void {
    this.nodes.set(node.id, node);
    this.show(node);
  }

  /** A node was closed. */
  detach(node: RedNode): void {
    if (this.nodes.get(node.id) === node) {
      this.nodes.delete(node.id);
    }
  }

  /** The node of an id. */
  get(id: string): RedNode | undefined {
    return this.nodes.get(id);
  }

  /** How things stand with the sidecar. */
  setLink(link: LinkState): void {
    this.link = link;
    this.showAll();
    this.changed();
  }

  /** How many messages wait for it. */
  setWaiting(waiting: number): void {
    if (waiting !== this.waiting) {
      this.waiting = waiting;
      if (this.link.is === "away" || this.link.is === "connecting") {
        this.showAll();
      }
      this.changed();
    }
  }

  /** What the checker holds against agents: a sentence for each that is not ready, or one for all. */
  setProblems(problems: Map<string, string>, ofAll?: string): void {
    this.problems = problems;
    this.problemOfAll = ofAll;
    this.judged = true;
    this.showAll();
  }

  /** The flow is another one: what was wrong may have been mended. It is shown until that is known. */
  forgetVerdicts(): void {
    this.judged = false;
  }

  /** Whether the sidecar has refused an agent of the flow that runs: it fails with whatever comes to it. */
  isRefused(id: string): boolean {
    return this.judged && (this.problemOfAll !== undefined || this.problems.has(id));
  }

  /** What a run says. */
  setSaid(id: string, status: Status): void {
    const node = this.nodes.get(id);
    if (node !== undefined) {
      this.said.set(id, status);
      this.show(node);
    }
  }

  /** Forgets what runs said: the sidecar is another one, or the agents are gone. */
  forgetSaid(all: boolean): void {
    for (const id of this.said.keys()) {
      if (all || !this.nodes.has(id)) {
        this.said.delete(id);
      }
    }
  }

  private showAll(): void {
    this.nodes.forEach((node) => this.show(node));
  }

  private show(node: RedNode): void {
    const { fill, shape, text } = this.statusOf(node.id);
    const key = `${fill} ${shape} ${text}`;
    // Each status goes to every open editor: the same one again is of no use.
    if (this.shown.get(node) !== key) {
      this.shown.set(node, key);
      const status = fill === undefined || shape === undefined ? {} : { fill, shape, text: clipped(text ?? "", STATUS_LENGTH) };
      guarded(this.RED, `the status of ${node.id} could not be shown`, () => node.status(status));
    }
  }

  private statusOf(id: string): Status {
    const { link } = this;
    const waiting = this.waiting > 0 ? ` (${this.waiting} waiting)` : "";
    if (link.is === "refused") {
      return { fill: "red", shape: "dot", text: `${link.code}: ${link.message}` };
    }
    if (link.is === "away") {
      return { fill: "grey", shape: "ring", text: `sidecar away: ${link.reason}${waiting}` };
    }
    if (link.is === "connecting") {
      return { fill: "grey", shape: "ring", text: `connecting${waiting}` };
    }
    const problem = this.problemOfAll ?? this.problems.get(id);
    return problem === undefined ? (this.said.get(id) ?? {}) : { fill: "red", shape: "dot", text: problem };
  }
}
