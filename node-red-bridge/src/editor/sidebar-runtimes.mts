// The runtimes of the running flow and the state of the check, in the sidebar. Owns which runtime is chosen.

import type { Diagnostic } from "@redflow/bindings";
import type { RuntimeState, RuntimeView } from "../admin-api.js";
import { type CheckState, onChecked, problemsOf, state as checkState } from "./checks.mjs";
import { MAX_ROW_CHARS, cut, element, untrusted } from "./dom.mjs";
import { CachedElement } from "./keyed-list.mjs";
import type { RuntimesUpdate } from "./run-watch.mjs";
import { formatTime, fillSentence } from "./formats.mjs";
import { phraseText } from "./phrases.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

/** The most runtimes in the list. */
const MAX_RUNTIMES = 50;

export class RuntimesPanel {
  readonly root = element("div", { class: "redflow-sidebar-head" });
  private readonly choice = new CachedElement(element("div", { class: "redflow-choice" }));
  private readonly about = new CachedElement(element("div", { class: "redflow-runtime" }));
  private readonly check = new CachedElement(element("div", { class: "redflow-check" }));
  private readonly problem = new CachedElement(element("div", { attributes: { role: "alert" } }));
  private update: RuntimesUpdate = {};
  private chosen: string | undefined;

  constructor(private readonly onChoose: (runtime: string | undefined) => void) {
    this.root.append(this.choice.root, this.about.root, this.check.root, this.problem.root);
    onChecked(() => this.showCheck());
    this.showCheck();
  }

  show(update: RuntimesUpdate): void {
    this.update = update;
    const { list, problem } = update;
    this.problem.set(problem, () => problem && problemLine(problem));
    if (list === undefined) {
      return;
    }
    const runtimes = list.runtimes.slice(0, MAX_RUNTIMES);
    const found = runtimes.find(({ id }) => id === this.chosen) ?? runtimes.find(isConnected) ?? runtimes[0];
    this.choice.set([runtimes.map(({ id, name }) => [id, name]), found?.id], () =>
      runtimes.length > 1 ? this.createSelect(runtimes, found) : undefined,
    );
    this.about.set(found ?? null, () => (found === undefined ? emptyHint() : describeRuntime(found)));
    if (found?.id !== this.chosen) {
      this.chosen = found?.id;
      this.onChoose(this.chosen);
    }
  }

  /** Chooses the runtime of a run that will be shown. */
  select(runtime: string): void {
    if (runtime !== this.chosen) {
      this.chosen = runtime;
      this.onChoose(runtime);
      this.show(this.update);
    }
  }

  private createSelect(runtimes: RuntimeView[], found: RuntimeView | undefined): Node {
    const select = element("select", { attributes: { id: "redflow-sidebar-runtime" } });
    for (const { id, name, address } of runtimes) {
      const option = untrusted("option", name || address || id, { maxChars: MAX_ROW_CHARS, attributes: { value: id } });
      option.selected = id === found?.id;
      select.append(option);
    }
    select.addEventListener("change", () => {
      this.chosen = undefined;
      const runtime = select.value;
      const { list } = this.update;
      if (list !== undefined && list.runtimes.some(({ id }) => id === runtime)) {
        this.chosen = runtime;
        this.onChoose(runtime);
      }
      this.show(this.update);
    });
    const label = element("label", { text: text("runs.runtime.choose"), attributes: { for: select.id } });
    return element("div", {}, label, select);
  }

  private showCheck(): void {
    const state = checkState();
    const errors = state.is === "checked" ? countErrors() : 0;
    this.check.set([state, errors], () => checkLine(state, errors));
  }
}

function isConnected({ state }: RuntimeView): boolean {
  return state.is === "connected";
}

function emptyHint(): Node {
  return element("p", { class: "redflow-empty", text: text("runs.runtime.none") });
}

function describeRuntime({ name, address, state, waiting }: RuntimeView): Node {
  const line = element("div", { class: `redflow-state redflow-state-${state.is}`, attributes: { role: "status" } });
  line.append(describeState(state));
  const hint = { class: "redflow-hint" };
  const place = [name, address].filter((part) => part !== "").join(" · ");
  const queued = waiting > 0 ? element("div", { ...hint, text: text("runs.runtime.waiting", { n: waiting }) }) : undefined;
  return element("div", {}, line, untrusted("div", place, { ...hint, maxChars: MAX_ROW_CHARS }), queued);
}

function describeState(state: RuntimeState): Node {
  switch (state.is) {
    case "connected":
      return fillSentence("runs.runtime.connected", { version: untrusted("span", state.version, { maxChars: MAX_ROW_CHARS }) });
    case "offline":
      return fillSentence("runs.runtime.offline", { reason: untrusted("span", phraseText(state.phrase, state.reason)) });
    case "refused": {
      const code = untrusted("code", state.code, { class: "redflow-code", maxChars: MAX_ROW_CHARS });
      return fillSentence("runs.runtime.refused", { code, message: untrusted("span", phraseText(state.phrase, state.message)) });
    }
    default:
      return element("span", { text: text("runs.runtime.connecting") });
  }
}

/** The number of errors. Both ends of a refused wire have the same diagnostic, which counts once. */
function countErrors(): number {
  const found = new Set<Diagnostic>();
  RED.nodes.eachNode(({ id }) => {
    problemsOf(id)
      .filter(({ severity }) => severity === "error")
      .forEach((problem) => found.add(problem));
  });
  return found.size;
}

function checkLine(state: CheckState, errors: number): Node {
  const line = element("span", { class: `redflow-check-${state.is}` });
  if (state.is === "not_checked") {
    line.append(fillSentence("runs.check.not", { reason: untrusted("span", cut(state.reason)) }));
  } else if (state.is === "checking") {
    line.append(text("runs.check.now"));
  } else {
    line.append(errors === 0 ? text("runs.check.done") : text("runs.check.wrong", { n: errors }));
    line.classList.toggle("redflow-trouble", errors > 0);
    line.title = formatTime(state.at);
  }
  return line;
}
