// What the editor asks this module over Node-RED's admin side, and what it is told. Types only, for both ends.
//
// GET  redflow/runtimes                            -> RuntimeList            redflow.read
// POST redflow/runtimes/:id/check   CheckRequest   -> CheckReport            redflow.read
// GET  redflow/runtimes/:id/runs?agent&status&limit&before -> RunList        redflow.read
// GET  redflow/runtimes/:id/runs/:run              -> RunDetail              redflow.read
// GET  redflow/runtimes/:id/runs/:run/events?after -> RunEvent[]             redflow.read
// POST redflow/runtimes/:id/runs/:run/cancel   CancelRequest  -> RunSummary  redflow.write
// POST redflow/runtimes/:id/runs/:run/resolve  ResolveRequest -> RunSummary  redflow.write
// GET  redflow/runtimes/:id/codes/:code            -> CodeEntry              redflow.read
// GET  redflow/runtimes/:id/log                    -> LogLines               redflow.read
// GET  redflow/agents/:id/errors                   -> AgentErrors            redflow.read
//
// Everything else is a status from 400 on with a Problem. Runs of other Node-REDs on the same sidecar are not there.
// On /comms the topic `redflow/runtimes` says that RuntimeList has changed, and no more.

/** A `redflow-runtime` of the flow that runs. */
export interface RuntimeView {
  id: string;
  /** As its node is called; empty if it has no name. */
  name: string;
  mode: "remote" | "managed";
  /** Where the sidecar is, without a password. */
  address: string;
  state: RuntimeState;
  /** Messages that wait for a sidecar that is away. */
  waiting: number;
}

/** How things stand with a sidecar. */
export type RuntimeState =
  | { is: "connecting" }
  | { is: "connected"; version: string }
  | { is: "away"; reason: string }
  | { is: "refused"; code: string; message: string };

export interface RuntimeList {
  /** The version of this module. */
  module: string;
  runtimes: RuntimeView[];
}

export interface LogLines {
  lines: string[];
}

/** Something that went wrong at an agent and is no run of the sidecar: it never began, or nobody waited for it. */
export interface AgentError {
  /** Milliseconds since 1970. */
  at: number;
  code: string;
  /** What happened and what to do. */
  message: string;
}

export interface AgentErrors {
  /** The newest first. */
  errors: AgentError[];
}

/** Why something was not done. */
export interface Problem {
  code: string;
  message: string;
}
