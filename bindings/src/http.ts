// Requests and answers: the token, the time a request may take, errors. Knows no route and repeats nothing.

import { throwIfAborted } from "./backoff.js";
import { RedflowError } from "./error.js";
import { platform } from "./platform.js";
import type { AbortSignalLike, BodyReader, FetchAnswer, FetchInit, FetchLike } from "./platform.js";
import { SseParser } from "./sse.js";
import type { SseEvent } from "./sse.js";
import type { ApiError, ProblemCode } from "./types.js";

/** The most bytes of one answer. */
export const MAX_ANSWER_BYTES = 128 * 1024 * 1024;

/** How long a request may take if nobody says, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 30_000;

/** The longest a timer can be set to; there is nothing after it. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** What may be said of any request. */
export interface CallOptions {
  /** Ends the request; what it throws then is the signal's reason. */
  signal?: AbortSignalLike | undefined;
  /** How long the request may take, in milliseconds; 0 for as long as it likes. */
  timeoutMs?: number | undefined;
}

/** Where the sidecar is and who asks. */
export interface TransportOptions {
  url: string;
  token?: string | undefined;
  fetch?: FetchLike | undefined;
  timeoutMs?: number | undefined;
}

/** A request. */
export interface Request extends CallOptions {
  method?: "GET" | "POST";
  /** Below the address of the sidecar. */
  path: string;
  query?: Record<string, string | number | undefined>;
  headers?: Record<string, string>;
  body?: object;
  accept?: string;
  /** Whether a redirect is what is expected. */
  redirects?: boolean;
}

/** A request that cannot be made. */
export function misuse(message: string, code: ProblemCode = "REQUEST_INVALID"): RedflowError {
  return new RedflowError({ code, message });
}

/** A part of a path. `.` and `..` would name another place, whatever is done to them. */
export function part(id: string): string {
  if (id === "" || id === "." || id === "..") {
    throw misuse(`\`${id}\` is not an id.`);
  }
  try {
    return encodeURIComponent(id);
  } catch {
    throw misuse("The id is not Unicode text.");
  }
}

/** Asks the sidecar over HTTP. Keeps the token to itself. */
export class Transport {
  readonly #base: string;
  readonly #token: string | undefined;
  readonly #fetch: FetchLike | undefined;
  readonly #timeoutMs: number;

  constructor({ url, token, fetch, timeoutMs = DEFAULT_TIMEOUT_MS }: TransportOptions) {
    this.#base = base(url);
    // Checked here: an error of the platform about a header or a subprotocol would quote it.
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
      throw misuse("The token is not a token: it has blanks or other characters that no header takes.");
    }
    this.#token = token;
    this.#fetch = fetch;
    this.#timeoutMs = timeoutMs;
  }

  /** The address of the sidecar, without a `/` at its end. */
  get base(): string {
    return this.#base;
  }

  /** The subprotocol that carries the token, if there is one. */
  tokenProtocol(prefix: string): string[] {
    if (this.#token === undefined) {
      return [];
    }
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(this.#token)) {
      throw misuse("The token has characters that cannot go over a socket: use letters, digits, `-`, `_` and `.`.");
    }
    return [prefix + this.#token];
  }

  /** JSON. */
  async json<T>(request: Request): Promise<T> {
    return this.#exchange(request, async (answer) => parse(answer, await readText(answer)) as T);
  }

  /** Text. */
  async text(request: Request): Promise<string> {
    return this.#exchange(request, readText);
  }

  /** Nothing but that it was done. */
  async done(request: Request): Promise<void> {
    await this.#exchange(request, discard);
  }

  /** Server-sent events, as they come in. `idleMs` without a byte while somebody waits for one: it is cut off. */
  async *stream(request: Request, idleMs: number): AsyncGenerator<SseEvent, void, undefined> {
    const clock = new Clock(request.signal);
    let reader: BodyReader | undefined;
    try {
      clock.start(request.timeoutMs ?? this.#timeoutMs);
      const answer = await this.#send({ ...request, accept: "text/event-stream" }, clock);
      if (!/^text\/event-stream\b/i.test(answer.headers.get("content-type") ?? "")) {
        await discard(answer);
        throw foreign(answer);
      }
      reader = answer.body?.getReader();
      const decoder = new platform.TextDecoder();
      const parser = new SseParser();
      while (reader) {
        clock.start(idleMs);
        const { done, value } = await reader.read();
        clock.stop();
        if (done) {
          return;
        }
        yield* parser.push(decoder.decode(value, { stream: true }));
      }
    } catch (error) {
      throw this.#failure(error, clock);
    } finally {
      clock.stop();
      clock.abort();
      await reader?.cancel().catch(() => undefined);
    }
  }

  async #exchange<T>(request: Request, read: (answer: FetchAnswer) => Promise<T>): Promise<T> {
    const clock = new Clock(request.signal);
    try {
      clock.start(request.timeoutMs ?? this.#timeoutMs);
      return await read(await this.#send(request, clock));
    } catch (error) {
      throw this.#failure(error, clock);
    } finally {
      clock.stop();
    }
  }

  /** The answer, if it is a good one; throws if not. */
  async #send(request: Request, clock: Clock): Promise<FetchAnswer> {
    throwIfAborted(request.signal);
    // Called by its own name: a browser's fetch is nobody's method.
    const fetch = this.#fetch ?? platform.fetch;
    if (!fetch) {
      throw misuse("There is no `fetch` here: pass one.");
    }
    const headers: Record<string, string> = { accept: request.accept ?? "application/json", ...request.headers };
    const init: FetchInit = {
      method: request.method ?? "GET",
      headers,
      cache: "no-store",
      // Without a token the cookie of the sidecar's own page lets this in; with one it has no say.
      credentials: this.#token === undefined ? "same-origin" : "omit",
      redirect: request.redirects ? "manual" : "error",
      signal: clock.signal,
    };
    if (this.#token !== undefined) {
      headers["authorization"] = `Bearer ${this.#token}`;
    }
    if (request.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = written(request.body);
    }
    const answer = await fetch(this.#base + request.path + query(request.query ?? {}), init);
    const redirected = request.redirects && (answer.status === 303 || answer.type === "opaqueredirect");
    if (redirected || (answer.status >= 200 && answer.status < 300)) {
      return answer;
    }
    throw refusal(answer, await readText(answer));
  }

  /** What a caller gets to see of an error. */
  #failure(error: unknown, clock: Clock): unknown {
    if (error instanceof RedflowError) {
      return error;
    }
    if (clock.given?.aborted) {
      return clock.given.reason;
    }
    if (clock.expired) {
      return new RedflowError({ code: "REQUEST_TIMEOUT", message: `${this.#base} did not answer in time.` });
    }
    const { text, late } = told(error);
    const code = late ? "REQUEST_TIMEOUT" : "SIDECAR_UNREACHABLE";
    return new RedflowError({ code, message: this.scrub(`No sidecar answers at ${this.#base}: ${text}`) });
  }

  /** The text without the token, should anything have put it there. */
  scrub(text: string): string {
    return this.#token === undefined ? text : text.replaceAll(this.#token, "…");
  }
}

/** Ends an exchange when its time is over or its caller wants it. */
class Clock {
  readonly given: AbortSignalLike | undefined;
  readonly #controller = new platform.AbortController();
  readonly #abort = (): void => this.abort();
  #timer: unknown;
  expired = false;

  constructor(given: AbortSignalLike | undefined) {
    this.given = given;
  }

  get signal(): AbortSignalLike {
    return this.#controller.signal;
  }

  start(ms: number): void {
    this.stop();
    if (this.given?.aborted) {
      this.abort();
    }
    this.given?.addEventListener("abort", this.#abort);
    if (ms > 0) {
      this.#timer = platform.setTimeout(() => {
        this.expired = true;
        this.abort();
      }, Math.min(ms, MAX_TIMER_MS));
    }
  }

  stop(): void {
    platform.clearTimeout(this.#timer);
    this.given?.removeEventListener("abort", this.#abort);
  }

  abort(): void {
    this.#controller.abort();
  }
}

function base(text: string): string {
  let url;
  try {
    url = new platform.URL(text, platform.location?.href);
  } catch {
    throw misuse("`url` is not an address; it looks like http://127.0.0.1:1881.");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw misuse("`url` begins with http:// or https://.");
  }
  // Not quoted: that would show the password.
  if (url.username !== "" || url.password !== "") {
    throw misuse("`url` has a user or a password in it; a sidecar takes a `token`.");
  }
  url.search = "";
  url.hash = "";
  return url.href.replace(/\/+$/, "");
}

function query(parameters: Record<string, string | number | undefined>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string | number] => pair[1] !== undefined);
  const written = given.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return written.length > 0 ? `?${written.join("&")}` : "";
}

function written(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw misuse(`The request cannot be written as JSON: ${told(error).text}`, "BODY_INVALID");
  }
}

async function discard(answer: FetchAnswer): Promise<void> {
  await answer.body?.getReader().cancel();
}

async function readText(answer: FetchAnswer): Promise<string> {
  const reader = answer.body?.getReader();
  const decoder = new platform.TextDecoder();
  const pieces: string[] = [];
  let size = 0;
  while (reader) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    size += value?.byteLength ?? 0;
    if (size > MAX_ANSWER_BYTES) {
      await reader.cancel();
      const message = `The answer has more than ${MAX_ANSWER_BYTES} bytes.`;
      throw new RedflowError({ code: "BODY_TOO_LARGE", message }, { status: answer.status });
    }
    pieces.push(decoder.decode(value, { stream: true }));
  }
  pieces.push(decoder.decode());
  return pieces.join("");
}

function parse(answer: FetchAnswer, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw foreign(answer);
  }
}

/** Something answered, but not as a sidecar does: a proxy, or another server. */
function foreign({ status }: FetchAnswer): RedflowError {
  const message = `Something else than a sidecar answered with status ${status}; check the address.`;
  return new RedflowError({ code: "SIDECAR_UNREACHABLE", message }, { status, retryable: status >= 500 });
}

function refusal(answer: FetchAnswer, text: string): RedflowError {
  let error: unknown;
  try {
    error = JSON.parse(text);
  } catch {
    return foreign(answer);
  }
  if (!isApiError(error)) {
    return foreign(answer);
  }
  const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN);
  const wait = Number.isFinite(seconds) && seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {};
  return new RedflowError(error, { status: answer.status, ...wait });
}

/** Whether this has what every error of a sidecar has. */
export function isApiError(value: unknown): value is ApiError {
  const { code, message } = (value ?? {}) as { code?: unknown; message?: unknown };
  return typeof code === "string" && typeof message === "string";
}

/** What an error of the platform says; the cause says more than "fetch failed". */
function told(error: unknown): { text: string; late: boolean } {
  const { message, cause } = error as { message?: unknown; cause?: { message?: unknown; code?: unknown } };
  const code = String(cause?.code ?? "");
  const text = String(cause?.message || cause?.code || message || error);
  return { text, late: /^UND_ERR_(HEADERS|BODY|CONNECT)_TIMEOUT$/.test(code) };
}
