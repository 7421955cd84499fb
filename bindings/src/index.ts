/**
 * The types of Redflow Runtime, as its contract declares them.
 * And a client of its sidecar, which needs nothing but `fetch` and `WebSocket`.
 *
 * @packageDocumentation
 */
export * from "./types.js";
export { RedflowClient } from "./client.js";
export type { ClientOptions, RunsFilter, StartOptions } from "./client.js";
export { RedflowError } from "./error.js";
export type { EventsItem, EventsOptions, EventsState, EventsTiming } from "./events.js";
export type { FollowOptions, FollowTiming } from "./follow.js";
export type { CallOptions } from "./http.js";
export type { AbortSignalLike, FetchLike, WebSocketConstructor, WebSocketLike } from "./platform.js";
