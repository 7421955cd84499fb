// One run: what it did so far, and what a person can do about it. Owns the run that is shown and its watch.

import type { RunStatus, RunSummary } from "@redflow/bindings";
import { ask, isAllowed } from "./ask.mjs";
import { SHOWN_IN_ROW, button, element, foreign } from "./dom.mjs";
import { Kept } from "./keyed.mjs";
import { type RunNews, type Watch, problemOf, watchRun } from "./runs-feed.mjs";
import { moment } from "./runs-words.mjs";
import { CancelForm } from "./sidebar-cancel.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { ResolveForm } from "./sidebar-resolve.mjs";
import { agentName, isInEditor, revealAgent, statusWords } from "./sidebar-runs.mjs";
import { text } from "./text.mjs";
import { type TimelineView, timelineView } from "./timeline-view.mjs";
import { type RunTimeline, waitingCall } from "./timeline.mjs";

/** Runs a person may end. */
const NOT_OVER: readonly RunStatus[] = ["running", "interrupted", "waiting"];

/** Until the sidecar is asked again where a run is, if its answer was older than the events. */
const LOOK_AGAIN_MS = 2_000;

export class RunPanel {
  readonly root = element("div", { class: "redflow-run-panel" });
  private readonly back: HTMLButtonElement;
  private readonly head = new Kept(element("div", { class: "redflow-run-head" }));
  private readonly problem = new Kept(element("div", { attributes: { role: "alert" } }));
  private readonly question = element("div");
  private readonly acts = element("div");
  private readonly view: TimelineView;
  private readonly watch: Watch;
  private cancel: CancelForm | undefined;
  private resolve: { callId: string; form: ResolveForm } | undefined;
  /** What the events had told when the sidecar was last asked where the run is. */
  private askedAt = 0;
  private isAsking = false;
  private stopped = false;

  constructor(
    private readonly runtime: string,
    private run: RunSummary,
    leave: () => void,
  ) {
    this.back = button(`← ${text("runs.run.back")}`, leave);
    const story = element("div");
    this.view = timelineView(story);
    const bar = element("div", { class: "redflow-run-bar" }, this.back);
    // What a person can do comes first: in Node-RED 5 the sidebar has half the height.
    this.root.append(bar, this.head.root, this.acts, this.question, this.problem.root, story, hints(run.runId));
    this.root.addEventListener("keydown", (event) => {
      const typing = event.target instanceof HTMLTextAreaElement || event.target instanceof HTMLInputElement;
      if (event.key === "Escape" && !typing) {
        event.stopPropagation();
        leave();
      }
    });
    this.draw(undefined);
    const wish = { runtime, run: run.runId, agent: run.agent.nodeId };
    this.watch = watchRun(wish, (news) => this.show(news));
  }

  visible(seen: boolean): void {
    this.watch.visible(seen);
  }

  focus(): void {
    this.back.focus();
    this.resolve?.form.root.scrollIntoView({ block: "nearest" });
  }

  destroy(): void {
    this.stopped = true;
    this.watch.stop();
    this.view.destroy();
    this.root.remove();
  }

  private show({ timeline, problem }: RunNews): void {
    this.problem.set(problem, () => problem && problemLine(problem));
    if (timeline.seq > 0) {
      this.view.show(timeline, Date.now());
    }
    this.draw(timeline);
    if (!this.isAsking && isBehind(this.run, timeline, this.askedAt)) {
      void this.lookUp(timeline);
    }
  }

  private async lookUp(timeline: RunTimeline): Promise<void> {
    this.isAsking = true;
    this.askedAt = timeline.seq;
    try {
      const { summary } = await ask.run(this.runtime, this.run.runId);
      if (!this.stopped) {
        this.run = summary;
        this.draw(timeline);
      }
    } catch (error) {
      const problem = problemOf(error);
      this.problem.set(problem, () => problemLine(problem));
    }
    this.isAsking = false;
    if (!this.stopped && isBehind(this.run, timeline, this.askedAt)) {
      // The answer is older than the events, or there was none.
      setTimeout(() => this.watch.refresh(), LOOK_AGAIN_MS);
    }
  }

  /** The sidecar has said where the run is. */
  private known(run: RunSummary): void {
    if (!this.stopped) {
      this.run = run;
      this.draw(undefined);
      this.watch.refresh();
      if (document.activeElement === document.body) {
        // The button that was pressed is gone.
        this.back.focus();
      }
    }
  }

  private draw(timeline: RunTimeline | undefined): void {
    const { run } = this;
    const status = statusOf(run, timeline);
    const code = timeline?.end?.error?.code ?? run.code;
    this.head.set([run.name, status, code, isInEditor(run)], () => headLines(run, status, code));
    this.drawQuestion(status, timeline);
    // Who may only look is told so once.
    const wanted = NOT_OVER.includes(status) && (status !== "waiting" || isAllowed("redflow.write"));
    if (wanted && this.cancel === undefined) {
      this.cancel = new CancelForm(this.runtime, run.runId, (now) => this.known(now));
      this.acts.append(this.cancel.root);
    } else if (!wanted) {
      this.cancel?.root.remove();
      this.cancel = undefined;
    }
  }

  private drawQuestion(status: RunStatus, timeline: RunTimeline | undefined): void {
    const call = status === "waiting" ? this.run.waiting : undefined;
    const open = timeline === undefined ? undefined : waitingCall(timeline);
    const shown = open === undefined || open.callId === call?.callId ? call : undefined;
    if (shown?.callId === this.resolve?.callId) {
      return;
    }
    this.question.replaceChildren();
    this.resolve = undefined;
    if (shown !== undefined) {
      const form = new ResolveForm(this.runtime, this.run.runId, shown, isAllowed("redflow.write"), (now) => this.known(now));
      this.resolve = { callId: shown.callId, form };
      this.question.append(form.root);
    }
  }
}

/** Whether the events tell of something that what is known of the run does not have in it, and that was not asked for yet. */
export function isBehind(run: RunSummary, timeline: RunTimeline, askedAt: number): boolean {
  const call = waitingCall(timeline);
  const goesOn = run.status === "interrupted" && timeline.seq > askedAt;
  return goesOn || (call !== undefined && call.callId !== run.waiting?.callId);
}

/** What the events say is newer than what the list said. */
function statusOf(run: RunSummary, timeline: RunTimeline | undefined): RunStatus {
  const end = timeline?.end;
  if (end !== undefined) {
    return end.error !== undefined ? "failed" : end.completed ? "completed" : "stopped";
  }
  if (timeline === undefined || timeline.seq === 0) {
    return run.status;
  }
  return waitingCall(timeline) !== undefined ? "waiting" : run.status === "waiting" ? "running" : run.status;
}

function headLines(run: RunSummary, status: RunStatus, code: string | undefined): Node {
  const name = foreign("span", agentName(run), { most: SHOWN_IN_ROW });
  const link = { title: text("runs.list.reveal"), class: "redflow-link" };
  const title = isInEditor(run) ? button("", () => revealAgent(run), link) : element("span");
  title.append(name);
  const dot = element("span", { class: `redflow-dot redflow-dot-${status}` });
  const more = element("span", { class: "redflow-run-status", text: statusWords(status) });
  const why = code === undefined ? undefined : foreign("code", code, { class: "redflow-code", most: SHOWN_IN_ROW });
  const when = element("span", { class: "redflow-hint", text: text("runs.run.started", { at: moment(run.startedAt) }) });
  return element("div", {}, element("h3", {}, dot, title), element("div", { class: "redflow-run-facts" }, more, why, when));
}

/** The run's id and how the command line shows it. */
function hints(run: string): Node {
  const id = foreign("code", run, { class: "redflow-run-id", most: SHOWN_IN_ROW });
  const copy = button(text("runs.run.copy"), () => RED.clipboard.copyText(run, $(copy), text("runs.run.copied")));
  const label = element("span", { class: "redflow-label", text: text("runs.run.id") });
  const command = foreign("pre", `redflow runs show ${run}`, { class: "redflow-preview" });
  const more = element("details", { class: "redflow-details" }, element("summary", { text: text("runs.run.cli") }), command);
  return element("div", { class: "redflow-run-hints" }, element("div", {}, label, id, copy), more);
}
