// The tab "Redflow" of the sidebar: how things stand with the sidecars and the check, the runs, and one run. Owns the tab
// and what of it is seen; each part draws itself.

import type { RunId, RunSummary } from "@redflow/bindings";
import { ask } from "./ask.mjs";
import { element } from "./dom.mjs";
import { Kept } from "./keyed.mjs";
import { type Watch, problemOf, watchRuntimes } from "./runs-feed.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { RunPanel } from "./sidebar-run.mjs";
import { RunsPanel } from "./sidebar-runs.mjs";
import { RuntimesPanel } from "./sidebar-runtimes.mjs";
import { text } from "./text.mjs";

const TAB = "redflow";
const ACTION = "redflow:show-sidebar";

/** Free in both lines of Node-RED; people can set another. */
const SHORTCUT = "ctrl-g r";

class Sidebar {
  private readonly runtimes = new RuntimesPanel((runtime) => this.choose(runtime));
  private readonly body = element("div", { class: "redflow-sidebar-body" });
  private readonly problem = new Kept(element("div", { attributes: { role: "alert" } }));
  private readonly root = element("div", { class: "redflow-sidebar" }, this.runtimes.root, this.problem.root, this.body);
  private readonly watch: Watch;
  private seen = false;
  private runs: RunsPanel | undefined;
  private run: RunPanel | undefined;
  /** The run that somebody elsewhere wants to be shown. */
  private wanted: RunId | undefined;

  constructor() {
    this.watch = watchRuntimes((news) => this.runtimes.show(news));
    this.watch.visible(false);
    // However the sidebar is hidden: another tab, a closed sidebar, a section that is folded.
    const eye = new IntersectionObserver((entries) => this.look(entries.at(-1)?.isIntersecting === true));
    eye.observe(this.root);
    const [name, content] = [text("runs.sidebar.name"), this.root];
    RED.actions.add(ACTION, () => RED.sidebar.show(TAB), { label: text("runs.sidebar.action") });
    RED.keyboard.add("*", SHORTCUT, ACTION);
    const icon = { iconClass: "fa fa-random", action: ACTION, enableOnEdit: true };
    RED.sidebar.addTab({ id: TAB, label: name, name, content, ...icon });
  }

  /** Shows a run that is known by its id only. */
  async reveal(runtime: string, id: RunId): Promise<void> {
    RED.sidebar.show(TAB);
    this.wanted = id;
    this.problem.set(undefined);
    try {
      const { summary } = await ask.run(runtime, id);
      if (this.wanted === id) {
        this.runtimes.pick(runtime);
        this.open(runtime, summary);
      }
    } catch (error) {
      const problem = problemOf(error);
      this.problem.set(problem, () => problemLine(problem));
    }
  }

  private look(seen: boolean): void {
    this.seen = seen;
    this.watch.visible(seen);
    this.runs?.visible(seen && this.run === undefined);
    this.run?.visible(seen);
  }

  /** The runs of a sidecar, or of none. */
  private choose(runtime: string | undefined): void {
    this.leave();
    if (runtime !== undefined) {
      this.runs = new RunsPanel(runtime, (run) => this.open(runtime, run));
      this.runs.visible(this.seen);
      this.body.append(this.runs.root);
    }
  }

  private open(runtime: string, run: RunSummary): void {
    this.wanted = undefined;
    this.problem.set(undefined);
    this.run?.destroy();
    this.run = new RunPanel(runtime, run, () => this.back(run.runId));
    this.run.visible(this.seen);
    this.runs?.visible(false);
    this.body.replaceChildren(this.run.root);
    this.narrow(true);
    this.run.focus();
  }

  private back(from: string): void {
    if (this.run !== undefined && this.runs !== undefined) {
      this.run.root.replaceWith(this.runs.root);
      this.run.destroy();
      this.run = undefined;
      this.narrow(false);
      this.runs.visible(this.seen);
      this.runs.focus(from);
    }
  }

  private leave(): void {
    this.run?.destroy();
    this.runs?.destroy();
    [this.run, this.runs] = [undefined, undefined];
    this.body.replaceChildren();
    this.narrow(false);
  }

  /** In Node-RED 5 there is half the height: while a run is shown, the rest is one line. */
  private narrow(isNarrow: boolean): void {
    this.root.classList.toggle("redflow-narrow", isNarrow);
  }
}

let sidebar: Sidebar | undefined;

/** Adds the tab. Once, when the editor is there. */
export function addSidebar(): void {
  sidebar = new Sidebar();
}

/** Opens the tab at a run. For the dialogs, which tell of runs that can be answered only there. */
export function showRunInSidebar(runtime: string, run: RunId): void {
  void sidebar?.reveal(runtime, run);
}
