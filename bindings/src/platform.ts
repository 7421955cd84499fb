// The parts of the platform that the client uses, as few as possible. Browsers and Node.js have all of them. The client
// declares their types itself, so its sources compile in any project.

/** The part of an `AbortSignal` that the client uses. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** The options that the client passes to `fetch`. */
export interface FetchInit {
  method: "GET" | "POST" | "PUT" | "DELETE";
  headers: Record<string, string>;
  /** A text, or bytes: every platform has its own types for them. */
  body?: any;
  cache: "no-store";
  credentials: "same-origin" | "omit";
  redirect: "error" | "manual";
  /** The platform's own `AbortSignal`: every platform has its own type for it. */
  signal: any;
}

/** A file or other bytes of a browser. */
export interface BlobLike {
  readonly size: number;
  arrayBuffer(): Promise<unknown>;
}

/** The part of a `Response` that the client uses. */
export interface FetchResponse {
  readonly status: number;
  readonly type: string;
  readonly headers: { get(name: string): string | null };
  readonly body: { getReader(): BodyReader } | null;
}

/** Reads the body of a response in chunks. */
export interface BodyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(): Promise<unknown>;
}

/** The global `fetch`, or a replacement. */
export type FetchLike = (url: string, init: FetchInit) => Promise<FetchResponse>;

/** A `WebSocket`: of a browser, of Node.js 22 or newer, or of a package such as `ws`. */
export interface WebSocketLike {
  send(data: string): void;
  close(code?: number, reason?: string): void;
  /** Closes the connection without a close frame; not every implementation has it. */
  terminate?(): void;
  addEventListener(type: "open" | "message" | "close" | "error", listener: (event: any) => void): void;
}

/** The global `WebSocket`, or a replacement. */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;

interface UrlLike {
  readonly username: string;
  readonly password: string;
  protocol: string;
  pathname: string;
  search: string;
  hash: string;
  readonly href: string;
}

interface Platform {
  readonly fetch?: FetchLike;
  readonly WebSocket?: WebSocketConstructor;
  readonly location?: { readonly href: string };
  readonly URL: new (url: string, base?: string) => UrlLike;
  readonly AbortController: new () => { readonly signal: AbortSignalLike; abort(): void };
  readonly TextDecoder: new () => { decode(bytes?: Uint8Array, options?: { stream: boolean }): string };
  setTimeout(call: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** The global object. Read at every use, never while a module loads, so tests and pages can replace its parts. */
export const platform = globalThis as unknown as Platform;
