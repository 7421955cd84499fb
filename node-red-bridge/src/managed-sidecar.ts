// A sidecar process that this module starts: restarts it with growing delays, reads its address from its log, keeps its
// last log lines, and stops it. Creates a new token for each process, which only the sidecar receives.

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { canSearchPath, startProblem } from "./binary";
import { type Sentence, sentence } from "./sentence";
import type { Target } from "./target";

export interface ManagedSettings {
  binary: string;
  dataDir: string;
  /** The private hosts that tools may call: `HOST:PORT`, separated by commas. */
  allowPrivate: string;
}

/** Delays in milliseconds. */
export interface ManagedTiming {
  /** The first delay before a restart; doubles with every exit soon after a start. */
  backoffMs: number;
  backoffMaxMs: number;
  /** After this long a process counts as healthy, and the delays start over. */
  healthyMs: number;
  /** How long the process may take to stop before it is killed. */
  stopMs: number;
}

export const MANAGED_TIMING: ManagedTiming = { backoffMs: 1_000, backoffMaxMs: 30_000, healthyMs: 60_000, stopMs: 15_000 };

/** How many log lines are kept, and characters of each. */
const LOG_LINES = 200;
const LINE_LENGTH = 2_000;

/** The log line with the address. */
const LISTENING = /^redflow \S+ listening on (http:\/\/\S+)/;

/** Receives the events of the process. */
export interface ManagedListener {
  /** The sidecar listens at this address. */
  onListening(target: Target): void;
  /** The process has exited. */
  onExit(reason: Sentence): void;
  /** The program cannot be started. */
  onUnavailable(problem: Sentence): void;
  onLogLine(text: string): void;
}

/** One sidecar process and its restarts. */
export class ManagedSidecar {
  private child: ChildProcess | undefined;
  private retry: NodeJS.Timeout | undefined;
  private shortRuns = 0;
  private stopped = false;
  private readonly logLines: string[] = [];
  private readonly kill = (): void => void this.child?.kill("SIGTERM");

  constructor(
    private readonly settings: ManagedSettings,
    private readonly listener: ManagedListener,
    private readonly timing: ManagedTiming = MANAGED_TIMING,
  ) {}

  /** Starts the process when `after` has resolved: the process before must release the data directory. */
  async start(after: Promise<void> = Promise.resolve()): Promise<void> {
    process.on("exit", this.kill);
    await after;
    if (!this.stopped) {
      this.run();
    }
  }

  /** Stops the process for good. Resolves when it has exited. */
  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.retry);
    const { child } = this;
    if (child === undefined) {
      process.off("exit", this.kill);
      return;
    }
    await new Promise<void>((resolve) => {
      const killTimer = setTimeout(() => child.kill("SIGKILL"), this.timing.stopMs);
      child.once("exit", () => {
        clearTimeout(killTimer);
        resolve();
      });
      child.kill("SIGTERM");
    });
    process.off("exit", this.kill);
  }

  /** The last lines of the log. */
  log(): string[] {
    return [...this.logLines];
  }

  private run(): void {
    const token = randomBytes(32).toString("hex");
    const hosts = this.settings.allowPrivate.split(",").flatMap((host) => host.trim() || []);
    const args = ["serve", "--listen", "127.0.0.1:0", "--data", this.settings.dataDir, "--stop-with-stdin"];
    // With `=`, because a host that begins with `-` must not become another option.
    args.push(...hosts.map((host) => `--allow-private=${host}`));
    const startedAt = Date.now();
    if (!canSearchPath(this.settings.binary)) {
      this.listener.onUnavailable(startProblem(this.settings.binary, { code: "ENOENT" }));
      return;
    }
    let child: ChildProcess;
    try {
      child = spawn(this.settings.binary, args, {
        env: { ...process.env, REDFLOW_TOKEN: token },
        // Nothing is written to its stdin. The stdin closes when Node-RED ends in any way, and then the sidecar stops.
        stdio: ["pipe", "ignore", "pipe"],
      });
    } catch (error) {
      // The name is invalid for the system, so a retry cannot succeed.
      this.listener.onUnavailable(startProblem(this.settings.binary, error as NodeJS.ErrnoException));
      return;
    }
    this.child = child;
    child.stdin?.on("error", () => undefined);
    let problem: Sentence | undefined;
    child.once("error", (error: NodeJS.ErrnoException) => {
      problem = startProblem(this.settings.binary, error);
      // A program that did not start emits no exit.
      if (child.pid === undefined) {
        this.onExit(child, startedAt, problem, "");
      }
    });
    child.once("exit", (code, signal) => {
      this.onExit(child, startedAt, problem, signal ?? `code ${code}`);
    });
    const splitLines = lineSplitter((line) => this.readLine(line, token));
    child.stderr?.setEncoding("utf8").on("data", splitLines).on("error", () => undefined);
  }

  private readLine(line: string, token: string): void {
    const url = LISTENING.exec(line)?.[1];
    const text = line.replaceAll(token, "…");
    this.logLines.push(text);
    if (this.logLines.length > LOG_LINES) {
      this.logLines.shift();
    }
    this.listener.onLogLine(text);
    if (url !== undefined && !this.stopped) {
      this.listener.onListening({ url, token });
    }
  }

  private onExit(child: ChildProcess, startedAt: number, problem: Sentence | undefined, how: string): void {
    if (this.child !== child) {
      return;
    }
    this.child = undefined;
    if (this.stopped) {
      return;
    }
    this.shortRuns = Date.now() - startedAt >= this.timing.healthyMs ? 1 : this.shortRuns + 1;
    if (problem === undefined) {
      const error = this.logLines.findLast((line) => line.startsWith("error"));
      const values = { how: { text: how }, error: { text: error ?? "" } };
      this.listener.onExit(sentence(error === undefined ? "offline_ended" : "offline_ended_error", values));
    } else {
      this.listener.onUnavailable(problem);
    }
    const { backoffMs, backoffMaxMs } = this.timing;
    const delay = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(this.shortRuns - 1, 20));
    this.retry = setTimeout(() => this.run(), delay);
  }
}

/** Splits chunks of text into lines, and cuts long lines. */
function lineSplitter(onLine: (text: string) => void): (chunk: string) => void {
  let partial = "";
  return (chunk) => {
    const parts = chunk.split("\n");
    parts.forEach((part, at) => {
      partial = (partial + part.slice(0, LINE_LENGTH)).slice(0, LINE_LENGTH);
      if (at < parts.length - 1) {
        onLine(partial.replace(/\r$/, ""));
        partial = "";
      }
    });
  };
}
