// The list of a sidecar's runs in the sidebar, one page at a time. Owns the filter and the page.

import { type AgentPlace, findAgent } from "./agent-place.mjs";
import { canvasLabel } from "./node-label.mjs";
import type { RunStatus, RunSummary } from "@redflow/bindings";
import { MAX_ROW_CHARS, button, cut, element, untrusted } from "./dom.mjs";
import { KeyedList, CachedElement, type ListPart } from "./keyed-list.mjs";
import { type RunsUpdate, type Watch, watchRuns } from "./run-watch.mjs";
import { formatAge, formatCount, formatTime } from "./formats.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";
import { timelineEnvironment } from "./timeline-environment.mjs";
import { costText } from "../timeline/index.js";

/** The runs of one page. */
const PAGE_SIZE = 50;

/** How often the ages of runs are updated. */
const AGE_MS = 10_000;

/** The filters and their statuses. */
const FILTERS: Record<string, RunStatus[]> = {
  all: [],
  running: ["running", "interrupted"],
  waiting: ["waiting"],
  // Without `damaged`: the sidecar would have to read all runs to find them.
  failed: ["failed"],
};

export class RunsPanel {
  readonly root = element("div", { class: "redflow-runs" });
  private readonly filters = element("div", { class: "redflow-filters button-group", attributes: { role: "group" } });
  private readonly problem = new CachedElement(element("div", { attributes: { role: "alert" } }));
  private readonly list: KeyedList<RunSummary>;
  private readonly empty = new CachedElement(element("div"));
  private readonly pages = new CachedElement(element("div", { class: "redflow-pages" }));
  private filter = "all";
  private before: string | undefined;
  private watch: Watch;
  private visible = true;
  private update: RunsUpdate | undefined;
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
      this.filters.append(button(label, () => this.showPage(name, undefined), { attributes: { "data-filter": name } }));
    }
    this.root.append(this.filters, this.problem.root, rows, this.empty.root, this.pages.root);
    this.watch = this.createWatch();
    this.timer = setInterval(() => this.updateAges(), AGE_MS);
  }

  setVisible(visible: boolean): void {
    this.visible = visible;
    this.watch.setVisible(visible);
    this.updateAges();
  }

  /** Focuses the row of a run, else the filters. */
  focus(run: string): void {
    const row = this.list.part(run)?.root ?? this.filters;
    row.querySelector("button")?.focus();
  }

  destroy(): void {
    clearInterval(this.timer);
    this.watch.stop();
    this.root.remove();
  }

  private showPage(filter: string, before: string | undefined): void {
    [this.filter, this.before, this.update] = [filter, before, undefined];
    this.watch.stop();
    this.watch = this.createWatch();
    this.watch.setVisible(this.visible);
  }

  private createWatch(): Watch {
    for (const one of this.filters.querySelectorAll("button")) {
      const chosen = one.dataset["filter"] === this.filter;
      one.classList.toggle("selected", chosen);
      one.setAttribute("aria-pressed", String(chosen));
    }
    const status = FILTERS[this.filter]?.join(",") ?? "";
    const selection = { runtime: this.runtime, limit: PAGE_SIZE, ...(status && { status }), ...(this.before && { before: this.before }) };
    return watchRuns(selection, (update) => this.show(update));
  }

  private show(update: RunsUpdate): void {
    this.update = update;
    const { runs, next, problem } = update;
    this.problem.set(problem, () => problem && problemLine(problem));
    this.list.show(runs.slice(0, PAGE_SIZE));
    const none = runs.length === 0 && problem === undefined;
    this.empty.set([none, this.filter], () =>
      none ? element("p", { class: "redflow-empty", text: text(`runs.empty.${this.filter}`) }) : undefined,
    );
    this.pages.set(
      [next, this.before, this.filter],
      () => (this.before === undefined ? undefined : button(text("runs.list.newest"), () => this.showPage(this.filter, undefined))),
      () => (next === undefined ? undefined : button(text("runs.list.older"), () => this.showPage(this.filter, next))),
    );
  }

  private updateAges(): void {
    if (this.visible && !document.hidden && this.update !== undefined) {
      this.list.show(this.update.runs.slice(0, PAGE_SIZE));
    }
  }
}

/** One run in the list. */
class RunRow implements ListPart<RunSummary> {
  readonly root: HTMLLIElement;
  private readonly dot = element("span");
  private readonly name = untrusted("span", "", { class: "redflow-run-name" });
  private readonly status = element("span", { class: "redflow-run-status" });
  private readonly code = untrusted("code", "", { class: "redflow-code" });
  private readonly used = element("span");
  private readonly age = element("span", { class: "redflow-run-age" });
  private readonly reveal: HTMLButtonElement;
  private run: RunSummary | undefined;

  constructor(open: (run: RunSummary) => void) {
    const row = button("", () => this.run && open(this.run), { class: "redflow-run-open" });
    const more = element("span", { class: "redflow-run-more" }, this.status, this.code, this.used, this.age);
    row.append(this.dot, this.name, more);
    const label = text("runs.list.reveal");
    this.reveal = button("", () => this.run && revealAgent(this.run), { title: label, class: "redflow-run-reveal" });
    this.reveal.setAttribute("aria-label", label);
    this.reveal.append(element("i", { class: "fa fa-crosshairs", attributes: { "aria-hidden": "true" } }));
    this.root = element("li", { class: "redflow-run" }, row, this.reveal);
  }

  show(run: RunSummary): void {
    this.run = run;
    setText(this.name, agentName(run));
    setText(this.status, statusText(run.status));
    setText(this.code, run.code ?? "");
    setText(this.used, usedLabel(run.tally));
    setText(this.age, formatAge(Date.now() - run.startedAt));
    this.age.title = formatTime(run.startedAt);
    this.dot.className = `redflow-dot redflow-dot-${run.status}`;
    this.reveal.hidden = !isInEditor(run);
  }
}

function setText(target: HTMLElement, content: string): void {
  const shown = cut(content, MAX_ROW_CHARS);
  if (target.textContent !== shown) {
    target.textContent = shown;
  }
}

/** The tokens and the cost of a run that has ended or waits, in short. */
function usedLabel(tally: RunSummary["tally"]): string {
  const n = tally === undefined ? 0 : tally.inputTokens + tally.outputTokens;
  if (tally === undefined || n === 0) {
    return "";
  }
  const tokens = text("runs.used.row", { n: formatCount(n) });
  return `${tokens} · ${text("timeline.used.cost", { cost: costText(timelineEnvironment, tally) ?? "" })}`;
}

export function statusText(status: RunStatus): string {
  return text(`timeline.status.${status}`);
}

/** The name of the run's agent at that time, else its label, with the instance of a subflow around it. */
export function agentName({ name, agent }: RunSummary): string {
  const place = placeOf(agent.nodeId);
  const own = name !== "" ? name : (canvasLabel(place?.agent) ?? agent.nodeId);
  const around = canvasLabel(place?.instance);
  return around === undefined ? own : `${own} (${around})`;
}

export function isInEditor({ agent }: RunSummary): boolean {
  return placeOf(agent.nodeId) !== undefined;
}

/** Shows the agent on the canvas, or the instance of a subflow that it is in. */
export function revealAgent({ agent }: RunSummary): void {
  const place = placeOf(agent.nodeId);
  if (place !== undefined) {
    RED.view.reveal((place.instance ?? place.agent).id, true);
  }
}

function placeOf(id: string): AgentPlace | undefined {
  return findAgent(id, (one) => RED.nodes.node(one));
}
