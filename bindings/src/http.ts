// HTTP requests and responses: the token, timeouts, errors. Knows no route and never retries.

import { throwIfAborted } from "./backoff.js";
import { RedflowError } from "./error.js";
import { platform } from "./platform.js";
import type { AbortSignalLike, BlobLike, BodyReader, FetchInit, FetchLike, FetchResponse } from "./platform.js";
import { SseParser } from "./sse.js";
import type { SseEvent } from "./sse.js";
import type { ApiError, ProblemCode } from "./types.js";

/** The most bytes of one response body. */
export const MAX_RESPONSE_BYTES = 128 * 1024 * 1024;

/** How long a request may take by default, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/** The longest delay that a timer takes. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Options of every request. */
export interface CallOptions {
  /** Ends the request, which then throws the signal's reason. */
  signal?: AbortSignalLike | undefined;
  /** How long the request may take, in milliseconds; 0 for no limit. */
  timeoutMs?: number | undefined;
}

export interface TransportOptions {
  url: string;
  token?: string | undefined;
  fetch?: FetchLike | undefined;
  timeoutMs?: number | undefined;
}

/** The parameters of an address. A list is a parameter that is repeated. */
export type Query = Record<string, string | number | readonly string[] | undefined>;

export interface Request extends CallOptions {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** The path below the sidecar's base address. */
  path: string;
  query?: Query;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: object;
  /** Sent as they are. */
  bytes?: Uint8Array | BlobLike;
  accept?: string;
  /** Whether a redirect counts as success. */
  expectsRedirect?: boolean;
}

/** An error that the client finds by itself, before or after a request. */
export function clientError(message: string, code: ProblemCode = "REQUEST_INVALID"): RedflowError {
  return new RedflowError({ code, message });
}

/** Encodes an id as one path segment. Rejects `.` and `..`: no encoding keeps them from changing the path. */
export function pathSegment(id: string): string {
  if (id === "" || id === "." || id === "..") {
    throw clientError(`\`${id}\` is not an id.`);
  }
  try {
    return encodeURIComponent(id);
  } catch {
    throw clientError("The id is not Unicode text.");
  }
}

/** Sends HTTP requests to the sidecar. Never exposes the token. */
export class Transport {
  readonly #base: string;
  readonly #token: string | undefined;
  readonly #fetch: FetchLike | undefined;
  readonly #timeoutMs: number;

  constructor({ url, token, fetch, timeoutMs = DEFAULT_TIMEOUT_MS }: TransportOptions) {
    this.#base = parseBaseUrl(url);
    // Checked here because the platform's error about a header or a subprotocol would quote the token.
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
      throw clientError("The token has blanks or other characters that an HTTP header cannot carry.");
    }
    this.#token = token;
    this.#fetch = fetch;
    this.#timeoutMs = timeoutMs;
  }

  /** The address of the sidecar, without a `/` at its end. */
  get base(): string {
    return this.#base;
  }

  /** The WebSocket subprotocol that carries the token; empty without a token. */
  tokenProtocol(prefix: string): string[] {
    if (this.#token === undefined) {
      return [];
    }
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(this.#token)) {
      throw clientError("The token has characters that a WebSocket cannot carry: use letters, digits, `-`, `_` and `.`.");
    }
    return [prefix + this.#token];
  }

  async json<T>(request: Request): Promise<T> {
    return this.#exchange(request, async (response) => parseJson(response, await readText(response)) as T);
  }

  async text(request: Request): Promise<string> {
    return this.#exchange(request, readText);
  }

  /** Sends the request and ignores the body of the response. */
  async execute(request: Request): Promise<void> {
    await this.#exchange(request, discard);
  }

  /** Server-sent events as they arrive. Ends the connection if a read waits longer than `idleMs` for a byte. */
  async *stream(request: Request, idleMs: number): AsyncGenerator<SseEvent, void, undefined> {
    const parser = new SseParser();
    for await (const piece of this.#pieces(request, "text/event-stream", idleMs)) {
      yield* parser.push(piece);
    }
  }

  /** The lines of a response as they arrive, without empty ones. Ends the connection as `stream` does. */
  async *lines(request: Request, kind: string, idleMs: number): AsyncGenerator<string, void, undefined> {
    let rest = "";
    for await (const piece of this.#pieces(request, kind, idleMs)) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      yield* lines.filter((line) => line !== "");
      if (rest.length > MAX_RESPONSE_BYTES) {
        throw clientError("A line of the response is too long.", "SIDECAR_UNREACHABLE");
      }
    }
    if (rest !== "") {
      yield rest;
    }
  }

  /** A response of this media type in pieces of text, as they arrive. */
  async *#pieces(request: Request, kind: string, idleMs: number): AsyncGenerator<string, void, undefined> {
    const deadline = new Deadline(request.signal);
    let reader: BodyReader | undefined;
    try {
      deadline.start(request.timeoutMs ?? this.#timeoutMs);
      const response = await this.#send({ ...request, accept: kind }, deadline);
      const sent = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
      if (sent.trim().toLowerCase() !== kind) {
        await discard(response);
        throw notASidecar(response);
      }
      reader = response.body?.getReader();
      if (reader === undefined) {
        return;
      }
      const decoder = new platform.TextDecoder();
      for (;;) {
        deadline.start(idleMs);
        const { done, value } = await reader.read();
        deadline.stop();
        if (done) {
          return;
        }
        yield decoder.decode(value, { stream: true });
      }
    } catch (error) {
      throw this.#failure(error, deadline);
    } finally {
      deadline.stop();
      deadline.abort();
      await reader?.cancel().catch(() => undefined);
    }
  }

  async #exchange<T>(request: Request, read: (response: FetchResponse) => Promise<T>): Promise<T> {
    const deadline = new Deadline(request.signal);
    try {
      deadline.start(request.timeoutMs ?? this.#timeoutMs);
      return await read(await this.#send(request, deadline));
    } catch (error) {
      throw this.#failure(error, deadline);
    } finally {
      deadline.stop();
    }
  }

  /** Returns a successful response and throws for every other. */
  async #send(request: Request, deadline: Deadline): Promise<FetchResponse> {
    throwIfAborted(request.signal);
    // In a local variable, because a browser's fetch fails when it is called as a method of another object.
    const fetch = this.#fetch ?? platform.fetch;
    if (!fetch) {
      throw clientError("This platform has no `fetch`: pass one.");
    }
    const headers: Record<string, string> = { accept: request.accept ?? "application/json", ...request.headers };
    const init: FetchInit = {
      method: request.method ?? "GET",
      headers,
      cache: "no-store",
      // Without a token the cookie of the sidecar's own page authenticates; with a token it is not sent.
      credentials: this.#token === undefined ? "same-origin" : "omit",
      redirect: request.expectsRedirect ? "manual" : "error",
      signal: deadline.signal,
    };
    if (this.#token !== undefined) {
      headers["authorization"] = `Bearer ${this.#token}`;
    }
    if (request.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = serialize(request.body);
    }
    if (request.bytes !== undefined) {
      headers["content-type"] = "application/octet-stream";
      init.body = request.bytes;
    }
    const response = await fetch(this.#base + request.path + formatQuery(request.query ?? {}), init);
    const redirected = request.expectsRedirect && (response.status === 303 || response.type === "opaqueredirect");
    if (redirected || (response.status >= 200 && response.status < 300)) {
      return response;
    }
    throw errorFromResponse(response, await readText(response));
  }

  /** The error that the caller sees. */
  #failure(error: unknown, deadline: Deadline): unknown {
    if (error instanceof RedflowError) {
      return error;
    }
    if (deadline.callerSignal?.aborted) {
      return deadline.callerSignal.reason;
    }
    if (deadline.expired) {
      return new RedflowError({ code: "REQUEST_TIMEOUT", message: `${this.#base} did not answer in time.` });
    }
    const { text, timedOut } = describeFailure(error);
    const code = timedOut ? "REQUEST_TIMEOUT" : "SIDECAR_UNREACHABLE";
    return new RedflowError({ code, message: this.scrub(`No sidecar answers at ${this.#base}: ${text}`) });
  }

  /** Removes the token from a text of the platform, which may quote it. */
  scrub(text: string): string {
    return this.#token === undefined ? text : text.replaceAll(this.#token, "…");
  }
}

/** Aborts an exchange when its time is over or when its caller aborts. */
class Deadline {
  readonly callerSignal: AbortSignalLike | undefined;
  readonly #controller = new platform.AbortController();
  readonly #abort = (): void => this.abort();
  #timer: unknown;
  expired = false;

  constructor(callerSignal: AbortSignalLike | undefined) {
    this.callerSignal = callerSignal;
  }

  get signal(): AbortSignalLike {
    return this.#controller.signal;
  }

  start(ms: number): void {
    this.stop();
    if (this.callerSignal?.aborted) {
      this.abort();
    }
    this.callerSignal?.addEventListener("abort", this.#abort);
    if (ms > 0) {
      this.#timer = platform.setTimeout(() => {
        this.expired = true;
        this.abort();
      }, Math.min(ms, MAX_TIMER_MS));
    }
  }

  stop(): void {
    platform.clearTimeout(this.#timer);
    this.callerSignal?.removeEventListener("abort", this.#abort);
  }

  abort(): void {
    this.#controller.abort();
  }
}

function parseBaseUrl(text: string): string {
  let url;
  try {
    url = new platform.URL(text, platform.location?.href);
  } catch {
    throw clientError("`url` is not an address such as http://127.0.0.1:1881.");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw clientError("`url` must begin with http:// or https://.");
  }
  // The message does not quote the address: that would show the password.
  if (url.username !== "" || url.password !== "") {
    throw clientError("`url` contains a user name or a password; pass a `token` instead.");
  }
  url.search = "";
  url.hash = "";
  return url.href.replace(/\/+$/, "");
}

function formatQuery(parameters: Query): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => `${name}=${encodeURIComponent(one)}`),
  );
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

function serialize(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw clientError(`The request cannot be written as JSON: ${describeFailure(error).text}`, "BODY_INVALID");
  }
}

async function discard(response: FetchResponse): Promise<void> {
  await response.body?.getReader().cancel();
}

async function readText(response: FetchResponse): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new platform.TextDecoder();
  const parts: string[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done) {
      break;
    }
    size += value?.byteLength ?? 0;
    if (size > MAX_RESPONSE_BYTES) {
      await reader?.cancel();
      const message = `The response has more than ${MAX_RESPONSE_BYTES} bytes.`;
      throw new RedflowError({ code: "BODY_TOO_LARGE", message }, { status: response.status });
    }
    parts.push(decoder.decode(value, { stream: true }));
  }
  parts.push(decoder.decode());
  return parts.join("");
}

function parseJson(response: FetchResponse, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notASidecar(response);
  }
}

/** The response does not come from a sidecar but from a proxy or another server. */
function notASidecar({ status }: FetchResponse): RedflowError {
  const message = `The response (status ${status}) does not come from a sidecar; check the address.`;
  return new RedflowError({ code: "SIDECAR_UNREACHABLE", message }, { status, retryable: status >= 500 });
}

function errorFromResponse(response: FetchResponse, text: string): RedflowError {
  let error: unknown;
  try {
    error = JSON.parse(text);
  } catch {
    return notASidecar(response);
  }
  if (!isApiError(error)) {
    return notASidecar(response);
  }
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const wait = Number.isFinite(seconds) && seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {};
  return new RedflowError(error, { status: response.status, ...wait });
}

/** Whether the value has the fields of every error of a sidecar. */
export function isApiError(value: unknown): value is ApiError {
  const { code, message } = (value ?? {}) as { code?: unknown; message?: unknown };
  return typeof code === "string" && typeof message === "string";
}

/** The text of an error of the platform. Prefers the cause: the message is often only "fetch failed". */
function describeFailure(error: unknown): { text: string; timedOut: boolean } {
  const { message, cause } = error as { message?: unknown; cause?: { message?: unknown; code?: unknown } };
  const code = typeof cause?.code === "string" ? cause.code : "";
  const text = String(cause?.message || cause?.code || message || error);
  return { text, timedOut: /^UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT$/.test(code) };
}
