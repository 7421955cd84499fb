// What the client needs of the place it runs in, as little of it as possible. Browsers and Node.js have all of it; no
// types of theirs are needed to compile, so the sources fit into any project.

/** An `AbortSignal`. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** What `fetch` is called with. */
export interface FetchInit {
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: string;
  cache: "no-store";
  credentials: "same-origin" | "omit";
  redirect: "error" | "manual";
  /** An `AbortSignal` of this place: every place has a type of its own for it. */
  signal: any;
}

/** What comes back from `fetch`. */
export interface FetchAnswer {
  readonly status: number;
  readonly type: string;
  readonly headers: { get(name: string): string | null };
  readonly body: { getReader(): BodyReader } | null;
}

/** Reads the body of an answer, piece by piece. */
export interface BodyReader {
  read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
  cancel(): Promise<unknown>;
}

/** `fetch`. */
export type FetchLike = (url: string, init: FetchInit) => Promise<FetchAnswer>;

/** A `WebSocket`: of a browser, of Node.js 22 or newer, or of a package such as `ws`. */
export interface WebSocketLike {
  send(data: string): void;
  close(code?: number, reason?: string): void;
  /** Ends it without a word; some have it. */
  terminate?(): void;
  addEventListener(type: "open" | "message" | "close" | "error", listener: (event: any) => void): void;
}

/** Makes a `WebSocket`. */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;

interface AddressLike {
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
  readonly URL: new (url: string, base?: string) => AddressLike;
  readonly AbortController: new () => { readonly signal: AbortSignalLike; abort(): void };
  readonly TextDecoder: new () => { decode(bytes?: Uint8Array, options?: { stream: boolean }): string };
  setTimeout(call: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** The place this runs in. Looked at anew every time: nothing is taken from it while a module loads. */
export const platform = globalThis as unknown as Platform;
