// Asks the HTTP API of one sidecar. Owns the bounds of what is asked and answered, and how it is said that something was
// not done; never keeps an answer, follows no redirect, and lets no token or password into any text.

import { apiError, reasonOf } from "./link";
import type { LinkState } from "./link";
import { addressAt, shown } from "./target";
import type { Target } from "./target";

/** Bounds of requests. */
export interface ApiBounds {
  /** Milliseconds until the whole answer must be there. */
  timeoutMs: number;
  /** Bytes of an answer, as they are after any compression. */
  maxAnswerBytes: number;
  /** Requests that may be under way at once. */
  maxInFlight: number;
}

/** What is used unless a test says otherwise. */
export const API_BOUNDS: ApiBounds = { timeoutMs: 10_000, maxAnswerBytes: 16 * 1024 * 1024, maxInFlight: 16 };

/** Something was not done: the status and the words for whoever asked. */
export class NotDone extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "NotDone";
  }
}

/** An answer: as it came, and read. */
export interface ApiAnswer {
  text: string;
  value: unknown;
}

/** Where the sidecar is, and how things stand with it. */
export interface Place {
  target: Target | undefined;
  state: LinkState;
}

/** The HTTP API of one sidecar. */
export class SidecarApi {
  private inFlight = 0;

  constructor(
    private readonly place: () => Place,
    private readonly bounds: ApiBounds = API_BOUNDS,
  ) {}

  /** Asks. `path` begins with a slash and is encoded already. Throws `NotDone`, and nothing else. */
  async ask(method: "GET" | "POST", path: string, body?: unknown): Promise<ApiAnswer> {
    const target = this.reachable();
    const { maxInFlight } = this.bounds;
    if (this.inFlight >= maxInFlight) {
      const message = `${maxInFlight} requests to the sidecar are under way already; ask again in a moment`;
      throw new NotDone(429, "RATE_LIMITED", message);
    }
    this.inFlight += 1;
    try {
      return await this.fetched(target, method, path, body);
    } catch (error) {
      throw error instanceof NotDone ? error : this.unanswered(error);
    } finally {
      this.inFlight -= 1;
    }
  }

  private reachable(): Target {
    const { target, state } = this.place();
    if (state.is === "connected" && target !== undefined) {
      return target;
    }
    throw unreachable(`the sidecar is not connected: ${whyOf(state)}`);
  }

  private async fetched(target: Target, method: string, path: string, body: unknown): Promise<ApiAnswer> {
    const address = addressAt(target.url, path);
    if (address === undefined) {
      throw unreachable("the URL of the runtime is not http:// or https://; correct it");
    }
    const response = await fetch(address, {
      method,
      redirect: "manual",
      signal: AbortSignal.timeout(this.bounds.timeoutMs),
      headers: {
        accept: "application/json",
        ...(target.token === "" ? {} : { authorization: `Bearer ${target.token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await this.read(response);
    if (!response.ok) {
      throw refusal(response.status, text, target.token);
    }
    try {
      return { text, value: JSON.parse(text) as unknown };
    } catch {
      throw noSidecar();
    }
  }

  /** Reads an answer as far as it may go: what it says of its own length need not be true. */
  private async read(response: Response): Promise<string> {
    const { maxAnswerBytes } = this.bounds;
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += part.length;
      if (bytes > maxAnswerBytes) {
        // Leaving the loop closes the connection.
        throw new NotDone(502, "MESSAGE_TOO_LARGE", `the sidecar's answer has more than ${maxAnswerBytes} bytes`);
      }
      parts.push(part);
    }
    return Buffer.concat(parts).toString("utf8");
  }

  /** What `fetch` says may quote the token, so only codes that are known are put into words. */
  private unanswered(error: unknown): NotDone {
    if (error instanceof Error && error.name === "TimeoutError") {
      return unreachable(`the sidecar did not answer within ${this.bounds.timeoutMs / 1000} s`);
    }
    const cause: unknown = error instanceof Error ? error.cause : undefined;
    const code = typeof cause === "object" && cause !== null ? (cause as { code?: unknown }).code : undefined;
    const reason = typeof code === "string" ? reasonOf(code) : undefined;
    return unreachable(`the sidecar did not answer: ${reason ?? "the connection failed"}`);
  }
}

function unreachable(message: string): NotDone {
  return new NotDone(503, "RUNTIME_UNREACHABLE", message);
}

function noSidecar(): NotDone {
  return new NotDone(502, "PROTOCOL_MISMATCH", "what answers at the URL of the runtime is no sidecar; correct the URL");
}

/** An answer that is not what was asked for, in the sidecar's words if they are its own. */
function refusal(status: number, text: string, token: string): NotDone {
  const said = apiError(text);
  if (status === 401) {
    // As 401 it would make the editor ask its own user to log in.
    const message = "the sidecar does not take this token; put what `redflow token` prints into the redflow-runtime";
    return new NotDone(502, "UNAUTHORIZED", message);
  }
  if (said === undefined || status < 400) {
    return status >= 500 ? unreachable(`the sidecar answered with status ${status}`) : noSidecar();
  }
  const words = shown(said.message, token);
  if (said.code === "FORBIDDEN") {
    const mend = "the token of the redflow-runtime needs the scope `run`: `redflow token add NAME --scope run,deploy`";
    return new NotDone(403, said.code, `${words} (${mend})`);
  }
  return new NotDone(status, shown(said.code, token), words);
}

function whyOf(state: LinkState): string {
  switch (state.is) {
    case "connecting":
      return "it is being connected";
    case "connected":
      return "its address is not known yet";
    case "away":
      return state.reason;
    case "refused":
      return `${state.message} (${state.code})`;
  }
}
