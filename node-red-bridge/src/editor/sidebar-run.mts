// The view of one run in the sidebar: its timeline, and the forms that cancel it or resolve its call.

import type { RunStatus, RunSummary, WaitingCall } from "@redflow/bindings";
import { type MountedTimeline, mountCancelForm, mountResolveForm, mountTimeline } from "../timeline/index.js";
import { adminApi, isAllowed } from "./admin-client.mjs";
import { MAX_ROW_CHARS, button, element, untrusted } from "./dom.mjs";
import { CachedElement, KeyedList, type ListPart } from "./keyed-list.mjs";
import { type RunUpdate, type Watch, problemOf, watchRun } from "./run-watch.mjs";
import { formatTime } from "./formats.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { agentName, isInEditor, revealAgent, statusText } from "./sidebar-runs.mjs";
import { text } from "./text.mjs";
import { textsOf, timelineEnvironment } from "./timeline-environment.mjs";
import { type RunTimeline, isWaiting, waitingCalls } from "@redflow/bindings";

/** The statuses in which a run can be cancelled. */
const CANCELLABLE: readonly RunStatus[] = ["running", "interrupted", "waiting"];

/** The reason in the error of a cancelled run, which is always English. */
const CANCEL_REASON = "by hand, in the Node-RED editor";

/** The delay before the summary is requested again, if it was older than the events. */
const RETRY_MS = 2_000;

export class RunPanel {
  readonly root = element("div", { class: "redflow-run-panel" });
  private readonly back: HTMLButtonElement;
  private readonly head = new CachedElement(element("div", { class: "redflow-run-head" }));
  private readonly problem = new CachedElement(element("div", { attributes: { role: "alert" } }));
  private readonly questions: KeyedList<WaitingCall>;
  private readonly actions = element("div");
  private readonly timeline: MountedTimeline;
  private readonly watch: Watch;
  private cancel: HTMLElement | undefined;
  /** The number of the last event when the summary was last requested. */
  private requestedAt = 0;
  private isRequesting = false;
  private stopped = false;

  constructor(
    private readonly runtime: string,
    private run: RunSummary,
    onBack: () => void,
  ) {
    this.back = button(`← ${text("runs.run.back")}`, onBack);
    const timelineHost = element("div");
    this.timeline = mountTimeline(timelineHost, timelineEnvironment, textsOf(runtime, run.runId));
    this.questions = new KeyedList(element("div"), ({ callId }) => callId, (call) => this.questionForm(call));
    const bar = element("div", { class: "redflow-run-bar" }, this.back);
    // The actions come first, because in Node-RED 5 the sidebar has only half the height.
    this.root.append(bar, this.head.root, this.actions, this.questions.root, this.problem.root, timelineHost, hints(run.runId));
    this.root.addEventListener("keydown", (event) => {
      const isTyping = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      if (event.key === "Escape" && !isTyping) {
        event.stopPropagation();
        onBack();
      }
    });
    this.draw(undefined);
    const selection = { runtime, run: run.runId, agent: run.agent.nodeId };
    this.watch = watchRun(selection, (update) => this.show(update));
  }

  setVisible(visible: boolean): void {
    this.watch.setVisible(visible);
  }

  focus(): void {
    this.back.focus();
    this.questions.root.querySelector("form")?.scrollIntoView({ block: "nearest" });
  }

  destroy(): void {
    this.stopped = true;
    this.watch.stop();
    this.timeline.destroy();
    this.root.remove();
  }

  private show({ timeline, live, problem }: RunUpdate): void {
    this.problem.set(problem, () => problem && problemLine(problem));
    if (timeline.seq > 0) {
      this.timeline.show(timeline, Date.now(), live);
    }
    this.draw(timeline);
    if (!this.isRequesting && isOutdated(this.run, timeline, this.requestedAt)) {
      void this.requestSummary(timeline);
    }
  }

  private async requestSummary(timeline: RunTimeline): Promise<void> {
    this.isRequesting = true;
    this.requestedAt = timeline.seq;
    try {
      const { summary } = await adminApi.run(this.runtime, this.run.runId);
      if (!this.stopped) {
        this.run = summary;
        this.draw(timeline);
      }
    } catch (error) {
      const problem = problemOf(error);
      this.problem.set(problem, () => problemLine(problem));
    }
    this.isRequesting = false;
    if (!this.stopped && isOutdated(this.run, timeline, this.requestedAt)) {
      // The summary is older than the events, or the request failed.
      setTimeout(() => this.watch.refresh(), RETRY_MS);
    }
  }

  /** Shows a new summary after an action of the user. */
  private setRun(run: RunSummary): void {
    if (!this.stopped) {
      this.run = run;
      this.draw(undefined);
      this.watch.refresh();
      if (document.activeElement === document.body) {
        // The pressed button was removed.
        this.back.focus();
      }
    }
  }

  private draw(timeline: RunTimeline | undefined): void {
    const { run } = this;
    const status = statusOf(run, timeline);
    const code = timeline?.end?.error?.code ?? run.code;
    this.head.set([run.name, status, code, isInEditor(run)], () => headLines(run, status, code));
    this.questions.show(openQuestions(run, status, timeline));
    // The question already shows that the user may only read.
    const canCancel = CANCELLABLE.includes(status) && (status !== "waiting" || isAllowed("redflow.write"));
    if (canCancel && this.cancel === undefined) {
      this.cancel = mountCancelForm({
        environment: timelineEnvironment,
        forbidden: forbidden(),
        cancel: async () => this.setRun(await adminApi.cancel(this.runtime, run.runId, { reason: CANCEL_REASON })),
      });
      this.actions.append(this.cancel);
    } else if (!canCancel) {
      this.cancel?.remove();
      this.cancel = undefined;
    }
  }

  private questionForm(call: WaitingCall): ListPart<WaitingCall> {
    const root = mountResolveForm({
      environment: timelineEnvironment,
      call,
      forbidden: forbidden(),
      resolve: async (request) => this.setRun(await adminApi.resolve(this.runtime, this.run.runId, request)),
    });
    return { root, show: () => undefined };
  }
}

/** Why the user may only read; undefined if more is allowed. */
function forbidden(): string | undefined {
  return isAllowed("redflow.write") ? undefined : text("runs.problem.readOnly");
}

/** The questions of a run that a person can answer now: those of its summary that its events have not answered. */
export function openQuestions(run: RunSummary, status: RunStatus, timeline: RunTimeline | undefined): WaitingCall[] {
  const asked = status === "waiting" ? (run.questions ?? (run.waiting === undefined ? [] : [run.waiting])) : [];
  const open = timeline === undefined ? [] : waitingCalls(timeline).map(({ callId }) => callId);
  return asked.filter(({ callId }) => open.length === 0 || open.includes(callId));
}

/** Whether the events are newer than the summary, and the summary was not requested since. */
export function isOutdated(run: RunSummary, timeline: RunTimeline, requestedAt: number): boolean {
  const asked = (run.questions ?? (run.waiting === undefined ? [] : [run.waiting])).map(({ callId }) => callId);
  const hasResumed = run.status === "interrupted" && timeline.seq > requestedAt;
  return hasResumed || (isWaiting(timeline) && waitingCalls(timeline).some(({ callId }) => !asked.includes(callId)));
}

/** The status by the events, which are newer than the summary. */
function statusOf(run: RunSummary, timeline: RunTimeline | undefined): RunStatus {
  const end = timeline?.end;
  if (end !== undefined) {
    return end.error !== undefined ? "failed" : end.completed ? "completed" : "stopped";
  }
  if (timeline === undefined || timeline.seq === 0) {
    return run.status;
  }
  return isWaiting(timeline) ? "waiting" : run.status === "waiting" ? "running" : run.status;
}

function headLines(run: RunSummary, status: RunStatus, code: string | undefined): Node {
  const name = untrusted("span", agentName(run), { maxChars: MAX_ROW_CHARS });
  const link = { title: text("runs.list.reveal"), class: "redflow-link" };
  const title = isInEditor(run) ? button("", () => revealAgent(run), link) : element("span");
  title.append(name);
  const dot = element("span", { class: `redflow-dot redflow-dot-${status}` });
  const more = element("span", { class: "redflow-run-status", text: statusText(status) });
  const codeText = code === undefined ? undefined : untrusted("code", code, { class: "redflow-code", maxChars: MAX_ROW_CHARS });
  const when = element("span", { class: "redflow-hint", text: text("runs.run.started", { at: formatTime(run.startedAt) }) });
  return element("div", {}, element("h3", {}, dot, title), element("div", { class: "redflow-run-facts" }, more, codeText, when));
}

/** The id of the run and the command that shows it. */
function hints(run: string): Node {
  const id = untrusted("code", run, { class: "redflow-run-id", maxChars: MAX_ROW_CHARS });
  const copy = button(text("runs.run.copy"), () => RED.clipboard.copyText(run, $(copy), text("runs.run.copied")));
  const label = element("span", { class: "redflow-label", text: text("runs.run.id") });
  const command = untrusted("pre", `redflow runs show ${run}`, { class: "redflow-preview" });
  const more = element("details", { class: "redflow-details" }, element("summary", { text: text("runs.run.cli") }), command);
  return element("div", { class: "redflow-run-hints" }, element("div", {}, label, id, copy), more);
}
