// The tab "Redflow" of the sidebar: the runtimes and the check, the list of runs, and one run. Owns which of them is visible.

import type { RunId, RunSummary } from "@redflow/bindings";
import { adminApi } from "./admin-client.mjs";
import { element } from "./dom.mjs";
import { CachedElement } from "./keyed-list.mjs";
import { type Watch, problemOf, watchRuntimes } from "./run-watch.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { RunPanel } from "./sidebar-run.mjs";
import { RunsPanel } from "./sidebar-runs.mjs";
import { RuntimesPanel } from "./sidebar-runtimes.mjs";
import { text } from "./text.mjs";

const TAB = "redflow";
const ACTION = "redflow:show-sidebar";

/** Unused in Node-RED 4 and 5; users can change it. */
const SHORTCUT = "ctrl-g r";

class Sidebar {
  private readonly runtimes = new RuntimesPanel((runtime) => this.showRuntime(runtime));
  private readonly body = element("div", { class: "redflow-sidebar-body" });
  private readonly problem = new CachedElement(element("div", { attributes: { role: "alert" } }));
  private readonly root = element("div", { class: "redflow-sidebar" }, this.runtimes.root, this.problem.root, this.body);
  private readonly watch: Watch;
  private visible = false;
  private awaitsFocus = false;
  private runs: RunsPanel | undefined;
  private run: RunPanel | undefined;
  /** The run that a dialog has asked to show. */
  private requested: RunId | undefined;

  constructor() {
    this.watch = watchRuntimes((update) => this.runtimes.show(update));
    this.watch.setVisible(false);
    // Detects every way to hide the tab: another tab, a closed sidebar, a folded section.
    const observer = new IntersectionObserver((entries) => this.setVisible(entries.at(-1)?.isIntersecting === true));
    observer.observe(this.root);
    const [name, content] = [text("runs.sidebar.name"), this.root];
    // Scripts may focus it; the tab key then goes to its first control.
    this.root.tabIndex = -1;
    this.root.setAttribute("role", "region");
    this.root.setAttribute("aria-label", name);
    RED.actions.add(ACTION, () => this.showAndFocus(), { label: text("runs.sidebar.action") });
    RED.keyboard.add("*", SHORTCUT, ACTION);
    const icon = { iconClass: "fa fa-random", action: ACTION, enableOnEdit: true };
    RED.sidebar.addTab({ id: TAB, label: name, name, content, ...icon });
  }

  /** Shows the tab and moves the focus there, at the latest when the sidebar has opened. */
  private showAndFocus(): void {
    RED.sidebar.show(TAB);
    this.root.focus();
    this.awaitsFocus = document.activeElement !== this.root;
  }

  /** Shows a run by its id. */
  async reveal(runtime: string, id: RunId): Promise<void> {
    RED.sidebar.show(TAB);
    this.requested = id;
    this.problem.set(undefined);
    try {
      const { summary } = await adminApi.run(runtime, id);
      if (this.requested === id) {
        this.runtimes.select(runtime);
        this.open(runtime, summary);
      }
    } catch (error) {
      const problem = problemOf(error);
      this.problem.set(problem, () => problemLine(problem));
    }
  }

  private setVisible(visible: boolean): void {
    this.visible = visible;
    if (visible && this.awaitsFocus) {
      this.awaitsFocus = false;
      this.root.focus();
    }
    this.watch.setVisible(visible);
    this.runs?.setVisible(visible && this.run === undefined);
    this.run?.setVisible(visible);
  }

  /** Shows the runs of a runtime, or of none. */
  private showRuntime(runtime: string | undefined): void {
    this.clear();
    if (runtime !== undefined) {
      this.runs = new RunsPanel(runtime, (run) => this.open(runtime, run));
      this.runs.setVisible(this.visible);
      this.body.append(this.runs.root);
    }
  }

  private open(runtime: string, run: RunSummary): void {
    this.requested = undefined;
    this.problem.set(undefined);
    this.run?.destroy();
    this.run = new RunPanel(runtime, run, () => this.showList(run.runId));
    this.run.setVisible(this.visible);
    this.runs?.setVisible(false);
    this.body.replaceChildren(this.run.root);
    this.setCompact(true);
    this.run.focus();
  }

  /** Returns to the list, and focuses the row of a run. */
  private showList(from: string): void {
    if (this.run !== undefined && this.runs !== undefined) {
      this.run.root.replaceWith(this.runs.root);
      this.run.destroy();
      this.run = undefined;
      this.setCompact(false);
      this.runs.setVisible(this.visible);
      this.runs.focus(from);
    }
  }

  private clear(): void {
    this.run?.destroy();
    this.runs?.destroy();
    [this.run, this.runs] = [undefined, undefined];
    this.body.replaceChildren();
    this.setCompact(false);
  }

  /** Reduces the head to one line while a run is shown: in Node-RED 5 the sidebar has only half the height. */
  private setCompact(compact: boolean): void {
    this.root.classList.toggle("redflow-narrow", compact);
  }
}

let sidebar: Sidebar | undefined;

/** Adds the tab. Called once, when the editor is loaded. */
export function addSidebar(): void {
  sidebar = new Sidebar();
}

/** Opens the tab at a run. For the dialogs, which cannot answer a waiting run themselves. */
export function showRunInSidebar(runtime: string, run: RunId): void {
  void sidebar?.reveal(runtime, run);
}
