// The tab Runtime / Debug of an agent: its newest runs, and one of them step by step, live. Owns which run is shown; when the
// module is asked is runs-feed's, and how a run is drawn timeline-view's.

import type { JsonValue, RunId, RunSummary } from "@redflow/bindings";
import type { Problem } from "../admin-api.js";
import { ask } from "./ask.mjs";
import { button, element, foreign } from "./dom.mjs";
import { Kept } from "./keyed.mjs";
import { type RunNews, type RunsNews, type Watch, watchRun, watchRuns } from "./runs-feed.mjs";
import { moment } from "./runs-words.mjs";
import { showRunInSidebar } from "./sidebar.mjs";
import { text } from "./text.mjs";
import { type TimelineView, timelineView } from "./timeline-view.mjs";
import { type RunTimeline, waitingCall } from "./timeline.mjs";

/** Runs to choose from. */
const NEWEST = 10;

/** Characters shown of a prompt. */
const PROMPT_CHARS = 20_000;

/** Whose runs are shown. */
export interface Whose {
  runtime: string;
  /** As the sidecar knows it. */
  agent: string;
}

export interface RunsView {
  /** Whether it is to be seen. Nothing is asked before. */
  visible(seen: boolean): void;
  /** Shows this run and stays with it. */
  choose(run: RunId): void;
  /** Shows the runs of another agent; of none, for the reason given. */
  of(whose: Whose | undefined, why: string): void;
  stop(): void;
}

/** Makes the tab in `host`. `unasked` is a sentence on what is not deployed yet; empty if all is. */
export function runsView(host: HTMLElement, unasked: () => string): RunsView {
  return new View(host, unasked);
}

class View implements RunsView {
  private readonly said = new Kept(element("div", { class: "redflow-said", attributes: { role: "status" } }));
  private readonly select = element("select", { attributes: { id: "redflow-agent-run" } });
  private readonly choice = element(
    "div",
    { class: "form-row redflow-run-choice" },
    element("label", { text: text("agent.runs.run"), attributes: { for: "redflow-agent-run" } }),
    this.select,
  );
  /** That the run waits, and where it is answered. */
  private readonly waits = new Kept(element("div", { class: "redflow-waits", attributes: { role: "status" } }));
  private readonly stage = element("div");
  private readonly prompt = element("div");
  private whose: Whose | undefined;
  private why = "";
  private seen = false;
  private news: RunsNews | undefined;
  /** Stays with this run, or follows the newest one. */
  private chosen: RunId | undefined;
  private shown: RunId | undefined;
  private list: Watch | undefined;
  private run: Watch | undefined;
  private runProblem: Problem | undefined;
  private view: TimelineView | undefined;
  /** The run whose prompt was asked for. */
  private prompted: RunId | undefined;

  constructor(
    host: HTMLElement,
    private readonly unasked: () => string,
  ) {
    host.replaceChildren(this.said.root, this.choice, this.waits.root, this.stage, this.prompt);
    this.select.addEventListener("change", () => {
      this.chosen = this.select.value === "" ? undefined : this.select.value;
      this.follow();
    });
  }

  visible(seen: boolean): void {
    this.seen = seen;
    if (seen && this.list === undefined) {
      this.begin();
    }
    this.list?.visible(seen);
    this.run?.visible(seen);
    this.say();
  }

  choose(run: RunId): void {
    this.chosen = run;
    this.follow();
  }

  of(whose: Whose | undefined, why: string): void {
    if (this.whose?.runtime === whose?.runtime && this.whose?.agent === whose?.agent && this.why === why) {
      return;
    }
    this.stop();
    [this.whose, this.why, this.news, this.chosen] = [whose, why, undefined, undefined];
    this.follow();
    if (this.seen) {
      this.begin();
    }
  }

  stop(): void {
    this.list?.stop();
    this.run?.stop();
    this.view?.destroy();
    this.waits.set(undefined);
    this.prompt.replaceChildren();
    this.list = this.run = this.view = this.shown = this.prompted = this.runProblem = undefined;
  }

  private begin(): void {
    if (this.whose !== undefined) {
      this.list = watchRuns({ ...this.whose, limit: NEWEST }, (news) => {
        this.news = news;
        this.follow();
      });
    }
    this.follow();
  }

  /** Shows the run that is to be shown now. */
  private follow(): void {
    this.drawChoice();
    const wanted = this.chosen ?? this.news?.runs[0]?.runId;
    if (wanted !== this.shown) {
      this.run?.stop();
      this.view?.destroy();
      this.waits.set(undefined);
      this.prompt.replaceChildren();
      this.run = this.view = this.prompted = this.runProblem = undefined;
      this.shown = wanted;
      if (wanted !== undefined && this.whose !== undefined) {
        this.view = timelineView(this.stage);
        this.run = watchRun({ runtime: this.whose.runtime, run: wanted, agent: this.whose.agent }, (news) => this.draw(wanted, news));
        this.run.visible(this.seen);
      }
    }
    this.say();
  }

  private draw(run: RunId, { timeline, problem }: RunNews): void {
    this.runProblem = problem;
    this.view?.show(timeline, Date.now());
    this.drawWaits(run, timeline);
    if (timeline.end !== undefined && timeline.debug && this.prompted !== run) {
      this.prompted = run;
      void this.askPrompt(run);
    }
    this.say();
  }

  private drawWaits(run: RunId, timeline: RunTimeline): void {
    const runtime = this.whose?.runtime;
    const call = waitingCall(timeline);
    const shown = runtime !== undefined && call !== undefined ? [runtime, run, call.callId] : undefined;
    this.waits.set(shown, () => {
      const words = element("p", { text: text("agent.runs.waits") });
      const answer = button(text("agent.runs.answer"), () => showRunInSidebar(runtime ?? "", run));
      return shown && element("div", {}, words, answer);
    });
  }

  /** What the model was sent last. It is there only when the run is over, and only with debug. */
  private async askPrompt(run: RunId): Promise<void> {
    try {
      const { result } = await ask.run(this.whose?.runtime ?? "", run);
      const last = at(result, "envelope", "model", "lastPrompt");
      if (typeof last === "string" && this.shown === run) {
        const words = foreign("pre", last, { class: "redflow-prompt", most: PROMPT_CHARS });
        const summary = element("summary", { text: text("agent.runs.prompt") });
        this.prompt.replaceChildren(element("details", { class: "redflow-more" }, summary, words));
      }
    } catch {
      // The timeline is there without it, and says itself what is wrong with the sidecar.
      this.prompted = this.shown === run ? undefined : this.prompted;
    }
  }

  private drawChoice(): void {
    const runs = this.news?.runs ?? [];
    const options = runs.map((run, place) => option(place === 0 ? "" : run.runId, label(run, place === 0)));
    const [newest] = runs;
    // Chosen by its id, the newest one stays when a newer one comes.
    const chosen = this.chosen === newest?.runId ? undefined : this.chosen;
    if (this.chosen !== undefined && chosen === undefined && newest !== undefined) {
      options.splice(1, 0, option(newest.runId, label(newest, false)));
    } else if (chosen !== undefined && !runs.some(({ runId }) => runId === chosen)) {
      options.push(option(chosen, text("agent.runs.older", { run: chosen })));
    }
    const words = (list: ArrayLike<HTMLOptionElement>): string => JSON.stringify(Array.from(list, (one) => [one.value, one.text]));
    if (words(options) !== words(this.select.options)) {
      this.select.replaceChildren(...options);
    }
    this.select.value = this.chosen ?? "";
    this.choice.hidden = options.length === 0;
  }

  /** What a person should know, and do. */
  private say(): void {
    const sentences: string[] = [this.unasked()];
    const problem = this.news?.problem ?? this.runProblem;
    if (this.whose === undefined) {
      sentences.push(this.why);
    } else if (problem !== undefined) {
      sentences.push(problemWords(problem));
    } else if (this.news !== undefined && this.news.runs.length === 0 && this.chosen === undefined) {
      sentences.push(text("agent.runs.none"));
    } else if (this.news === undefined && this.seen) {
      sentences.push(text("agent.runs.asking"));
    }
    const fresh = sentences.filter((words) => words !== "");
    this.said.set(fresh, ...fresh.map((words) => () => foreign("p", words, { class: "redflow-hint" })));
  }
}

/** Why the module did not answer, and what to do. */
export function problemWords({ code, message }: Problem): string {
  switch (code) {
    case "RUNTIME_UNREACHABLE":
      return text("agent.runs.away", { reason: message });
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

function option(value: string, words: string): HTMLOptionElement {
  const made = element("option", { text: words });
  made.value = value;
  return made;
}

function label({ status, code, startedAt }: RunSummary, isNewest: boolean): string {
  const outcome = text(`runs.status.${status}`) + (code === undefined ? "" : ` ${code}`);
  const words = `${outcome} · ${moment(startedAt)}`;
  return isNewest ? text("agent.runs.newest", { run: words }) : words;
}

/** What is at a place in a JSON value. */
function at(value: JsonValue | null | undefined, ...keys: string[]): JsonValue | undefined {
  let found: JsonValue | null | undefined = value;
  for (const key of keys) {
    found = typeof found === "object" && found !== null && !Array.isArray(found) ? found[key] : undefined;
  }
  return found ?? undefined;
}
