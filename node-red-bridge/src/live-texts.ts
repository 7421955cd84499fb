// The texts that models write now, for the timelines of open editors. Opens one event socket to the sidecar while an editor asks
// for a run, and closes it soon after. Keeps only the newest text of each run, and nothing of a run that no editor shows.

import type { EventsMessage, EventsRequest, ModelDelta, RunId } from "@redflow/bindings";
import { WebSocket } from "ws";
import type { LiveText } from "./admin-api";
import { isRecord } from "./record";
import type { Runtime } from "./runtime";
import type { CurrentSidecar } from "./sidecar-api";
import { urlAt } from "./target";
import type { Target } from "./target";

/** The subprotocol of the event socket. */
const PROTOCOL = "redflow.events.v1";

/** How many runs are followed at the same time; a further one replaces the one that was asked for longest ago. */
const MAX_RUNS = 20;

/** The most characters of a text, its end. */
const MAX_CHARS = 20_000;

/** The largest message of the sidecar. */
const MAX_INCOMING_BYTES = 16 * 1024 * 1024;

/** How long the handshake may take, in milliseconds. */
const HANDSHAKE_MS = 10_000;

/** Delays in milliseconds. */
export interface LiveTiming {
  /** How long a run is followed after an editor has asked for it. */
  followMs: number;
  /** The time before a lost socket is opened again. */
  retryMs: number;
}

const TIMING: LiveTiming = { followMs: 10_000, retryMs: 2_000 };

/** A followed run. */
interface FollowedRun {
  askedAt: number;
  text: LiveText | undefined;
  /** Whether pieces before the next one may be missing: the run was not followed, or the socket was lost. */
  hasGap: boolean;
}

const byRuntime = new WeakMap<Runtime, LiveTexts>();

/** The texts of one sidecar. */
export class LiveTexts {
  private readonly runs = new Map<RunId, FollowedRun>();
  private socket: WebSocket | undefined;
  /** Where the socket was opened. */
  private target: Target | undefined;
  private openedAt = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly current: () => CurrentSidecar,
    private readonly timing: LiveTiming = TIMING,
    private readonly now: () => number = () => performance.now(),
  ) {}

  static forRuntime(runtime: Runtime): LiveTexts {
    const texts = byRuntime.get(runtime) ?? new LiveTexts(() => runtime.sidecar);
    byRuntime.set(runtime, texts);
    return texts;
  }

  /** The text that the model of a run writes now, as far as it is known. Follows the run from now on. */
  follow(run: RunId): LiveText | undefined {
    const known = this.runs.get(run);
    // At the end of the map, whose first run is the one that was asked for longest ago.
    this.runs.delete(run);
    this.runs.set(run, { text: undefined, hasGap: true, ...known, askedAt: this.now() });
    const [oldest] = this.runs.size > MAX_RUNS ? this.runs.keys() : [];
    if (oldest !== undefined) {
      this.runs.delete(oldest);
    }
    const { target } = this.current();
    if (target?.url !== this.target?.url || target?.token !== this.target?.token) {
      // Another sidecar is not the one that was lost, so it is opened at once.
      this.close();
      this.openedAt = Number.NEGATIVE_INFINITY;
    }
    if (this.socket === undefined) {
      this.open();
    } else if (known === undefined) {
      this.subscribe(this.socket);
    }
    this.timer ??= setInterval(() => this.forgetUnasked(), this.timing.followMs).unref();
    return known?.text;
  }

  private forgetUnasked(): void {
    const oldest = this.now() - this.timing.followMs;
    for (const [run, { askedAt }] of this.runs) {
      if (askedAt < oldest) {
        this.runs.delete(run);
      }
    }
    if (this.runs.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      this.close();
    }
  }

  private open(): void {
    const { target, state } = this.current();
    const url = target === undefined ? undefined : urlAt(target.url, "/events");
    if (target === undefined || url === undefined || state.is !== "connected" || this.now() - this.openedAt < this.timing.retryMs) {
      return;
    }
    this.openedAt = this.now();
    this.target = { ...target };
    this.runs.forEach((run) => (run.hasGap = true));
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    let socket: WebSocket;
    try {
      socket = new WebSocket(url, PROTOCOL, {
        headers: target.token === "" ? {} : { authorization: `Bearer ${target.token}` },
        maxPayload: MAX_INCOMING_BYTES,
        handshakeTimeout: HANDSHAKE_MS,
        perMessageDeflate: false,
        followRedirects: false,
      });
    } catch {
      // The token is not valid in a header. The connection of the bridge reports that.
      return;
    }
    this.socket = socket;
    socket.on("open", () => this.subscribe(socket));
    socket.on("message", (data, binary) => this.receive(binary ? "" : (data as Buffer).toString("utf8")));
    // A timeline works without the text, and reports a problem of the sidecar by its other requests.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.socket = this.socket === socket ? undefined : this.socket;
    });
  }

  private close(): void {
    this.socket?.terminate();
    this.socket = undefined;
  }

  private subscribe(socket: WebSocket): void {
    if (socket.readyState === WebSocket.OPEN) {
      const request: EventsRequest = { type: "subscribe", runs: [...this.runs.keys()], deltas: true };
      socket.send(JSON.stringify(request));
    }
  }

  private receive(message: string): void {
    const delta = deltaOf(message);
    const followed = delta === undefined ? undefined : this.runs.get(delta.runId);
    if (delta === undefined || followed === undefined) {
      return;
    }
    const { iteration, attempt, text } = delta;
    const { text: known, hasGap } = followed;
    const before = !hasGap && known?.iteration === iteration && known.attempt === attempt ? known : undefined;
    const whole = (before?.text ?? "") + text;
    const isCut = whole.length > MAX_CHARS || hasGap || before?.isCut === true;
    followed.text = { iteration, attempt, text: whole.slice(-MAX_CHARS), isCut };
    followed.hasGap = false;
  }
}

/** The delta in a message of the sidecar; undefined for other messages. */
function deltaOf(message: string): ModelDelta | undefined {
  try {
    const parsed = JSON.parse(message) as EventsMessage;
    const delta = isRecord(parsed) && parsed.type === "delta" ? parsed.delta : undefined;
    return isRecord(delta) && typeof delta.text === "string" ? delta : undefined;
  } catch {
    return undefined;
  }
}
