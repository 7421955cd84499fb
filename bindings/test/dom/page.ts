// Type test with the types of a browser: the client accepts what a page has. Passes when it compiles.

import { RedflowClient } from "@redflow/bindings";
import type { AbortSignalLike, EventsOptions, FetchLike, WebSocketConstructor } from "@redflow/bindings";

export const globalFetch: FetchLike = globalThis.fetch;
export const globalSocket: WebSocketConstructor = globalThis.WebSocket;
export const signal: AbortSignalLike = new AbortController().signal;

export const client = new RedflowClient({ url: location.origin, fetch: globalThis.fetch.bind(globalThis) });
export const options: EventsOptions = { WebSocket, signal: AbortSignal.timeout(1_000) };
