// The part of Node-RED's API that this module uses, as Node-RED 4 and 5 have it. Types only.

import type { IncomingMessage, ServerResponse } from "node:http";

/** A message of a flow. */
export type Msg = Record<string, unknown>;

export interface Status {
  fill?: "red" | "green" | "yellow" | "blue" | "grey";
  shape?: "ring" | "dot";
  text?: string;
}

/** The properties of a node in the flow file. */
export interface Definition {
  id: string;
  type: string;
  z?: string;
  name?: string;
  wires?: (string | null)[][];
  [property: string]: unknown;
}

/** Sends messages from the outputs of a node. */
export type Send = (message: Msg | (Msg | null)[]) => void;

/** Reports that the node has handled a message, or its error. */
export type DoneCallback = (error?: unknown) => void;

/** A running node. */
export interface RedNode {
  id: string;
  type: string;
  z?: string;
  g?: string;
  name?: string;
  wires: (string | null)[][];
  credentials?: Record<string, unknown>;
  on(event: "input", listener: (this: RedNode, message: Msg, send: Send, done: DoneCallback) => void): void;
  on(event: "close", listener: (this: RedNode, removed: boolean, done: () => void) => void): void;
  send(message: Msg | (Msg | null)[]): void;
  receive(message: Msg): void;
  status(status: Status): void;
  log(text: string): void;
  warn(text: string): void;
  error(text: unknown, message?: Msg): void;
}

/** Node-RED calls it with `new` for each node of a type. */
export type NodeConstructor = (this: RedNode, definition: Definition) => void;

export interface TypeOptions {
  credentials?: Record<string, { type: "text" | "password" }>;
}

/** A request handler of the Admin API. */
export type AdminHandler = (
  request: IncomingMessage & { params: Record<string, string> },
  response: ServerResponse,
  next: () => void,
) => void;

/** Node-RED emits it when a node calls `done`. */
export interface CompleteEvent {
  msg: Msg;
  error?: unknown;
  node: { id: string; node: RedNode };
}

/** A message on its way along a wire. */
export interface SendEvent {
  msg: Msg;
  source: { id: string; port: number };
  destination: { id: string };
}

/** The `RED` object that Node-RED passes to a module. */
export interface Red {
  version(): string;
  nodes: {
    createNode(node: RedNode, definition: Definition): void;
    getNode(id: string): RedNode | null;
    eachNode(visit: (definition: Definition) => void): void;
    getCredentials(id: string): Record<string, unknown> | undefined;
    registerType(type: string, constructor: NodeConstructor, options?: TypeOptions): void;
  };
  log: Record<"info" | "warn" | "error" | "debug", (text: string) => void>;
  settings: {
    userDir?: string;
    get(name: string): unknown;
    set(name: string, value: unknown): Promise<unknown>;
    available(): boolean;
  };
  events: {
    on(event: string, listener: (...args: unknown[]) => void): void;
    emit(event: string, ...args: unknown[]): void;
  };
  hooks: {
    add(hook: "onComplete.redflow-bridge", listener: (event: CompleteEvent) => void): void;
    /** A listener that returns `false` drops the message. */
    add(hook: "preRoute.redflow-bridge", listener: (event: SendEvent) => false | undefined): void;
    remove(hook: "*.redflow-bridge" | "preRoute.redflow-bridge"): void;
  };
  util: {
    cloneMessage<M>(message: M): M;
    generateId(): string;
  };
  auth: { needsPermission(permission: string): AdminHandler };
  httpAdmin: Record<"get" | "post" | "delete", (path: string, permission: AdminHandler, handler: AdminHandler) => void>;
  comms: { publish(topic: string, data: unknown, retain: boolean): void };
}
