// The HTTP client of one sidecar. Limits requests and responses, and turns failures into `ApiFailure`. Caches no response,
// follows no redirect, and lets no token or password into any text.

import { TOKEN_REFUSED, describeSystemError, parseApiError } from "./sidecar-connection";
import type { ConnectionState } from "./sidecar-connection";
import { redact, urlAt } from "./target";
import type { Target } from "./target";

/** Limits of requests. */
export interface ApiLimits {
  /** Milliseconds until the whole response must have arrived. */
  timeoutMs: number;
  /** Bytes of a response after decompression. */
  maxResponseBytes: number;
  /** How many requests may run at once. */
  maxInFlight: number;
}

export const API_LIMITS: ApiLimits = { timeoutMs: 10_000, maxResponseBytes: 16 * 1024 * 1024, maxInFlight: 16 };

/** A failed request, with the HTTP status, code and message for the editor. */
export class ApiFailure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "ApiFailure";
  }
}

/** A response: its text, and the parsed JSON. */
export interface ApiResponse {
  text: string;
  value: unknown;
}

/** The current address of the sidecar and the state of the connection. */
export interface CurrentSidecar {
  target: Target | undefined;
  state: ConnectionState;
}

/** The HTTP API of one sidecar. */
export class SidecarApi {
  private inFlight = 0;

  constructor(
    private readonly current: () => CurrentSidecar,
    private readonly limits: ApiLimits = API_LIMITS,
  ) {}

  /**
   * Sends a request. `path` starts with a slash and is encoded. The response may take `timeoutMs`, if it is longer than usual.
   * Throws only `ApiFailure`.
   */
  async request(method: "GET" | "POST", path: string, body?: unknown, timeoutMs: number = this.limits.timeoutMs): Promise<ApiResponse> {
    const target = this.connectedTarget();
    const { maxInFlight } = this.limits;
    if (this.inFlight >= maxInFlight) {
      const message = `${maxInFlight} requests to the sidecar are running already; try again in a moment`;
      throw new ApiFailure(429, "RATE_LIMITED", message);
    }
    this.inFlight += 1;
    try {
      return await this.send(target, method, path, body, timeoutMs);
    } catch (error) {
      throw error instanceof ApiFailure ? error : connectionFailure(error, timeoutMs);
    } finally {
      this.inFlight -= 1;
    }
  }

  private connectedTarget(): Target {
    const { target, state } = this.current();
    if (state.is === "connected" && target !== undefined) {
      return target;
    }
    throw unreachable(`the sidecar is not connected: ${describeState(state)}`);
  }

  private async send(target: Target, method: string, path: string, body: unknown, timeoutMs: number): Promise<ApiResponse> {
    const address = urlAt(target.url, path);
    if (address === undefined) {
      throw unreachable("the URL of the runtime is not http:// or https://; correct it");
    }
    const response = await fetch(address, {
      method,
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        accept: "application/json",
        ...(target.token === "" ? {} : { authorization: `Bearer ${target.token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await this.read(response);
    if (!response.ok) {
      throw failureOf(response.status, text, target.token);
    }
    try {
      return { text, value: JSON.parse(text) as unknown };
    } catch {
      throw notASidecar();
    }
  }

  /** Reads a response up to the limit: its content-length header may be wrong. */
  private async read(response: Response): Promise<string> {
    const { maxResponseBytes } = this.limits;
    const parts: Uint8Array[] = [];
    let bytes = 0;
    for await (const part of response.body ?? []) {
      bytes += part.length;
      if (bytes > maxResponseBytes) {
        // Leaving the loop closes the connection.
        throw new ApiFailure(502, "MESSAGE_TOO_LARGE", `the sidecar's response has more than ${maxResponseBytes} bytes`);
      }
      parts.push(part);
    }
    return Buffer.concat(parts).toString("utf8");
  }
}

/** Uses only the code of an error: the message of `fetch` may quote the token. */
function connectionFailure(error: unknown, timeoutMs: number): ApiFailure {
  if (error instanceof Error && error.name === "TimeoutError") {
    return unreachable(`the sidecar did not answer within ${timeoutMs / 1000} s`);
  }
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const code = typeof cause === "object" && cause !== null ? (cause as { code?: unknown }).code : undefined;
  const reason = typeof code === "string" ? describeSystemError(code) : undefined;
  return unreachable(`the sidecar did not answer: ${reason?.text ?? "the connection failed"}`);
}

function unreachable(message: string): ApiFailure {
  return new ApiFailure(503, "RUNTIME_UNREACHABLE", message);
}

function notASidecar(): ApiFailure {
  return new ApiFailure(502, "PROTOCOL_MISMATCH", "the server at the URL of the runtime is not a sidecar; correct the URL");
}

/** The failure for an error response, with the sidecar's own message if it has one. */
function failureOf(status: number, text: string, token: string): ApiFailure {
  const error = parseApiError(text);
  if (status === 401) {
    // The editor would answer a 401 by asking its own user to log in.
    return new ApiFailure(502, "UNAUTHORIZED", TOKEN_REFUSED);
  }
  if (error === undefined || status < 400) {
    return status >= 500 ? unreachable(`the sidecar answered with status ${status}`) : notASidecar();
  }
  const message = redact(error.message, token);
  if (error.code === "FORBIDDEN") {
    const help = "the token of the redflow-runtime needs the scope `run`: `redflow token add NAME --scope run,deploy`";
    return new ApiFailure(403, error.code, `${message} (${help})`);
  }
  return new ApiFailure(status, redact(error.code, token), message);
}

function describeState(state: ConnectionState): string {
  switch (state.is) {
    case "connecting":
      return "it is connecting";
    case "connected":
      return "its address is not known yet";
    case "offline":
      return state.reason;
    case "refused":
      return `${state.message} (${state.code})`;
  }
}
