// The dialog of agent-core: four tabs. Owns what is open, and that nothing is asked any more when it is closed. The fields of
// the tab General are the template's; the other tabs have modules of their own.

import { errorsFeed } from "./agent-errors-feed.mjs";
import { errorsView, markOf } from "./agent-errors-view.mjs";
import { stopsField } from "./agent-general.mjs";
import { type Whose, problemWords, runsView } from "./agent-runs-view.mjs";
import { type Tabs, makeTabs } from "./agent-tabs.mjs";
import { describeTool, namesOf } from "./agent-tools.mjs";
import { toolsView } from "./agent-tools-view.mjs";
import { type Running, type Wiring, runningAs, toolsOf, withServices } from "./agent-wiring.mjs";
import { onChecked, problemsOf, state } from "./checks.mjs";
import { SHOWN_IN_ROW, cut, element } from "./dom.mjs";
import { isReference } from "./rules.mjs";
import { showRunInSidebar } from "./sidebar.mjs";
import { text } from "./text.mjs";
import { fieldOf, remember } from "./touched.mjs";

const TABS = ["general", "tools", "runs", "errors"] as const;

/** What changes which tools an agent has. */
const WIRE_EVENTS = ["links:add", "links:remove", "nodes:add", "nodes:change", "nodes:remove"];

/** How long the wires must be quiet before they are read again. */
const QUIET_MS = 100;

/** The tab that was seen last, for the next dialog. */
let lastTab: string = TABS[0];

/** The dialog that is open. Node-RED has one of a node at a time. */
let current: Dialog | undefined;

/** For `oneditprepare`. */
export function openAgent(node: EditorNode): void {
  current?.close();
  current = new Dialog(node);
}

/** For `oneditsave`. */
export function saveAgent(node: EditorNode): void {
  current?.save(node);
  closeAgent(node);
}

/** For `oneditcancel` and `oneditdelete`, which comes for nodes without a dialog too. */
export function closeAgent(node: EditorNode): void {
  if (current?.node === node) {
    current.close();
    current = undefined;
  }
}

class Dialog {
  /** Parts of the template. While the dialog of a tool is open over this one, they are not in the page. */
  private readonly place = by("place");
  private readonly instance = by("instance") as HTMLSelectElement;
  private readonly allowedProblem = by("allowedProblem");
  private readonly ends: (() => void)[] = [];
  private readonly agents: Running[];
  private readonly tools;
  private readonly stops;
  private readonly runs;
  private readonly errors;
  private readonly tabs: Tabs;
  private hasChangedTools = false;

  constructor(readonly node: EditorNode) {
    this.agents = runningAs(node, wiring, (id) => RED.nodes.subflow(id) !== undefined && RED.nodes.subflow(id) !== null);
    setStrategy(node["strategy"]);
    this.stops = stopsField($("#node-input-redflow-stops"), by("stopsProblem"), node["stopConditions"]);

    const allowed = namesOf(node["allowedTools"]);
    this.tools = toolsView(by("allowed"), this.toolsModel(), allowed, () => {
      this.hasChangedTools = true;
      this.sayTools();
    });
    this.runs = runsView(by("runs"), () => (node.changed ? text("agent.runs.changed") : ""));
    const errors = errorsView(by("errors"), {
      showRun: (run) => {
        this.runs.choose(run);
        this.tabs.show("runs");
      },
      answerRun: (run) => {
        const runtime = this.whose()?.runtime;
        if (runtime !== undefined) {
          showRunInSidebar(runtime, run);
        }
      },
    });
    const against = (): ReturnType<typeof problemsOf> => withServices(node, wiring).flatMap(({ id }) => problemsOf(id));
    this.errors = errorsFeed(node.id, against, (groups, problem) => {
      const checked = state();
      const unchecked = checked.is === "not_checked" ? text("agent.errors.notChecked", { reason: checked.reason }) : "";
      errors.say([unchecked, problem === undefined ? "" : problemWords(problem)].filter((words) => words !== ""));
      errors.show(groups, this.whose()?.runtime);
      this.tabs?.mark("errors", markOf(groups), text("agent.errors.count"), true);
    });

    const made = TABS.map((id) => ({ id, label: text(`agent.tab.${id}`), panel: by(`panel-${id}`) }));
    this.tabs = makeTabs(by("tabs"), made, hasRuntime(node) ? lastTab : TABS[0], (id) => this.shown(id));
    this.choosePlace();
    this.look();
    this.lookAtFields();
    this.sayTools();
  }

  save(node: EditorNode): void {
    // What nobody has touched stays as it was written, however strange.
    const stops = this.stops.edited();
    if (stops !== undefined) {
      node["stopConditions"] = stops;
    }
    if (this.hasChangedTools) {
      node["allowedTools"] = this.tools.names();
    }
  }

  close(): void {
    for (const end of this.ends.splice(0)) {
      end();
    }
    this.runs.stop();
    this.errors.stop();
  }

  private shown(id: string): void {
    lastTab = id;
    this.runs.visible(id === "runs");
    this.errors.visible(id === "errors");
    this.place.hidden = this.agents.length < 2 || (id !== "runs" && id !== "errors");
  }

  /** Inside a subflow an agent runs once for each instance: which one is looked at. */
  private choosePlace(): void {
    this.instance.replaceChildren(
      ...this.agents.map(({ within }, place) => {
        const names = within.map(({ name, id }) => cut(typeof name === "string" && name !== "" ? name : id, SHOWN_IN_ROW));
        const option = element("option", { text: names.join(" › ") });
        option.value = String(place);
        return option;
      }),
    );
    const choose = (): void => {
      const whose = this.whose();
      this.runs.of(whose, whose === undefined ? this.whyNone() : "");
      this.errors.of(whose);
    };
    this.instance.addEventListener("change", choose);
    choose();
  }

  private whose(): Whose | undefined {
    const agent = this.agents[Number(this.instance.value)]?.id;
    const runtime = runtimeOf(this.node);
    return agent === undefined || runtime === undefined ? undefined : { runtime, agent };
  }

  private whyNone(): string {
    return text(this.agents.length === 0 ? "agent.runs.noInstance" : "agent.runs.noRuntime");
  }

  private toolsModel() {
    const { node } = this;
    return {
      tools: () => toolsOf(node, wiring).map(describeTool),
      problems: (tool: { node: EditorNode }) =>
        problemsOf(tool.node.id).filter((problem) => problem.node?.id === tool.node.id || problem.node?.id === node.id),
      edit: (tool: EditorNode) => RED.editor.edit(tool),
    };
  }

  /** The list must not be empty: said below it and at the tab, which may not be the one that is seen. */
  private sayTools(): void {
    const words = this.tools.names().length === 0 ? text("agent.tools.needed") : "";
    this.allowedProblem.textContent = words;
    const title = words !== "" ? words : this.sameNames();
    this.tabs.mark("tools", title === "" ? "" : "!", title, true);
  }

  private refreshTools(): void {
    this.tools.refresh();
    this.sayTools();
  }

  /** What the checker says of two tools with one name. */
  private sameNames(): string {
    const { tools, problems } = this.toolsModel();
    const found = [...problemsOf(this.node.id), ...tools().flatMap(problems)].find(({ code }) => code === "TOOL_NAME_DUPLICATE");
    return found === undefined ? "" : cut(found.message, SHOWN_IN_ROW);
  }

  /** A field that is wrong is said so at its tab, which may not be the one that is seen. */
  private lookAtFields(): void {
    const panel = by("panel-general");
    const say = (): void => {
      const isWrong = panel.querySelector(".input-error, .redflow-problem:not(:empty)") !== null;
      this.tabs.mark("general", isWrong ? "!" : "", isWrong ? text("agent.hint.wrongField") : "", true);
    };
    const observer = new MutationObserver(say);
    observer.observe(panel, { subtree: true, childList: true, characterData: true, attributeFilter: ["class"] });
    this.ends.push(() => observer.disconnect());
    say();
  }

  /** Looks at wires and verdicts as long as the dialog is open. */
  private look(): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => this.refreshTools(), QUIET_MS);
    };
    for (const event of WIRE_EVENTS) {
      RED.events.on(event, later);
      this.ends.push(() => RED.events.off(event, later));
    }
    // However the dialog is closed, it is closed.
    const closed = (): void => closeAgent(this.node);
    RED.events.on("editor:close", closed);
    const unchecked = onChecked(() => {
      this.refreshTools();
      this.errors.checked();
    });
    this.ends.push(
      unchecked,
      () => clearTimeout(timer),
      () => RED.events.off("editor:close", closed),
    );
  }
}

/** There is one strategy: whatever else a flow says becomes it. */
function setStrategy(value: unknown): void {
  const field = fieldOf("node-input", "strategy");
  if (field !== undefined && !isReference(value)) {
    remember(field);
    field.value = "react";
  }
}

/** A part of the template. */
function by(name: string): HTMLElement {
  return document.getElementById(`node-input-redflow-${name}`) ?? element("div");
}

/** The sidecar of an agent: the one it names, else the only one there is. */
function runtimeOf(agent: EditorNode): string | undefined {
  const named = agent["runtime"];
  if (typeof named === "string" && named !== "") {
    return named;
  }
  const all: string[] = [];
  RED.nodes.eachConfig((node) => {
    if (node.type === "redflow-runtime" && node.d !== true) {
      all.push(node.id);
    }
  });
  return all.length === 1 ? all[0] : undefined;
}

/** Whether an agent has a sidecar that exists. Without one there are no runs to be seen yet. */
function hasRuntime(agent: EditorNode): boolean {
  return RED.nodes.node(runtimeOf(agent) ?? "")?.type === "redflow-runtime";
}

/** The flow in the editor. */
const wiring: Wiring = {
  next: (node, port) =>
    RED.nodes
      .getNodeLinks(node, 0)
      .filter((link) => port === undefined || link.sourcePort === port)
      .map(({ target }) => target),
  previous: (node) => RED.nodes.getNodeLinks(node, 1).map(({ source }) => source),
  node: (id) => RED.nodes.node(id) ?? undefined,
  all: (type) => RED.nodes.filterNodes({ type }),
  inside(subflow) {
    const entry = RED.nodes.subflow(subflow)?.in[0];
    const found: EditorNode[] = [];
    RED.nodes.eachLink((link) => {
      if (entry !== undefined && link.source === entry) {
        found.push(link.target);
      }
    });
    return found;
  },
  isOff: (node) => node.d === true || RED.nodes.workspace(node.z ?? "")?.disabled === true,
};
