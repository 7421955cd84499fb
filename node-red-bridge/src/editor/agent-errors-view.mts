// The tab Errors of an agent. Owns the rows and which of them are open. Requests explanations only for visible rows.

import { type ErrorGroup, countOf, waitingRun } from "./agent-errors.mjs";
import { requestCode, requestRunError } from "./explanations.mjs";
import { renderHelp } from "./help-markdown.mjs";
import { MAX_ROW_CHARS, button, cut, element, untrusted } from "./dom.mjs";
import { CachedElement, KeyedList, type ListPart } from "./keyed-list.mjs";
import { formatTime } from "./formats.mjs";
import { text } from "./text.mjs";

/** How many rows get their message before they are opened. */
const EXPLAINED_AHEAD = 10;

export interface ErrorsView {
  show(groups: ErrorGroup[], runtime: string | undefined): void;
  /** Shows sentences above the rows, such as why the errors are incomplete. */
  showNotes(notes: string[]): void;
}

/** The actions of a row. */
export interface ErrorActions {
  /** Shows a run in the tab Runtime / Debug. */
  showRun: (run: string) => void;
  /** Opens the form that answers a waiting run. */
  answerRun: (run: string) => void;
}

/** Creates the tab in `host`. */
export function errorsView(host: HTMLElement, actions: ErrorActions): ErrorsView {
  const notes = new CachedElement(element("div", { class: "redflow-said", attributes: { role: "status" } }));
  const none = element("p", { class: "redflow-agent-empty", text: text("agent.errors.none") });
  let runtime: string | undefined;
  /** Whether all errors are known: otherwise "no errors" could be wrong. */
  let isComplete = true;
  /** Which kinds of errors were opened automatically. Once each, so that a row that the user closes stays closed. */
  const opened = new Set<"now" | "past">();
  /** Sends one request after the other. */
  let queue = Promise.resolve();

  const explain = (row: Row): void => {
    const at = runtime;
    if (at !== undefined) {
      // An element that is not displayed has no offsetParent.
      queue = queue.then(() => (row.root.offsetParent !== null ? row.explain(at) : undefined));
    }
  };
  const list = new KeyedList<ErrorGroup>(
    element("div", { class: "redflow-errors" }),
    ({ key }) => key,
    () => new Row(actions, explain),
  );
  host.replaceChildren(notes.root, none, list.root);

  /** Opens the first current error and the newest past one. */
  const openNewest = (groups: ErrorGroup[], rowOf: (group: ErrorGroup) => Row): void => {
    for (const when of ["now", "past"] as const) {
      const found = groups.find(({ severity, at }) => severity === "error" && (at === undefined) === (when === "now"));
      if (found !== undefined && !opened.has(when)) {
        opened.add(when);
        rowOf(found).root.open = true;
      }
    }
  };

  return {
    show(groups, at) {
      runtime = at;
      list.show(groups);
      none.hidden = groups.length > 0 || !isComplete;
      const rowOf = ({ key }: ErrorGroup): Row => list.part(key) as Row;
      openNewest(groups, rowOf);
      groups.slice(0, EXPLAINED_AHEAD).map(rowOf).forEach(explain);
    },
    showNotes(sentences) {
      isComplete = sentences.length === 0;
      notes.set(sentences, ...sentences.map((sentence) => () => untrusted("p", sentence, { class: "redflow-hint" })));
    },
  };
}

/** The number of errors as text for the tab; empty for none. */
export function errorCount(groups: ErrorGroup[]): string {
  const count = countOf(groups);
  return count === 0 ? "" : count > 99 ? "99+" : String(count);
}

class Row implements ListPart<ErrorGroup> {
  readonly root = element("details", { class: "redflow-error" });
  private readonly when = element("span", { class: "redflow-error-when" });
  private readonly code = element("code");
  private readonly times = element("span", { class: "redflow-error-times" });
  private readonly line = untrusted("span", "", { class: "redflow-error-line" });
  private readonly body = element("div", { class: "redflow-error-body" });
  private group: ErrorGroup | undefined;
  /** The requested explanation, and the run or code it belongs to. */
  private explanation: { of: string; message: string | undefined; summary: string; help: string } | undefined;

  constructor(
    private readonly actions: ErrorActions,
    onOpen: (row: Row) => void,
  ) {
    const head = element("span", { class: "redflow-error-head" }, this.code, this.times, this.when);
    this.root.append(element("summary", {}, head, this.line), this.body);
    this.root.addEventListener("toggle", () => {
      if (this.root.open) {
        onOpen(this);
      }
    });
  }

  show(group: ErrorGroup): void {
    if (JSON.stringify(group) === JSON.stringify(this.group)) {
      return;
    }
    this.group = group;
    this.root.classList.toggle("redflow-now", group.at === undefined);
    this.root.classList.toggle("redflow-warning", group.severity === "warning");
    this.code.textContent = cut(group.code, MAX_ROW_CHARS);
    this.times.textContent = group.count > 1 ? `×${group.count}` : "";
    this.when.textContent = group.at === undefined ? text("agent.errors.now") : formatTime(group.at);
    this.draw();
  }

  /** Requests the missing explanation. */
  async explain(runtime: string): Promise<void> {
    const group = this.group;
    const of = group === undefined ? "" : (group.runs[0]?.id ?? group.code);
    if (group === undefined || group.help !== undefined || this.explanation?.of === of) {
      return;
    }
    const run = group.message === undefined ? group.runs[0]?.id : undefined;
    const [error, entry] = await Promise.allSettled([
      run === undefined ? undefined : requestRunError(runtime, run),
      requestCode(runtime, group.code),
    ]);
    const isComplete = error.status === "fulfilled" && entry.status === "fulfilled";
    const code = entry.status === "fulfilled" ? entry.value : undefined;
    this.explanation = {
      // An incomplete explanation is shown, and requested again the next time.
      of: isComplete ? of : "",
      message: error.status === "fulfilled" ? error.value?.message : undefined,
      summary: code?.summary ?? "",
      help: code?.mend ?? "",
    };
    this.draw();
  }

  private draw(): void {
    const group = this.group;
    if (group === undefined) {
      return;
    }
    const message = group.message ?? this.explanation?.message ?? this.explanation?.summary ?? "";
    const sentence = group.about === undefined ? message : `${group.about}: ${message}`;
    const isLong = sentence.length > MAX_ROW_CHARS;
    this.line.textContent = cut(sentence, MAX_ROW_CHARS);
    // An open row shows a long sentence once, in full.
    this.root.classList.toggle("redflow-error-long", isLong);
    const help = group.help ?? this.explanation?.help ?? "";
    this.body.replaceChildren(
      ...(isLong ? [untrusted("p", sentence)] : []),
      ...answerButton(group, this.actions),
      ...(help === "" ? [] : [element("strong", { text: text("agent.errors.fix") }), renderHelp(help)]),
      ...runButtons(group, this.actions),
    );
  }
}

function answerButton(group: ErrorGroup, actions: ErrorActions): HTMLElement[] {
  const run = waitingRun(group);
  if (run === undefined) {
    return [];
  }
  return [element("div", { class: "redflow-error-answer" }, button(text("agent.runs.answer"), () => actions.answerRun(run)))];
}

function runButtons({ runs, count }: ErrorGroup, { showRun }: ErrorActions): HTMLElement[] {
  if (runs.length === 0) {
    return [];
  }
  const buttons = runs.map(({ id, at }, index) => {
    const label = index === 0 ? text("agent.errors.showRun") : formatTime(at);
    return button(label, () => showRun(id), { title: text("agent.errors.showRun") });
  });
  const more = count - runs.length;
  const rest = more > 0 ? element("span", { class: "redflow-hint", text: text("agent.errors.more", { n: more }) }) : undefined;
  return [element("div", { class: "redflow-error-runs" }, ...buttons, rest)];
}
