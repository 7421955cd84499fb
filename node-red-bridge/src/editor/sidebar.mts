// The tab "Redflow" of the sidebar: how things stand with the sidecars and the check, the runs, and one run. Owns the tab
// and what of it is seen; each part draws itself.

import type { RunSummary } from "@redflow/bindings";
import { element } from "./dom.mjs";
import { type Watch, watchRuntimes } from "./runs-feed.mjs";
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
  private readonly root = element("div", { class: "redflow-sidebar" }, this.runtimes.root, this.body);
  private readonly watch: Watch;
  private seen = false;
  private runs: RunsPanel | undefined;
  private run: RunPanel | undefined;

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
    this.run?.destroy();
    this.run = new RunPanel(runtime, run, () => this.back(run.runId));
    this.run.visible(this.seen);
    this.runs?.visible(false);
    this.runs?.root.replaceWith(this.run.root);
    this.run.focus();
  }

  private back(from: string): void {
    if (this.run !== undefined && this.runs !== undefined) {
      this.run.root.replaceWith(this.runs.root);
      this.run.destroy();
      this.run = undefined;
      this.runs.visible(this.seen);
      this.runs.focus(from);
    }
  }

  private leave(): void {
    this.run?.destroy();
    this.runs?.destroy();
    [this.run, this.runs] = [undefined, undefined];
    this.body.replaceChildren();
  }
}

/** Adds the tab. Once, when the editor is there. */
export function addSidebar(): void {
  new Sidebar();
}
