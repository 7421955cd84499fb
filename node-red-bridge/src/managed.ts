// A sidecar that this module starts itself: keeps it running with growing pauses, learns where it listens, keeps its
// last log lines, and stops it. The token is made here for each process and is told to nobody but the sidecar.

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mayLookFor, startProblem } from "./binary";
import type { Target } from "./target";

/** What to start. */
export interface ManagedSettings {
  binary: string;
  dataDir: string;
}

/** Pauses in milliseconds. */
export interface ManagedTiming {
  /** The first pause before it is started again; doubles with every end that came soon after the start. */
  backoffMs: number;
  backoffMaxMs: number;
  /** Who ran that long is well: the pauses begin anew. */
  wellMs: number;
  /** How long it may take to stop before it is killed. */
  stopMs: number;
}

/** What is used unless a test says otherwise. */
export const MANAGED_TIMING: ManagedTiming = { backoffMs: 1_000, backoffMaxMs: 30_000, wellMs: 60_000, stopMs: 15_000 };

/** Log lines that are kept, and characters of each. */
const LOG_LINES = 200;
const LINE_LENGTH = 2_000;

/** The line that says where it listens. */
const LISTENING = /^redflow \S+ listening on (http:\/\/\S+)/;

/** Who is told. */
export interface ManagedListener {
  /** It listens. */
  up(target: Target): void;
  /** It does not run, and why. */
  down(reason: string): void;
  /** It cannot be started at all. */
  missing(message: string): void;
  /** A line of its log. */
  line(text: string): void;
}

/** One sidecar. */
export class Managed {
  private child: ChildProcess | undefined;
  private retry: NodeJS.Timeout | undefined;
  private soonEnds = 0;
  private stopped = false;
  private readonly lines: string[] = [];
  private readonly kill = (): void => void this.child?.kill("SIGTERM");

  constructor(
    private readonly settings: ManagedSettings,
    private readonly listener: ManagedListener,
    private readonly timing: ManagedTiming = MANAGED_TIMING,
  ) {}

  /** Starts it, once what holds its data has ended. */
  async start(after: Promise<void> = Promise.resolve()): Promise<void> {
    process.on("exit", this.kill);
    await after;
    if (!this.stopped) {
      this.run();
    }
  }

  /** Stops it for good; ends when it has. */
  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.retry);
    const { child } = this;
    if (child === undefined) {
      process.off("exit", this.kill);
      return;
    }
    await new Promise<void>((resolve) => {
      const killer = setTimeout(() => child.kill("SIGKILL"), this.timing.stopMs);
      child.once("exit", () => {
        clearTimeout(killer);
        resolve();
      });
      child.kill("SIGTERM");
    });
    process.off("exit", this.kill);
  }

  /** The last lines of its log. */
  log(): string[] {
    return [...this.lines];
  }

  private run(): void {
    const token = randomBytes(32).toString("hex");
    const args = ["serve", "--listen", "127.0.0.1:0", "--data", this.settings.dataDir, "--stop-with-stdin"];
    const began = Date.now();
    if (!mayLookFor(this.settings.binary)) {
      this.listener.missing(startProblem(this.settings.binary, { code: "ENOENT" }));
      return;
    }
    let child: ChildProcess;
    try {
      child = spawn(this.settings.binary, args, {
        env: { ...process.env, REDFLOW_TOKEN: token },
        // Its stdin is never written. It ends when Node-RED does, however that comes about, and then the sidecar stops.
        stdio: ["pipe", "ignore", "pipe"],
      });
    } catch (error) {
      // Names that no system call takes. They stay so until somebody changes them.
      this.listener.missing(startProblem(this.settings.binary, error as NodeJS.ErrnoException));
      return;
    }
    this.child = child;
    child.stdin?.on("error", () => undefined);
    let missing: string | undefined;
    child.once("error", (error: NodeJS.ErrnoException) => {
      missing = startProblem(this.settings.binary, error);
      // Without a process there is no exit.
      if (child.pid === undefined) {
        this.ended(child, began, missing, missing);
      }
    });
    child.once("exit", (code, signal) => {
      this.ended(child, began, missing, `it ended with ${signal ?? `code ${code}`}`);
    });
    const cut = cutLines((line) => this.heard(line, token));
    child.stderr?.setEncoding("utf8").on("data", cut).on("error", () => undefined);
  }

  private heard(line: string, token: string): void {
    const url = LISTENING.exec(line)?.[1];
    const text = line.replaceAll(token, "…");
    this.lines.push(text);
    if (this.lines.length > LOG_LINES) {
      this.lines.shift();
    }
    this.listener.line(text);
    if (url !== undefined && !this.stopped) {
      this.listener.up({ url, token });
    }
  }

  private ended(child: ChildProcess, began: number, missing: string | undefined, why: string): void {
    if (this.child !== child) {
      return;
    }
    this.child = undefined;
    if (this.stopped) {
      return;
    }
    this.soonEnds = Date.now() - began >= this.timing.wellMs ? 1 : this.soonEnds + 1;
    if (missing === undefined) {
      const said = this.lines.findLast((line) => line.startsWith("error"));
      this.listener.down(said === undefined ? why : `${why}: ${said}`);
    } else {
      this.listener.missing(missing);
    }
    const { backoffMs, backoffMaxMs } = this.timing;
    const pause = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(this.soonEnds - 1, 20));
    this.retry = setTimeout(() => this.run(), pause);
  }
}

/** Makes lines of pieces of text; of a line that is too long only the beginning is kept. */
function cutLines(line: (text: string) => void): (piece: string) => void {
  let begun = "";
  return (piece) => {
    const parts = piece.split("\n");
    parts.forEach((part, at) => {
      begun = (begun + part.slice(0, LINE_LENGTH)).slice(0, LINE_LENGTH);
      if (at < parts.length - 1) {
        line(begun.replace(/\r$/, ""));
        begun = "";
      }
    });
  };
}
