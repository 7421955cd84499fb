// The requests of the editor to this module over Node-RED's Admin API, and their responses. For both sides.
//
// GET  redflow/runtimes                            -> RuntimeList            redflow.read
// POST redflow/runtimes/:id/check   CheckRequest   -> CheckReport            redflow.read
// GET  redflow/runtimes/:id/runs?agent&status&limit&before -> RunList        redflow.read
// GET  redflow/runtimes/:id/runs/:run              -> RunDetail              redflow.read
// GET  redflow/runtimes/:id/runs/:run/events?after -> RunEvent[]             redflow.read
// GET  redflow/runtimes/:id/runs/:run/text         -> LiveText, or {}        redflow.read
// GET  redflow/runtimes/:id/runs/:run/iterations/:number -> IterationDetail redflow.read
// POST redflow/runtimes/:id/runs/:run/cancel   CancelRequest  -> RunSummary  redflow.write
// POST redflow/runtimes/:id/runs/:run/resolve  ResolveRequest -> RunSummary  redflow.write
// GET  redflow/runtimes/:id/codes/:code            -> CodeEntry              redflow.read
// GET  redflow/runtimes/:id/log                    -> LogLines               redflow.read
// GET  redflow/runtimes/:id/tools                  -> RegistryTools          redflow.read
// GET  redflow/runtimes/:id/mcp                    -> McpServerViews         redflow.read
// GET  redflow/runtimes/:id/mcp/:name              -> McpServerTools         redflow.read
// POST redflow/runtimes/:id/models/test  ModelForm -> ModelTest              flows.write
// POST redflow/runtimes/:id/models/list  ModelForm -> ModelList              flows.write
// GET  redflow/operations                          -> OperationList          redflow.read
// GET  redflow/agents/:id/errors                   -> AgentErrors            redflow.read
//
// An error is a status of 400 or more with a Problem. Runs of other Node-REDs on the same sidecar are hidden.
// On /comms the topic `redflow/runtimes` announces that RuntimeList has changed, without its content. `redflow/status/:id` has the
// Sentence of an agent's status, for other languages.

import type { Phrase } from "@redflow/bindings";

/** A `redflow-runtime` of the running flow. */
export interface RuntimeView {
  id: string;
  /** The name of its node; empty if it has none. */
  name: string;
  mode: "remote" | "managed";
  /** The address of the sidecar, without a password. */
  address: string;
  state: RuntimeState;
  /** Messages that wait for a sidecar that is offline. */
  waiting: number;
}

/** The state of the connection to a sidecar. */
export type RuntimeState =
  | { is: "connecting" }
  | { is: "connected"; version: string }
  | { is: "offline"; reason: string; phrase?: Phrase | undefined }
  | { is: "refused"; code: string; message: string; phrase?: Phrase | undefined };

export interface RuntimeList {
  /** The version of this module. */
  module: string;
  runtimes: RuntimeView[];
}

/** The text that the model of a run writes now. It is nowhere stored. */
export interface LiveText {
  iteration: number;
  /** A higher attempt begins the text again. */
  attempt: number;
  text: string;
  /** Whether the beginning may be missing. */
  isCut: boolean;
}

export interface LogLines {
  lines: string[];
}

/** A tool of a sidecar's registry. */
export interface RegistryTool {
  /** Such as `weather.current`. */
  id: string;
  title: string;
  description: string;
  /** Where it comes from, such as `manifest`. */
  origin: string;
  /** Whether it can be called now: `ready`, or why not. */
  state: string;
}

export interface RegistryTools {
  tools: RegistryTool[];
}

/** An MCP server of a sidecar. */
export interface McpServerView {
  name: string;
  /** Whether it can be used now: `ready`, or why not. */
  state: string;
  /** Why it cannot be used, in English; empty if it can. */
  reason: string;
}

export interface McpServerViews {
  servers: McpServerView[];
}

/** A tool of an MCP server. */
export interface McpToolView {
  /** The name that the server gives it. */
  name: string;
  description: string;
  /** The class that the rules of the server give it. */
  effect: string;
  /** What the classes of a node's rules become: what the server says about the tool can make them stricter. */
  tightened: { read: string; idempotent: string };
  /** Whether it can be called now: `ready`, or why not. */
  state: string;
}

export interface McpServerTools extends McpServerView {
  tools: McpToolView[];
}

/** How long the tools of an MCP server may take: the sidecar may have to start its program first. */
export const MCP_SERVER_MS = 90_000;

/** How long the test of a model may take: a server may load the model first. */
export const MODEL_TEST_MS = 120_000;

/** The dialog of a model, as the user has filled it in. */
export interface ModelForm {
  type: string;
  config: Record<string, unknown>;
  /** The keys that the user typed. The browser does not have stored ones. */
  credentials: Record<string, string>;
  /** The deployed node whose key is used: the model itself, or its key node. */
  node?: string;
}

/** The operations of installed nodes that agents can call. */
export interface OperationList {
  /** By the type of the node. The effect is empty if the package does not say. */
  operations: Record<string, { name: string; effect: string }[]>;
}

/**
 * An error of an agent that belongs to no run: a message that started none, a reply that came too late, or a service that
 * fails now.
 */
export interface AgentError {
  /** Milliseconds since 1970; absent while it lasts. */
  at?: number;
  code: string;
  /** The problem and how to fix it, in English. */
  message: string;
  /** `message`, for other languages. */
  phrase?: Phrase | undefined;
}

export interface AgentErrors {
  /** The one that lasts, then the newest first. */
  errors: AgentError[];
}

/** The body of an error response. */
export interface Problem {
  code: string;
  message: string;
}
