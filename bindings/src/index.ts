/**
 * The types of Redflow Runtime, as its contract declares them, and a client of its sidecar.
 * The client needs only `fetch` and `WebSocket`.
 *
 * @packageDocumentation
 */
export * from "./types.js";
export { RedflowClient } from "./client.js";
export type {
  AddDocumentOptions,
  ClientOptions,
  EventPage,
  JournalPageRequest,
  RunsFilter,
  StartOptions,
  StatsFilter,
  TreeFilter,
} from "./client.js";
export { RedflowError } from "./error.js";
export type { EventsItem, EventsOptions, EventsState, EventsTiming } from "./events.js";
export type { FollowOptions, FollowTiming } from "./follow-run.js";
export type { CallOptions } from "./http.js";
export type { AbortSignalLike, BlobLike, FetchLike, WebSocketConstructor, WebSocketLike } from "./platform.js";
export * from "./timeline.js";
