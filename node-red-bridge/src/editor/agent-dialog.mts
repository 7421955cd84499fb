// The dialog of an agent with its tabs: four, or three without tools. Stops all requests when it closes. The template has the
// fields of the tab General; the other tabs have their own modules.

import { adminApi } from "./admin-client.mjs";
import { watchAgentErrors } from "./agent-errors-watch.mjs";
import { errorCount, errorsView } from "./agent-errors-view.mjs";
import { stopsField } from "./stop-conditions.mjs";
import { type ServiceList, fillService, serviceList } from "./agent-services-view.mjs";
import { candidates } from "./agent-services.mjs";
import { boundToolsView } from "./agent-bound-tools-view.mjs";
import { type AgentRef, describeProblem, runsView } from "./agent-runs-view.mjs";
import { runtimeOf } from "./agent-runtimes.mjs";
import { type Tabs, createTabs } from "./agent-tabs.mjs";
import { type Operations, type Tool, describeTools, namesOf } from "./agent-tools.mjs";
import { toolsView } from "./agent-tools-view.mjs";
import { type AgentInstance, agentInstances, roleOf, toolsOf, wiredServices, withServices } from "./agent-wiring.mjs";
import { onChecked, problemsOf, state } from "./checks.mjs";
import { MAX_ROW_CHARS, cut, element } from "./dom.mjs";
import { wiring } from "./editor-wiring.mjs";
import { isReference } from "./rules.mjs";
import { showRunInSidebar } from "./sidebar.mjs";
import { text } from "./text.mjs";
import { fieldOf, rememberValue } from "./touched-fields.mjs";

const TABS = ["general", "tools", "runs", "errors"] as const;

/** The events that may change the tools of an agent. */
const WIRE_EVENTS = ["links:add", "links:remove", "nodes:add", "nodes:change", "nodes:remove"];

/** How long the wires must stay unchanged before they are read again. */
const DEBOUNCE_MS = 100;

/** The last visible tab, which the next dialog opens first. */
let lastTab: string = TABS[0];

/** The open dialog. Node-RED opens one dialog of a node at a time. */
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

/** For `oneditcancel` and `oneditdelete`. Node-RED calls the latter for nodes without a dialog too. */
export function closeAgent(node: EditorNode): void {
  if (current?.node === node) {
    current.close();
    current = undefined;
  }
}

class Dialog {
  /** Elements of the template. They are not in the page while the dialog of a tool covers this one. */
  private readonly instanceRow = by("place");
  private readonly instance = by("instance") as HTMLSelectElement;
  private readonly toolProblem = by("toolProblem");
  private readonly cleanups: (() => void)[] = [];
  private readonly agents: AgentInstance[];
  /** Whether the model may call only some of the tools. */
  private readonly hasAllowed: boolean;
  private readonly tools;
  private readonly fallbacks: ServiceList | undefined;
  private readonly stops;
  private readonly runs;
  private readonly errors;
  private readonly tabs: Tabs;
  private hasChangedTools = false;
  /** The operations of installed nodes; none until Node-RED has answered. */
  private operations: Operations = {};

  constructor(readonly node: EditorNode) {
    this.agents = agentInstances(node, wiring, (id) => RED.nodes.subflow(id) !== undefined && RED.nodes.subflow(id) !== null);
    const { defaults } = node._def;
    setStrategy(node["strategy"]);
    const hasStops = "stopConditions" in defaults;
    this.stops = hasStops ? stopsField($("#node-input-redflow-stops"), by("stopsProblem"), node["stopConditions"]) : undefined;
    this.fallbacks = this.fillServices();

    this.hasAllowed = "allowedTools" in defaults;
    const onChange = (): void => {
      this.hasChangedTools = true;
      this.showToolProblem();
    };
    this.tools = this.hasAllowed
      ? toolsView(by("toolList"), this.toolsModel(), namesOf(node["allowedTools"]), onChange)
      : boundToolsView(by("toolList"), this.boundToolsModel(), namesOf(node["tools"]), onChange);
    this.runs = runsView(by("runs"), () => (node.changed ? text("agent.runs.changed") : ""));
    const errors = errorsView(by("errors"), {
      showRun: (run) => {
        this.runs.choose(run);
        this.tabs.show("runs");
      },
      answerRun: (run) => {
        const runtime = this.agentRef()?.runtime;
        if (runtime !== undefined) {
          showRunInSidebar(runtime, run);
        }
      },
    });
    const checkerProblems = (): ReturnType<typeof problemsOf> => withServices(node, wiring).flatMap(({ id }) => problemsOf(id));
    this.errors = watchAgentErrors(node.id, checkerProblems, (groups, problem) => {
      const checked = state();
      const unchecked = checked.is === "not_checked" ? text("agent.errors.notChecked", { reason: checked.reason }) : "";
      errors.showNotes([unchecked, problem === undefined ? "" : describeProblem(problem)].filter((note) => note !== ""));
      errors.show(groups, this.agentRef()?.runtime);
      this.tabs?.mark("errors", errorCount(groups), text("agent.errors.count"));
    });

    // The template of an agent without tools has no tab for them.
    const tabs = TABS.filter((id) => has(`panel-${id}`)).map((id) => ({ id, label: text(`agent.tab.${id}`), panel: by(`panel-${id}`) }));
    this.tabs = createTabs(by("tabs"), tabs, hasRuntime(node) ? lastTab : TABS[0], (id) => this.onTab(id));
    this.fillInstances();
    this.listen();
    this.observeFields();
    this.showToolProblem();
    void this.loadOperations();
  }

  save(node: EditorNode): void {
    // An untouched property stays as it is in the flow, even if it is unusual.
    const [stops, fallbacks] = [this.stops?.edited(), this.fallbacks?.edited()];
    if (stops !== undefined) {
      node["stopConditions"] = stops;
    }
    if (fallbacks !== undefined) {
      node["fallbackModels"] = fallbacks;
    }
    if (this.hasChangedTools) {
      node[this.hasAllowed ? "allowedTools" : "tools"] = this.tools.names();
    }
  }

  close(): void {
    for (const cleanup of this.cleanups.splice(0)) {
      cleanup();
    }
    this.runs.stop();
    this.errors.stop();
  }

  /** Without an answer, a node with operations is shown as one tool. */
  private async loadOperations(): Promise<void> {
    const { operations } = await adminApi.operations().catch(() => ({ operations: {} }));
    this.operations = operations;
    if (current === this) {
      this.refreshTools();
    }
  }

  private onTab(id: string): void {
    lastTab = id;
    this.runs.setVisible(id === "runs");
    this.errors.setVisible(id === "errors");
    this.instanceRow.hidden = this.agents.length < 2 || (id !== "runs" && id !== "errors");
  }

  /** Fills the list of instances: inside a subflow an agent runs once for each instance of the subflow. */
  private fillInstances(): void {
    this.instance.replaceChildren(
      ...this.agents.map(({ within }, index) => {
        const names = within.map(({ name, id }) => cut(typeof name === "string" && name !== "" ? name : id, MAX_ROW_CHARS));
        const option = element("option", { text: names.join(" › ") });
        option.value = String(index);
        return option;
      }),
    );
    const choose = (): void => {
      const agent = this.agentRef();
      this.runs.setAgent(agent, agent === undefined ? this.reasonWithoutRuns() : "");
      this.errors.setAgent(agent);
    };
    this.instance.addEventListener("change", choose);
    choose();
  }

  private agentRef(): AgentRef | undefined {
    const agent = this.agents[Number(this.instance.value)]?.id;
    const runtime = runtimeOf(this.node);
    return agent === undefined || runtime === undefined ? undefined : { runtime, agent };
  }

  private reasonWithoutRuns(): string {
    return text(this.agents.length === 0 ? "agent.runs.noInstance" : "agent.runs.noRuntime");
  }

  /** Fills the fields that choose a model, a memory and the fallback models, if the dialog has them. */
  private fillServices(): ServiceList | undefined {
    const { node } = this;
    const wired = wiredServices(node, wiring);
    for (const role of ["model", "memory"]) {
      const field = fieldOf("node-input", role);
      if (field !== undefined && "options" in field) {
        fillService(field, node[role], wired.filter((service) => roleOf(service) === role), this.candidates(role));
      }
    }
    const list = document.getElementById("node-input-redflow-list-fallbackModels");
    return list === null ? undefined : serviceList(list, namesOf(node["fallbackModels"]), () => this.candidates("model"));
  }

  private candidates(role: string): EditorNode[] {
    return candidates(this.node, role, RED.nodes.filterNodes({}), (id) => Boolean(RED.nodes.subflow(id)));
  }

  private boundToolsModel() {
    const { node } = this;
    const wired = (): EditorNode[] => toolsOf({ ...node, tools: [] }, wiring);
    const describe = (tool: EditorNode): Tool[] => describeTools(tool, this.operations);
    const find = (id: string): Tool[] => toolsOf({ ...node, tools: [id] }, wiring).filter((tool) => tool.id === id).flatMap(describe);
    return { ...this.toolsModel(), wired: () => wired().flatMap(describe), candidates: () => this.candidates("tool"), find };
  }

  private toolsModel() {
    const { node } = this;
    return {
      tools: () => toolsOf(node, wiring).flatMap((tool) => describeTools(tool, this.operations)),
      problems: (tool: { node: EditorNode }) =>
        problemsOf(tool.node.id).filter((problem) => problem.node?.id === tool.node.id || problem.node?.id === node.id),
      edit: (tool: EditorNode) => RED.editor.edit(tool),
    };
  }

  /** Shows below the list of allowed tools that it must not be empty, and marks the tab, which may be hidden. */
  private showToolProblem(): void {
    const problem = this.hasAllowed && this.tools.names().length === 0 ? text("agent.tools.needed") : "";
    this.toolProblem.textContent = problem;
    const title = problem !== "" ? problem : this.duplicateNames();
    this.tabs.mark("tools", title === "" ? "" : "!", title);
  }

  private refreshTools(): void {
    this.tools.refresh();
    this.showToolProblem();
  }

  /** The checker's message about two tools with one name. */
  private duplicateNames(): string {
    const { tools, problems } = this.toolsModel();
    const found = [...problemsOf(this.node.id), ...tools().flatMap(problems)].find(({ code }) => code === "TOOL_NAME_DUPLICATE");
    return found === undefined ? "" : cut(found.message, MAX_ROW_CHARS);
  }

  /** Marks the tab General, which may be hidden, while one of its fields is invalid. */
  private observeFields(): void {
    const panel = by("panel-general");
    const update = (): void => {
      const isWrong = panel.querySelector(".input-error, .redflow-problem:not(:empty)") !== null;
      this.tabs.mark("general", isWrong ? "!" : "", isWrong ? text("agent.hint.wrongField") : "");
    };
    const observer = new MutationObserver(update);
    observer.observe(panel, { subtree: true, childList: true, characterData: true, attributeFilter: ["class"] });
    this.cleanups.push(() => observer.disconnect());
    update();
  }

  /** Updates the dialog when wires or check results change. */
  private listen(): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const schedule = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => this.refreshTools(), DEBOUNCE_MS);
    };
    for (const event of WIRE_EVENTS) {
      RED.events.on(event, schedule);
      this.cleanups.push(() => RED.events.off(event, schedule));
    }
    // Also for ways to close the dialog without a callback.
    const onClose = (): void => closeAgent(this.node);
    RED.events.on("editor:close", onClose);
    const stopListening = onChecked(() => {
      this.refreshTools();
      this.errors.onChecked();
    });
    this.cleanups.push(
      stopListening,
      () => clearTimeout(timer),
      () => RED.events.off("editor:close", onClose),
    );
  }
}

/** Sets the only strategy, whatever the flow has. */
function setStrategy(value: unknown): void {
  const field = fieldOf("node-input", "strategy");
  if (field !== undefined && !isReference(value)) {
    rememberValue(field);
    field.value = "react";
  }
}

/** An element of the template. */
function by(name: string): HTMLElement {
  return document.getElementById(`node-input-redflow-${name}`) ?? element("div");
}

function has(name: string): boolean {
  return document.getElementById(`node-input-redflow-${name}`) !== null;
}

/** Whether the runtime of an agent exists. Without one there are no runs to show. */
function hasRuntime(agent: EditorNode): boolean {
  return RED.nodes.node(runtimeOf(agent) ?? "")?.type === "redflow-runtime";
}
