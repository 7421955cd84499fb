// The WebSocket connection to the sidecar: opens it, checks that it is alive, and reconnects with growing delays. Owns the
// socket and the state that users see. Never reads messages. Sends the token in the handshake only, and keeps it out of
// every text.

import { WebSocket } from "ws";
import type { ClientRequest, IncomingMessage } from "node:http";
import { PROTOCOL } from "./bridge-session";
import type { Phrase } from "@redflow/bindings";
import type { BridgeSession, Closing } from "./bridge-session";
import { ENGLISH, type Sentence, sentence } from "./sentence";
import { redact, urlAt } from "./target";
import type { Target } from "./target";

/** The state of the connection to a sidecar. */
export type ConnectionState =
  | { is: "connecting" }
  | { is: "connected"; version: string }
  | { is: "offline"; reason: string; phrase?: Phrase | undefined }
  | { is: "refused"; code: string; message: string; phrase?: Phrase | undefined };

/** Delays in milliseconds. */
export interface Timing {
  /** The longest first delay; doubles with every failure in a row. */
  backoffMs: number;
  /** The longest delay of all, and the delay after a refusal. */
  backoffMaxMs: number;
  /** How often the connection sends a ping, and how long the sidecar may take to answer. */
  heartbeatMs: number;
}

export const TIMING: Timing = { backoffMs: 250, backoffMaxMs: 10_000, heartbeatMs: 10_000 };

/** The largest message of the sidecar. */
const MAX_INCOMING_BYTES = 64 * 1024 * 1024;

/** How much of the body of a refusal is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** Codes that only a user can fix: a retry gets the same answer. */
const REFUSAL_CODES = new Set([
  "UNAUTHORIZED",
  "FORBIDDEN",
  "PROTOCOL_MISMATCH",
  "INSTANCE_TAKEN",
  "TOO_MANY_INSTANCES",
  "MESSAGE_INVALID",
]);

/** For a sidecar that answers 401. */
export const TOKEN_REFUSED = ENGLISH.token_refused;

/** A connection that reconnects by itself. */
export class SidecarConnection {
  target: Target | undefined;
  private socket: WebSocket | undefined;
  private retry: NodeJS.Timeout | undefined;
  private heartbeat: NodeJS.Timeout | undefined;
  private failures = 0;
  private alive = false;
  /** The reason of a close, if it is known before the close event. */
  private cause: ConnectionState | undefined;
  state: ConnectionState = { is: "connecting" };

  constructor(
    private readonly session: BridgeSession,
    private readonly onChange: (state: ConnectionState) => void,
    private readonly timing: Timing = TIMING,
  ) {}

  /** Connects to a sidecar, and reconnects until `stop`. */
  start(target: Target): void {
    this.stop();
    this.target = target;
    this.failures = 0;
    this.set({ is: "connecting" });
    this.connect();
  }

  /** Closes the socket and does not reconnect. */
  stop(): void {
    clearTimeout(this.retry);
    this.closeSocket();
  }

  /** Stops, and shows why there is no sidecar to connect to. */
  stopWith(state: ConnectionState): void {
    this.stop();
    this.set(state);
  }

  /** The sidecar has sent `welcome`. */
  onWelcome(version: string): void {
    this.failures = 0;
    this.set({ is: "connected", version });
  }

  /** The sidecar has sent the reason why it closes the socket. */
  onClosing({ code, message }: Closing): void {
    this.cause = REFUSAL_CODES.has(code) ? { is: "refused", code, message } : { is: "offline", reason: message };
  }

  private connect(): void {
    const address = this.target === undefined ? undefined : bridgeAddress(this.target.url);
    if (this.target === undefined || address === undefined) {
      this.stopWith(refusedWith("CONFIG_INVALID", sentence("url_invalid")));
      return;
    }
    this.cause = undefined;
    let socket: WebSocket;
    try {
      socket = new WebSocket(address, PROTOCOL, {
        headers: this.target.token === "" ? {} : { authorization: `Bearer ${this.target.token}` },
        maxPayload: MAX_INCOMING_BYTES,
        handshakeTimeout: this.timing.heartbeatMs,
        perMessageDeflate: false,
        followRedirects: false,
      });
    } catch {
      // Only the token can be invalid here. The error is not shown because it may quote the token.
      this.stopWith(refusedWith("CONFIG_INVALID", sentence("token_invalid")));
      return;
    }
    this.socket = socket;
    this.addListeners(socket);
  }

  private addListeners(socket: WebSocket): void {
    const ifCurrent = (act: () => void) => () => {
      if (this.socket === socket) {
        act();
      }
    };
    socket.on("open", ifCurrent(() => this.onOpen(socket)));
    socket.on("message", (data, binary) => {
      if (this.socket === socket) {
        this.alive = true;
        // ws delivers a text as one Buffer unless `binaryType` is changed.
        this.session.receive(binary ? "" : (data as Buffer).toString("utf8"));
      }
    });
    socket.on("pong", ifCurrent(() => (this.alive = true)));
    socket.on("unexpected-response", (request, response) => {
      if (this.socket === socket) {
        this.onRefusal(socket, request, response);
      }
    });
    socket.on("error", (error) => {
      if (this.socket === socket) {
        this.cause ??= offlineWith(describeError(error));
      }
    });
    socket.on("close", (code, reason) => {
      if (this.socket === socket) {
        this.onClose(this.cause ?? offlineWith(closeReason(code, String(reason))));
      }
    });
  }

  private onOpen(socket: WebSocket): void {
    this.alive = true;
    this.heartbeat = setInterval(() => {
      if (!this.alive) {
        this.cause ??= offlineWith(sentence("offline_sidecar_silent"));
        socket.terminate();
        return;
      }
      this.alive = false;
      socket.ping();
    }, this.timing.heartbeatMs);
    this.session.open({
      // A Buffer is sent with its frame header in one write; a string would take two.
      send: (text) => socket.send(Buffer.from(text), { binary: false }, () => undefined),
      drop: (reason) => {
        this.cause ??= { is: "offline", reason };
        socket.close(1002);
        // A peer that breaks the protocol may not answer the close frame either.
        setTimeout(() => socket.terminate(), this.timing.heartbeatMs).unref();
      },
    });
  }

  /** The sidecar, or a proxy, answered the handshake with an error. */
  private onRefusal(socket: WebSocket, request: ClientRequest, response: IncomingMessage): void {
    const status = response.statusCode ?? 0;
    let body = "";
    response.setEncoding("utf8");
    response.on("data", (part: string) => {
      body += part;
      if (body.length > MAX_REFUSAL_BYTES) {
        response.destroy();
      }
    });
    response.on("error", () => undefined);
    response.on("close", () => {
      if (this.socket === socket) {
        request.destroy();
        this.onClose(refusalState(status, body));
      }
    });
  }

  private onClose(state: ConnectionState): void {
    this.closeSocket();
    this.set(state);
    this.failures += 1;
    const { backoffMs, backoffMaxMs } = this.timing;
    const longest = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(this.failures - 1, 30));
    // Random, so that several Node-REDs that lost the same sidecar do not all reconnect at once.
    const delay = state.is === "refused" ? backoffMaxMs : longest * (0.5 + Math.random() / 2);
    this.retry = setTimeout(() => this.connect(), delay);
  }

  private closeSocket(): void {
    clearInterval(this.heartbeat);
    const { socket } = this;
    this.socket = undefined;
    this.session.disconnect();
    if (socket !== undefined && socket.readyState !== WebSocket.CLOSED) {
      // Without a listener a late error of this socket would end Node-RED.
      socket.on("error", () => undefined);
      socket.close(1000);
      setTimeout(() => socket.terminate(), this.timing.heartbeatMs).unref();
    }
  }

  private set(state: ConnectionState): void {
    this.state = redactState(state, this.target?.token ?? "");
    this.onChange(this.state);
  }
}

/** The URL of `ws /bridge` at a sidecar. */
export function bridgeAddress(url: string): string | undefined {
  const address = urlAt(url, "/bridge");
  if (address !== undefined) {
    address.protocol = address.protocol === "http:" ? "ws:" : "wss:";
  }
  return address?.href;
}

/** The state as users may see it. Most of its texts come from the server at the address, which may not be a sidecar. */
function redactState(state: ConnectionState, token: string): ConnectionState {
  switch (state.is) {
    case "connecting":
      return state;
    case "connected":
      return { ...state, version: redact(state.version, token) };
    case "offline":
      return offlineWith(redactSentence({ text: state.reason, phrase: state.phrase }, token));
    case "refused": {
      const problem = redactSentence({ text: state.message, phrase: state.phrase }, token);
      return refusedWith(redact(state.code, token), problem);
    }
  }
}

/** A sentence as users may see it. The phrase of a text that changes would still have what is removed. */
function redactSentence({ text, phrase }: Sentence, token: string): Sentence {
  const redacted = redact(text, token);
  return redacted === text ? { text, phrase } : { text: redacted };
}

/** The state of a sidecar that does not answer, and why. */
export function offlineWith({ text: reason, phrase }: Sentence): ConnectionState & { is: "offline" } {
  return phrase === undefined ? { is: "offline", reason } : { is: "offline", reason, phrase };
}

/** The state of a sidecar that cannot be used until a user acts. */
export function refusedWith(code: string, { text: message, phrase }: Sentence): ConnectionState & { is: "refused" } {
  return phrase === undefined ? { is: "refused", code, message } : { is: "refused", code, message, phrase };
}

function refusalState(status: number, body: string): ConnectionState {
  const error = parseApiError(body);
  if (status === 401 && (error === undefined || error.code === "UNAUTHORIZED")) {
    return refusedWith("UNAUTHORIZED", sentence("token_refused"));
  }
  if (error !== undefined && (status === 401 || status === 403 || REFUSAL_CODES.has(error.code))) {
    return { is: "refused", ...error };
  }
  if (status === 403) {
    return refusedWith("FORBIDDEN", sentence("instance_refused"));
  }
  if (status === 404 || status === 426 || (status >= 200 && status < 400)) {
    return refusedWith("PROTOCOL_MISMATCH", sentence("no_bridge"));
  }
  return offlineWith(error === undefined ? sentence("offline_status", { status: { text: String(status) } }) : { text: error.message });
}

/** The error in a response of the sidecar; undefined if the body is not such an error. */
export function parseApiError(body: string): { code: string; message: string } | undefined {
  try {
    const parsed = JSON.parse(body) as { code?: unknown; message?: unknown } | null;
    const { code, message } = parsed ?? {};
    return typeof code === "string" && typeof message === "string" ? { code, message } : undefined;
  } catch {
    return undefined;
  }
}

const REASONS: Record<string, keyof typeof ENGLISH> = {
  ECONNREFUSED: "offline_nothing_listens",
  ENOTFOUND: "offline_host_unknown",
  EAI_AGAIN: "offline_lookup_failed",
  ECONNRESET: "offline_cut",
  EHOSTUNREACH: "offline_host_unreachable",
  ENETUNREACH: "offline_network",
  ETIMEDOUT: "offline_host_silent",
};

/** A system error code as a sentence; undefined for unknown codes. */
export function describeSystemError(code: string | undefined): Sentence | undefined {
  const key = code !== undefined && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
  return key === undefined ? undefined : sentence(key);
}

function describeError({ code, message }: Error & { code?: string }): Sentence {
  return describeSystemError(code) ?? { text: message === "" ? (code ?? "the connection failed") : message };
}

function closeReason(code: number, reason: string): Sentence {
  if (reason !== "") {
    return { text: reason };
  }
  return code === 1006 ? sentence("offline_cut") : sentence("offline_closed", { number: { text: String(code) } });
}
