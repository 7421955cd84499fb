// The tab Runtime / Debug of an agent: its newest runs, and one of them step by step, live. Owns which run is shown.

import type { JsonValue, RunId, RunSummary } from "@redflow/bindings";
import type { Problem } from "../admin-api.js";
import { type MountedTimeline, mountTimeline } from "../timeline/index.js";
import { adminApi } from "./admin-client.mjs";
import { button, element, untrusted } from "./dom.mjs";
import { CachedElement } from "./keyed-list.mjs";
import { type RunUpdate, type RunsUpdate, type Watch, watchRun, watchRuns } from "./run-watch.mjs";
import { formatTime } from "./formats.mjs";
import { showRunInSidebar } from "./sidebar.mjs";
import { text } from "./text.mjs";
import { textsOf, timelineEnvironment } from "./timeline-environment.mjs";
import { type RunTimeline, waitingCalls } from "@redflow/bindings";

/** How many runs the list offers. */
const MAX_RUNS = 10;

/** The most characters of a prompt. */
const PROMPT_CHARS = 20_000;

/** An agent and its runtime. */
export interface AgentRef {
  runtime: string;
  /** The id that the sidecar uses: inside a subflow it contains the instances. */
  agent: string;
}

export interface RunsView {
  /** Sends requests only while it is visible. */
  setVisible(visible: boolean): void;
  /** Shows this run, and does not switch to a newer one. */
  choose(run: RunId): void;
  /** Shows the runs of another agent, or the reason why there is none. */
  setAgent(agent: AgentRef | undefined, reason: string): void;
  stop(): void;
}

/** Creates the tab in `host`. `undeployed` returns a sentence about undeployed changes; empty if there are none. */
export function runsView(host: HTMLElement, undeployed: () => string): RunsView {
  return new View(host, undeployed);
}

class View implements RunsView {
  private readonly notes = new CachedElement(element("div", { class: "redflow-said", attributes: { role: "status" } }));
  private readonly select = element("select", { attributes: { id: "redflow-agent-run" } });
  private readonly choice = element(
    "div",
    { class: "form-row redflow-run-choice" },
    element("label", { text: text("agent.runs.run"), attributes: { for: "redflow-agent-run" } }),
    this.select,
  );
  /** The hint that the run waits, with the button that answers it. */
  private readonly waitingHint = new CachedElement(element("div", { class: "redflow-waits", attributes: { role: "status" } }));
  private readonly timelineHost = element("div");
  private readonly prompt = element("div");
  private agent: AgentRef | undefined;
  private reason = "";
  private visible = false;
  private update: RunsUpdate | undefined;
  /** The run that the user chose; undefined to follow the newest one. */
  private chosen: RunId | undefined;
  private shown: RunId | undefined;
  private list: Watch | undefined;
  private run: Watch | undefined;
  private runProblem: Problem | undefined;
  private timeline: MountedTimeline | undefined;
  /** The run whose prompt was requested. */
  private promptOf: RunId | undefined;

  constructor(
    host: HTMLElement,
    private readonly undeployed: () => string,
  ) {
    host.replaceChildren(this.notes.root, this.choice, this.waitingHint.root, this.timelineHost, this.prompt);
    this.select.addEventListener("change", () => {
      this.chosen = this.select.value === "" ? undefined : this.select.value;
      this.showChosen();
    });
  }

  setVisible(visible: boolean): void {
    this.visible = visible;
    if (visible && this.list === undefined) {
      this.start();
    }
    this.list?.setVisible(visible);
    this.run?.setVisible(visible);
    this.showNotes();
  }

  choose(run: RunId): void {
    this.chosen = run;
    this.showChosen();
  }

  setAgent(agent: AgentRef | undefined, reason: string): void {
    if (this.agent?.runtime === agent?.runtime && this.agent?.agent === agent?.agent && this.reason === reason) {
      return;
    }
    this.stop();
    [this.agent, this.reason, this.update, this.chosen] = [agent, reason, undefined, undefined];
    this.showChosen();
    if (this.visible) {
      this.start();
    }
  }

  stop(): void {
    this.list?.stop();
    this.stopRun();
    this.list = this.shown = undefined;
  }

  private stopRun(): void {
    this.run?.stop();
    this.timeline?.destroy();
    this.waitingHint.set(undefined);
    this.prompt.replaceChildren();
    this.run = this.timeline = this.promptOf = this.runProblem = undefined;
  }

  private start(): void {
    if (this.agent !== undefined) {
      this.list = watchRuns({ ...this.agent, limit: MAX_RUNS }, (update) => {
        this.update = update;
        this.showChosen();
      });
    }
    this.showChosen();
  }

  /** Shows the chosen run, else the newest one. */
  private showChosen(): void {
    this.drawChoice();
    const run = this.chosen ?? this.update?.runs[0]?.runId;
    if (run !== this.shown) {
      this.stopRun();
      this.shown = run;
      if (run !== undefined && this.agent !== undefined) {
        this.timeline = mountTimeline(this.timelineHost, timelineEnvironment, textsOf(this.agent.runtime, run));
        this.run = watchRun({ ...this.agent, run }, (update) => this.draw(run, update));
        this.run.setVisible(this.visible);
      }
    }
    this.showNotes();
  }

  private draw(run: RunId, { timeline, live, problem }: RunUpdate): void {
    this.runProblem = problem;
    this.timeline?.show(timeline, Date.now(), live);
    this.drawWaitingHint(run, timeline);
    if (timeline.end !== undefined && timeline.debug && this.promptOf !== run) {
      this.promptOf = run;
      void this.requestPrompt(run);
    }
    this.showNotes();
  }

  private drawWaitingHint(run: RunId, timeline: RunTimeline): void {
    const runtime = this.agent?.runtime;
    const calls = waitingCalls(timeline).map(({ callId }) => callId);
    const key = runtime !== undefined && calls.length > 0 ? [runtime, run, ...calls] : undefined;
    this.waitingHint.set(key, () => {
      const hint = element("p", { text: text("agent.runs.waits") });
      const answer = button(text("agent.runs.answer"), () => showRunInSidebar(runtime ?? "", run));
      return key && element("div", {}, hint, answer);
    });
  }

  /** Shows the last prompt. The sidecar has it only after the end of a run with debug. */
  private async requestPrompt(run: RunId): Promise<void> {
    try {
      const { result } = await adminApi.run(this.agent?.runtime ?? "", run);
      const last = valueAt(result, "envelope", "model", "lastPrompt");
      if (typeof last === "string" && this.shown === run) {
        const prompt = untrusted("pre", last, { class: "redflow-prompt", maxChars: PROMPT_CHARS });
        const summary = element("summary", { text: text("agent.runs.prompt") });
        this.prompt.replaceChildren(element("details", { class: "redflow-more" }, summary, prompt));
      }
    } catch {
      // The timeline works without the prompt, and itself reports a problem of the sidecar.
      this.promptOf = this.shown === run ? undefined : this.promptOf;
    }
  }

  private drawChoice(): void {
    const runs = this.update?.runs ?? [];
    const options = runs.map((run, index) => (index === 0 ? newestOption(run) : option(run.runId, label(run))));
    const [newest] = runs;
    // The newest run, chosen by its id, stays chosen when a newer one starts.
    const chosen = this.chosen === newest?.runId ? undefined : this.chosen;
    if (this.chosen !== undefined && chosen === undefined && newest !== undefined) {
      options.splice(1, 0, option(newest.runId, label(newest)));
    } else if (chosen !== undefined && !runs.some(({ runId }) => runId === chosen)) {
      options.push(option(chosen, text("agent.runs.older", { run: chosen })));
    }
    const keyOf = (list: ArrayLike<HTMLOptionElement>): string => JSON.stringify(Array.from(list, (one) => [one.value, one.text]));
    if (keyOf(options) !== keyOf(this.select.options)) {
      this.select.replaceChildren(...options);
    }
    this.select.value = this.chosen ?? "";
    this.choice.hidden = options.length === 0;
  }

  /** Shows hints and problems above the timeline. */
  private showNotes(): void {
    const sentences: string[] = [this.undeployed()];
    const problem = this.update?.problem ?? this.runProblem;
    if (this.agent === undefined) {
      sentences.push(this.reason);
    } else if (problem !== undefined) {
      sentences.push(describeProblem(problem));
    } else if (this.update !== undefined && this.update.runs.length === 0 && this.chosen === undefined) {
      sentences.push(text("agent.runs.none"));
    } else if (this.update === undefined && this.visible) {
      sentences.push(text("agent.runs.asking"));
    }
    const notes = sentences.filter((sentence) => sentence !== "");
    this.notes.set(notes, ...notes.map((note) => () => untrusted("p", note, { class: "redflow-hint" })));
  }
}

/** The sentence for a failed request, with how to fix it. */
export function describeProblem({ code, message }: Problem): string {
  switch (code) {
    case "RUNTIME_UNREACHABLE":
      return text("agent.runs.offline", { reason: message });
    case "NODE_RED_UNREACHABLE":
      return text("agent.runs.noNodeRed");
    case "FORBIDDEN":
      return message === "" ? text("agent.runs.forbidden") : `${code}: ${message}`;
    case "NOT_FOUND":
      return text("agent.runs.notDeployed");
    default:
      return `${code}: ${message}`;
  }
}

function option(value: string, label: string): HTMLOptionElement {
  const created = element("option", { text: label });
  created.value = value;
  return created;
}

/** The option that follows the newest run. */
function newestOption(run: RunSummary): HTMLOptionElement {
  return option("", text("agent.runs.newest", { run: label(run) }));
}

function label({ status, code, startedAt }: RunSummary): string {
  const outcome = text(`timeline.status.${status}`) + (code === undefined ? "" : ` ${code}`);
  return `${outcome} · ${formatTime(startedAt)}`;
}

/** The value at a path in a JSON value. */
function valueAt(value: JsonValue | null | undefined, ...keys: string[]): JsonValue | undefined {
  let found: JsonValue | null | undefined = value;
  for (const key of keys) {
    found = typeof found === "object" && found !== null && !Array.isArray(found) ? found[key] : undefined;
  }
  return found ?? undefined;
}
