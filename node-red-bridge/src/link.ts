// The socket to the sidecar: opens it, keeps it alive, and opens it again with growing pauses. Owns the socket and
// the state people see; never looks into messages. The token goes into the handshake and nowhere else, whatever is said.

import { WebSocket } from "ws";
import type { ClientRequest, IncomingMessage } from "node:http";
import { PROTOCOL } from "./conversation";
import type { Closing, Conversation } from "./conversation";
import { addressAt, shown } from "./target";
import type { Target } from "./target";

/** How things stand with the sidecar. */
export type LinkState =
  | { is: "connecting" }
  | { is: "connected"; version: string }
  | { is: "away"; reason: string }
  | { is: "refused"; code: string; message: string };

/** Pauses in milliseconds. */
export interface Timing {
  /** The most the first pause may take; doubles with every failure in a row. */
  backoffMs: number;
  /** The most any pause may take, and how long one takes after a refusal. */
  backoffMaxMs: number;
  /** How often the other side is asked whether it is there, and how long it may take to answer. */
  heartbeatMs: number;
}

/** What is used unless a test says otherwise. */
export const TIMING: Timing = { backoffMs: 250, backoffMaxMs: 10_000, heartbeatMs: 10_000 };

/** The longest message of the sidecar that is read. */
const MAX_INCOMING_BYTES = 64 * 1024 * 1024;

/** How much of a refusal's body is read. */
const MAX_REFUSAL_BYTES = 64 * 1024;

/** Codes that a person has to do something about: the sidecar will say the same again. */
const REFUSALS = new Set([
  "UNAUTHORIZED",
  "FORBIDDEN",
  "PROTOCOL_MISMATCH",
  "INSTANCE_TAKEN",
  "TOO_MANY_INSTANCES",
  "MESSAGE_INVALID",
]);

/** A socket that is kept open. */
export class Link {
  target: Target | undefined;
  private socket: WebSocket | undefined;
  private retry: NodeJS.Timeout | undefined;
  private heartbeat: NodeJS.Timeout | undefined;
  private failures = 0;
  private alive = false;
  /** Why the socket that is closing closes, if that is known better than from the close itself. */
  private cause: LinkState | undefined;
  state: LinkState = { is: "connecting" };

  constructor(
    private readonly conversation: Conversation,
    private readonly changed: (state: LinkState) => void,
    private readonly timing: Timing = TIMING,
  ) {}

  /** Goes to a sidecar, and stays with it. */
  start(target: Target): void {
    this.stop();
    this.target = target;
    this.failures = 0;
    this.set({ is: "connecting" });
    this.connect();
  }

  /** Closes the socket and opens no other one. */
  stop(): void {
    clearTimeout(this.retry);
    this.leave();
  }

  /** Shows why there is no sidecar to go to. */
  say(state: LinkState): void {
    this.stop();
    this.set(state);
  }

  /** The sidecar said `welcome`. */
  welcomed(version: string): void {
    this.failures = 0;
    this.set({ is: "connected", version });
  }

  /** The sidecar said why it closes. */
  closing({ code, message }: Closing): void {
    this.cause = REFUSALS.has(code) ? { is: "refused", code, message } : { is: "away", reason: message };
  }

  private connect(): void {
    const address = this.target === undefined ? undefined : bridgeAddress(this.target.url);
    if (this.target === undefined || address === undefined) {
      this.say({ is: "refused", code: "CONFIG_INVALID", message: "the URL of the runtime is not http:// or https://" });
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
      // The one thing left that it can dislike is the token. What it says about it may quote it.
      const message = "the token has characters that no HTTP header can hold";
      this.say({ is: "refused", code: "CONFIG_INVALID", message });
      return;
    }
    this.socket = socket;
    this.listen(socket);
  }

  private listen(socket: WebSocket): void {
    const current = (act: () => void) => () => {
      if (this.socket === socket) {
        act();
      }
    };
    socket.on("open", current(() => this.opened(socket)));
    socket.on("message", (data, binary) => {
      if (this.socket === socket) {
        this.alive = true;
        this.conversation.heard(binary ? "" : String(data));
      }
    });
    socket.on("pong", current(() => (this.alive = true)));
    socket.on("unexpected-response", (request, response) => {
      if (this.socket === socket) {
        this.refused(socket, request, response);
      }
    });
    socket.on("error", (error) => {
      if (this.socket === socket) {
        this.cause ??= { is: "away", reason: wordsOfError(error) };
      }
    });
    socket.on("close", (code, reason) => {
      if (this.socket === socket) {
        this.closed(this.cause ?? { is: "away", reason: closeReason(code, String(reason)) });
      }
    });
  }

  private opened(socket: WebSocket): void {
    this.alive = true;
    this.heartbeat = setInterval(() => {
      if (!this.alive) {
        this.cause ??= { is: "away", reason: "the sidecar does not answer" };
        socket.terminate();
        return;
      }
      this.alive = false;
      socket.ping();
    }, this.timing.heartbeatMs);
    this.conversation.opened({
      // A Buffer goes out with its head in one write; a text would take two.
      send: (text) => socket.send(Buffer.from(text), { binary: false }, () => undefined),
      drop: (reason) => {
        this.cause ??= { is: "away", reason };
        socket.close(1002);
        // Who does not keep to the protocol may not keep to closing either.
        setTimeout(() => socket.terminate(), this.timing.heartbeatMs).unref();
      },
    });
  }

  /** The sidecar, or something before it, answered the handshake with an error. */
  private refused(socket: WebSocket, request: ClientRequest, response: IncomingMessage): void {
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
        this.closed(refusal(status, body));
      }
    });
  }

  private closed(state: LinkState): void {
    this.leave();
    this.set(state);
    this.failures += 1;
    const { backoffMs, backoffMaxMs } = this.timing;
    const most = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(this.failures - 1, 30));
    // Modules that lost the same sidecar do not come back all at once.
    const pause = state.is === "refused" ? backoffMaxMs : most * (0.5 + Math.random() / 2);
    this.retry = setTimeout(() => this.connect(), pause);
  }

  private leave(): void {
    clearInterval(this.heartbeat);
    const { socket } = this;
    this.socket = undefined;
    this.conversation.lost();
    if (socket !== undefined && socket.readyState !== WebSocket.CLOSED) {
      // Without a listener an error of a socket we have left would end Node-RED.
      socket.on("error", () => undefined);
      socket.close(1000);
      setTimeout(() => socket.terminate(), this.timing.heartbeatMs).unref();
    }
  }

  private set(state: LinkState): void {
    this.state = readable(state, this.target?.token ?? "");
    this.changed(this.state);
  }
}

/** The address of `ws /bridge` at a sidecar. */
export function bridgeAddress(url: string): string | undefined {
  const address = addressAt(url, "/bridge");
  if (address !== undefined) {
    address.protocol = address.protocol === "http:" ? "ws:" : "wss:";
  }
  return address?.href;
}

/** A state as people may see it: most of its words are those of whoever listens at the address. */
function readable(state: LinkState, token: string): LinkState {
  switch (state.is) {
    case "connecting":
      return state;
    case "connected":
      return { ...state, version: shown(state.version, token) };
    case "away":
      return { ...state, reason: shown(state.reason, token) };
    case "refused":
      return { ...state, code: shown(state.code, token), message: shown(state.message, token) };
  }
}

function refusal(status: number, body: string): LinkState {
  const said = apiError(body);
  if (status === 401 && (said === undefined || said.code === "UNAUTHORIZED")) {
    const message = "the sidecar does not take this token; put what `redflow token` prints into the redflow-runtime";
    return { is: "refused", code: "UNAUTHORIZED", message };
  }
  if (said !== undefined && (status === 401 || status === 403 || REFUSALS.has(said.code))) {
    return { is: "refused", ...said };
  }
  if (status === 403) {
    return { is: "refused", code: "FORBIDDEN", message: "the sidecar does not let this Node-RED in" };
  }
  if (status === 404 || status === 426 || (status >= 200 && status < 400)) {
    const message = "what listens at this URL has no bridge: it is no sidecar, or an older one";
    return { is: "refused", code: "PROTOCOL_MISMATCH", message };
  }
  return { is: "away", reason: said?.message ?? `the sidecar answered with status ${status}` };
}

/** The sidecar's own words, if the body has them. */
export function apiError(body: string): { code: string; message: string } | undefined {
  try {
    const parsed = JSON.parse(body) as { code?: unknown; message?: unknown } | null;
    const { code, message } = parsed ?? {};
    return typeof code === "string" && typeof message === "string" ? { code, message } : undefined;
  } catch {
    return undefined;
  }
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "there is no host of this name",
  EAI_AGAIN: "the name of the host cannot be looked up",
  ECONNRESET: "the connection was cut",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ETIMEDOUT: "the host does not answer",
};

/** A code of the system in words, if they are known. */
export function reasonOf(code: string | undefined): string | undefined {
  return code !== undefined && Object.hasOwn(REASONS, code) ? REASONS[code] : undefined;
}

function wordsOfError({ code, message }: Error & { code?: string }): string {
  return reasonOf(code) ?? (message === "" ? (code ?? "the connection failed") : message);
}

function closeReason(code: number, reason: string): string {
  if (reason !== "") {
    return reason;
  }
  return code === 1006 ? "the connection was cut" : `the sidecar closed the connection (${code})`;
}
