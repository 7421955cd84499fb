// The newest runs of a sidecar, a page at a time. Owns the filter and the page; what a run did is told elsewhere.

import type { RunStatus, RunSummary } from "@redflow/bindings";
import { SHOWN_IN_ROW, button, element, foreign } from "./dom.mjs";
import { KeyedList, Kept, type Part } from "./keyed.mjs";
import { type RunsNews, type Watch, watchRuns } from "./runs-feed.mjs";
import { age, moment } from "./runs-words.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

/** Runs of a page. */
const PAGE = 50;

/** How often the ages of runs move on. */
const AGE_MS = 10_000;

/** What can be chosen, and which runs that are. */
const FILTERS: Record<string, RunStatus[]> = {
  all: [],
  running: ["running", "interrupted"],
  waiting: ["waiting"],
  // Damaged ones are not asked for: to find these, the sidecar would have to look through all runs there are.
  failed: ["failed"],
};

export class RunsPanel {
  readonly root = element("div", { class: "redflow-runs" });
  private readonly filters = element("div", { class: "redflow-filters button-group", attributes: { role: "group" } });
  private readonly problem = new Kept(element("div", { attributes: { role: "alert" } }));
  private readonly list: KeyedList<RunSummary>;
  private readonly empty = new Kept(element("div"));
  private readonly pages = new Kept(element("div", { class: "redflow-pages" }));
  private filter = "all";
  private before: string | undefined;
  private watch: Watch;
  private seen = true;
  private news: RunsNews | undefined;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly runtime: string,
    open: (run: RunSummary) => void,
  ) {
    const rows = element("ul", { class: "redflow-list", attributes: { "aria-label": text("runs.list.name") } });
    this.list = new KeyedList<RunSummary>(rows, ({ runId }) => runId, () => new RunRow(open));
    this.filters.setAttribute("aria-label", text("runs.filter.name"));
    for (const name of Object.keys(FILTERS)) {
      const label = text(`runs.filter.${name}`);
      this.filters.append(button(label, () => this.turn(name, undefined), { attributes: { "data-filter": name } }));
    }
    this.root.append(this.filters, this.problem.root, rows, this.empty.root, this.pages.root);
    this.watch = this.ask();
    this.timer = setInterval(() => this.tick(), AGE_MS);
  }

  visible(seen: boolean): void {
    this.seen = seen;
    this.watch.visible(seen);
    this.tick();
  }

  /** To the row of a run, if it is there. */
  focus(run: string): void {
    const row = this.list.part(run)?.root ?? this.filters;
    row.querySelector("button")?.focus();
  }

  destroy(): void {
    clearInterval(this.timer);
    this.watch.stop();
    this.root.remove();
  }

  private turn(filter: string, before: string | undefined): void {
    [this.filter, this.before, this.news] = [filter, before, undefined];
    this.watch.stop();
    this.watch = this.ask();
    this.watch.visible(this.seen);
  }

  private ask(): Watch {
    for (const one of this.filters.querySelectorAll("button")) {
      const chosen = one.dataset["filter"] === this.filter;
      one.classList.toggle("selected", chosen);
      one.setAttribute("aria-pressed", String(chosen));
    }
    const status = FILTERS[this.filter]?.join(",") ?? "";
    const wish = { runtime: this.runtime, limit: PAGE, ...(status && { status }), ...(this.before && { before: this.before }) };
    return watchRuns(wish, (news) => this.show(news));
  }

  private show(news: RunsNews): void {
    this.news = news;
    const { runs, next, problem } = news;
    this.problem.set(problem, () => problem && problemLine(problem));
    this.list.show(runs.slice(0, PAGE));
    const none = runs.length === 0 && problem === undefined;
    this.empty.set([none, this.filter], () =>
      none ? element("p", { class: "redflow-empty", text: text(`runs.empty.${this.filter}`) }) : undefined,
    );
    this.pages.set(
      [next, this.before, this.filter],
      () => (this.before === undefined ? undefined : button(text("runs.list.newest"), () => this.turn(this.filter, undefined))),
      () => (next === undefined ? undefined : button(text("runs.list.older"), () => this.turn(this.filter, next))),
    );
  }

  private tick(): void {
    if (this.seen && !document.hidden && this.news !== undefined) {
      this.list.show(this.news.runs.slice(0, PAGE));
    }
  }
}

/** One run in the list. */
class RunRow implements Part<RunSummary> {
  readonly root: HTMLLIElement;
  private readonly dot = element("span");
  private readonly name = foreign("span", "", { class: "redflow-run-name" });
  private readonly status = element("span", { class: "redflow-run-status" });
  private readonly code = foreign("code", "", { class: "redflow-code" });
  private readonly age = element("span", { class: "redflow-run-age" });
  private readonly reveal: HTMLButtonElement;
  private run: RunSummary | undefined;

  constructor(open: (run: RunSummary) => void) {
    const press = (): void => this.run && open(this.run);
    const row = button("", press, { class: "redflow-run-open" });
    const more = element("span", { class: "redflow-run-more" }, this.status, this.code, this.age);
    row.append(this.dot, this.name, more);
    const label = text("runs.list.reveal");
    this.reveal = button("", () => this.run && revealAgent(this.run), { title: label, class: "redflow-run-reveal" });
    this.reveal.setAttribute("aria-label", label);
    this.reveal.append(element("i", { class: "fa fa-crosshairs", attributes: { "aria-hidden": "true" } }));
    this.root = element("li", { class: "redflow-run" }, row, this.reveal);
  }

  show(run: RunSummary): void {
    this.run = run;
    put(this.name, agentName(run));
    put(this.status, statusWords(run.status));
    put(this.code, run.code ?? "");
    put(this.age, age(Date.now() - run.startedAt));
    this.age.title = moment(run.startedAt);
    this.dot.className = `redflow-dot redflow-dot-${run.status}`;
    this.reveal.hidden = !isInEditor(run);
  }
}

function put(place: HTMLElement, words: string): void {
  const shown = words.length > SHOWN_IN_ROW ? `${words.slice(0, SHOWN_IN_ROW)}…` : words;
  if (place.textContent !== shown) {
    place.textContent = shown;
  }
}

export function statusWords(status: RunStatus): string {
  return text(`runs.status.${status}`);
}

/** As the run's agent was called; its id if it had no name. */
export function agentName({ name, agent }: RunSummary): string {
  return name !== "" ? name : agent.nodeId;
}

export function isInEditor({ agent }: RunSummary): boolean {
  return (RED.nodes.node(agent.nodeId) ?? undefined) !== undefined;
}

/** Shows the agent on the canvas. */
export function revealAgent(run: RunSummary): void {
  if (isInEditor(run)) {
    RED.view.reveal(run.agent.nodeId, true);
  }
}
