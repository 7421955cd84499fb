// Notifies the user of runs that wait for an answer, with a button that opens the run in the sidebar. Owns which notices are
// open. A notice closes when its run goes on. A notice that the user closed does not come back in this tab of the browser.

import type { RunId, RunSummary } from "@redflow/bindings";
import { MAX_ROW_CHARS, button, element, untrusted } from "./dom.mjs";
import { fillSentence } from "./formats.mjs";
import { type RunsUpdate, type RuntimesUpdate, type Watch, watchRuns, watchRuntimes } from "./run-watch.mjs";
import { showRunInSidebar } from "./sidebar.mjs";
import { agentName } from "./sidebar-runs.mjs";
import { text } from "./text.mjs";

/** How many notices of one runtime are open at once. The next ones come when a run goes on. */
export const MAX_NOTICES = 3;

/** How many closed notices are remembered, the newest. */
export const MAX_CLOSED = 100;

/** How many waiting runs of one runtime are known, the newest. */
const MAX_RUNS = 50;

/** The shortest time between two requests: agents change their status often, but people answer slowly. */
const MIN_GAP_MS = 2_000;

/** Where the closed notices are stored. */
const CLOSED_KEY = "redflow-closed-notices";

interface Notice {
  close(): void;
}

/** The environment of the notices. */
export interface NoticeEnvironment {
  /** Opens a notice. `onClose` is called when the user closes it. */
  open(runtime: string, run: RunSummary, onClose: () => void): Notice;
  loadClosed(): RunId[];
  saveClosed(runs: RunId[]): void;
}

/** The notices of one runtime. */
export class WaitingNotices {
  private readonly notices = new Map<RunId, Notice>();

  constructor(
    private readonly runtime: string,
    private readonly env: NoticeEnvironment,
  ) {}

  /** Shows the notices of these runs, and closes all others. */
  show(runs: readonly RunSummary[]): void {
    const closed = new Set(this.env.loadClosed());
    const waiting = runs.filter(({ status, runId }) => status === "waiting" && !closed.has(runId));
    for (const [run, notice] of [...this.notices]) {
      if (!waiting.some(({ runId }) => runId === run)) {
        notice.close();
        this.notices.delete(run);
      }
    }
    for (const run of waiting) {
      if (this.notices.size < MAX_NOTICES && !this.notices.has(run.runId)) {
        this.notices.set(run.runId, this.env.open(this.runtime, run, () => this.onClose(run.runId)));
      }
    }
  }

  private onClose(run: RunId): void {
    this.notices.delete(run);
    this.env.saveClosed([...this.env.loadClosed().filter((one) => one !== run), run].slice(-MAX_CLOSED));
  }
}

/** Starts the notices of all connected runtimes. Called once, when the editor is loaded. */
export function startWaitingNotices(): void {
  const watches = new Map<string, { watch: Watch; notices: WaitingNotices }>();
  watchRuntimes(({ list }: RuntimesUpdate) => {
    const connected = (list?.runtimes ?? []).filter(({ state }) => state.is === "connected").map(({ id }) => id);
    for (const [runtime, { watch, notices }] of [...watches]) {
      if (!connected.includes(runtime)) {
        watch.stop();
        notices.show([]);
        watches.delete(runtime);
      }
    }
    for (const runtime of connected.filter((id) => !watches.has(id))) {
      const notices = new WaitingNotices(runtime, page);
      const selection = { runtime, status: "waiting", limit: MAX_RUNS, minGapMs: MIN_GAP_MS };
      const watch = watchRuns(selection, ({ runs, problem }: RunsUpdate) => problem === undefined && notices.show(runs));
      watches.set(runtime, { watch, notices });
    }
  });
}

/** The real environment: Node-RED's notifications. */
export const page: NoticeEnvironment = {
  open(runtime, run, onClose) {
    const name = (value: string): HTMLElement => untrusted("b", value, { maxChars: MAX_ROW_CHARS });
    const sentence = element("p");
    sentence.append(fillSentence("runs.notice.waits", { agent: name(agentName(run)), tool: name(run.waiting?.tool ?? "") }));
    const close = (): void => {
      notice.close();
      onClose();
    };
    const show = (): void => {
      close();
      showRunInSidebar(runtime, run.runId);
    };
    // Node-RED 5 would focus its own buttons, and a user who types would press them.
    const later = button(text("runs.notice.close"), close, { class: "" });
    const answer = button(text("runs.notice.answer"), show, { class: "primary" });
    const content = element("div", {}, sentence, element("div", { class: "ui-dialog-buttonset" }, later, answer));
    const notice = RED.notify(content, { type: "warning", fixed: true, id: `redflow-waits-${run.runId}` });
    return notice;
  },
  loadClosed() {
    try {
      const stored: unknown = JSON.parse(sessionStorage.getItem(CLOSED_KEY) ?? "[]");
      return Array.isArray(stored) ? stored.filter((run) => typeof run === "string") : [];
    } catch {
      return [];
    }
  },
  saveClosed(runs) {
    try {
      sessionStorage.setItem(CLOSED_KEY, JSON.stringify(runs));
    } catch {
      // The browser stores nothing: then the notice may come back.
    }
  },
};
