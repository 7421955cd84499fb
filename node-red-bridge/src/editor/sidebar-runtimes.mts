// The sidecars of the flow that runs, and the state of the check. Owns which sidecar is chosen; asks nobody.

import type { Diagnostic } from "@redflow/bindings";
import type { RuntimeState, RuntimeView } from "../admin-api.js";
import { type CheckState, onChecked, problemsOf, state as checkState } from "./checks.mjs";
import { SHOWN_IN_ROW, cut, element, foreign } from "./dom.mjs";
import { Kept } from "./keyed.mjs";
import type { RuntimesNews } from "./runs-feed.mjs";
import { moment, sentence } from "./runs-words.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

/** Sidecars that can be chosen. */
const MAX_RUNTIMES = 50;

export class RuntimesPanel {
  readonly root = element("div", { class: "redflow-sidebar-head" });
  private readonly choice = new Kept(element("div", { class: "redflow-choice" }));
  private readonly about = new Kept(element("div", { class: "redflow-runtime" }));
  private readonly check = new Kept(element("div", { class: "redflow-check" }));
  private readonly problem = new Kept(element("div", { attributes: { role: "alert" } }));
  private news: RuntimesNews = {};
  private chosen: string | undefined;

  constructor(private readonly choose: (runtime: string | undefined) => void) {
    this.root.append(this.choice.root, this.about.root, this.check.root, this.problem.root);
    onChecked(() => this.showCheck());
    this.showCheck();
  }

  show(news: RuntimesNews): void {
    this.news = news;
    const { list, problem } = news;
    this.problem.set(problem, () => problem && problemLine(problem));
    if (list === undefined) {
      return;
    }
    const runtimes = list.runtimes.slice(0, MAX_RUNTIMES);
    const found = runtimes.find(({ id }) => id === this.chosen) ?? runtimes.find(isConnected) ?? runtimes[0];
    this.choice.set([runtimes.map(({ id, name }) => [id, name]), found?.id], () =>
      runtimes.length > 1 ? this.select(runtimes, found) : undefined,
    );
    this.about.set(found ?? null, () => (found === undefined ? nothing() : about(found)));
    if (found?.id !== this.chosen) {
      this.chosen = found?.id;
      this.choose(this.chosen);
    }
  }

  /** Chooses the sidecar of a run that is to be shown. */
  pick(runtime: string): void {
    if (runtime !== this.chosen) {
      this.chosen = runtime;
      this.choose(runtime);
      this.show(this.news);
    }
  }

  private select(runtimes: RuntimeView[], found: RuntimeView | undefined): Node {
    const select = element("select", { attributes: { id: "redflow-sidebar-runtime" } });
    for (const { id, name, address } of runtimes) {
      const option = foreign("option", name || address || id, { most: SHOWN_IN_ROW, attributes: { value: id } });
      option.selected = id === found?.id;
      select.append(option);
    }
    select.addEventListener("change", () => {
      this.chosen = undefined;
      const wanted = select.value;
      const list = this.news.list;
      if (list !== undefined && list.runtimes.some(({ id }) => id === wanted)) {
        this.chosen = wanted;
        this.choose(wanted);
      }
      this.show(this.news);
    });
    const label = element("label", { text: text("runs.runtime.choose"), attributes: { for: select.id } });
    return element("div", {}, label, select);
  }

  private showCheck(): void {
    const state = checkState();
    const wrong = state.is === "checked" ? errorsFound() : 0;
    this.check.set([state, wrong], () => checkLine(state, wrong));
  }
}

function isConnected({ state }: RuntimeView): boolean {
  return state.is === "connected";
}

function nothing(): Node {
  return element("p", { class: "redflow-empty", text: text("runs.runtime.none") });
}

function about({ name, address, state, waiting }: RuntimeView): Node {
  const line = element("div", { class: `redflow-state redflow-state-${state.is}`, attributes: { role: "status" } });
  line.append(stateWords(state));
  const hint = { class: "redflow-hint" };
  const place = [name, address].filter((part) => part !== "").join(" · ");
  const late = waiting > 0 ? element("div", { ...hint, text: text("runs.runtime.waiting", { n: waiting }) }) : undefined;
  return element("div", {}, line, foreign("div", place, { ...hint, most: SHOWN_IN_ROW }), late);
}

function stateWords(state: RuntimeState): Node {
  switch (state.is) {
    case "connected":
      return sentence("runs.runtime.connected", { version: foreign("span", state.version, { most: SHOWN_IN_ROW }) });
    case "away":
      return sentence("runs.runtime.away", { reason: foreign("span", state.reason) });
    case "refused": {
      const code = foreign("code", state.code, { class: "redflow-code", most: SHOWN_IN_ROW });
      return sentence("runs.runtime.refused", { code, message: foreign("span", state.message) });
    }
    default:
      return element("span", { text: text("runs.runtime.connecting") });
  }
}

/** A wire that is refused is held against both of its ends, and is one error. */
function errorsFound(): number {
  const found = new Set<Diagnostic>();
  RED.nodes.eachNode(({ id }) => {
    problemsOf(id)
      .filter(({ severity }) => severity === "error")
      .forEach((problem) => found.add(problem));
  });
  return found.size;
}

function checkLine(state: CheckState, wrong: number): Node {
  const line = element("span", { class: `redflow-check-${state.is}` });
  if (state.is === "not_checked") {
    line.append(sentence("runs.check.not", { reason: foreign("span", cut(state.reason)) }));
  } else if (state.is === "checking") {
    line.append(text("runs.check.now"));
  } else {
    line.append(wrong === 0 ? text("runs.check.done") : text("runs.check.wrong", { n: wrong }));
    line.classList.toggle("redflow-trouble", wrong > 0);
    line.title = moment(state.at);
  }
  return line;
}
