// The tab Errors of an agent. Owns the rows, and which are open; what went wrong is agent-errors', and the words to it
// agent-explain's. Asks nothing for rows nobody looks at.

import { type ErrorGroup, countOf, waitingRun } from "./agent-errors.mjs";
import { aboutCode, whyFailed } from "./agent-explain.mjs";
import { drawMend } from "./agent-mend.mjs";
import { SHOWN_IN_ROW, button, cut, element, foreign } from "./dom.mjs";
import { Kept, KeyedList, type Part } from "./keyed.mjs";
import { moment } from "./runs-words.mjs";
import { text } from "./text.mjs";

/** Rows whose sentence is asked for before they are opened. */
const ASKED_AHEAD = 10;

export interface ErrorsView {
  show(groups: ErrorGroup[], runtime: string | undefined): void;
  /** Sentences above the rows, such as why something is not known. */
  say(sentences: string[]): void;
}

/** Where a row leads to. */
export interface Ways {
  /** Shows a run in another tab. */
  showRun(run: string): void;
  /** Opens what answers a run that waits. */
  answerRun(run: string): void;
}

/** Makes the tab in `host`. */
export function errorsView(host: HTMLElement, ways: Ways): ErrorsView {
  const said = new Kept(element("div", { class: "redflow-said", attributes: { role: "status" } }));
  const none = element("p", { class: "redflow-agent-empty", text: text("agent.errors.none") });
  let runtime: string | undefined;
  /** Whether all is known: else that there is nothing would be a guess. */
  let isWhole = true;
  /** What was opened unasked: once each, so that what a person closes stays closed. */
  const opened = new Set<"now" | "past">();
  /** One request after the other. */
  let queue = Promise.resolve();

  const explain = (row: Row): void => {
    const where = runtime;
    if (where !== undefined) {
      // Not displayed, it has no such parent: nobody looks.
      queue = queue.then(() => (row.root.offsetParent !== null ? row.explain(where) : undefined));
    }
  };
  const list = new KeyedList<ErrorGroup>(
    element("div", { class: "redflow-errors" }),
    ({ key }) => key,
    () => new Row(ways, explain),
  );
  host.replaceChildren(said.root, none, list.root);

  /** What stands in the way now, and what went wrong last. */
  const openNewest = (groups: ErrorGroup[], part: (group: ErrorGroup) => Row): void => {
    for (const when of ["now", "past"] as const) {
      const found = groups.find(({ severity, at }) => severity === "error" && (at === undefined) === (when === "now"));
      if (found !== undefined && !opened.has(when)) {
        opened.add(when);
        part(found).root.open = true;
      }
    }
  };

  return {
    show(groups, where) {
      runtime = where;
      list.show(groups);
      none.hidden = groups.length > 0 || !isWhole;
      const part = ({ key }: ErrorGroup): Row => list.part(key) as Row;
      openNewest(groups, part);
      groups.slice(0, ASKED_AHEAD).map(part).forEach(explain);
    },
    say(sentences) {
      isWhole = sentences.length === 0;
      said.set(sentences, ...sentences.map((words) => () => foreign("p", words, { class: "redflow-hint" })));
    },
  };
}

/** How many errors there are, for the tab. */
export function markOf(groups: ErrorGroup[]): string {
  const count = countOf(groups);
  return count === 0 ? "" : count > 99 ? "99+" : String(count);
}

class Row implements Part<ErrorGroup> {
  readonly root = element("details", { class: "redflow-error" });
  private readonly when = element("span", { class: "redflow-error-when" });
  private readonly code = element("code");
  private readonly times = element("span", { class: "redflow-error-times" });
  private readonly line = foreign("span", "", { class: "redflow-error-line" });
  private readonly body = element("div", { class: "redflow-error-body" });
  private group: ErrorGroup | undefined;
  /** What was asked for, and for which run or code. */
  private explained: { of: string; message: string | undefined; summary: string; mend: string } | undefined;

  constructor(
    private readonly ways: Ways,
    opened: (row: Row) => void,
  ) {
    const head = element("span", { class: "redflow-error-head" }, this.code, this.times, this.when);
    this.root.append(element("summary", {}, head, this.line), this.body);
    this.root.addEventListener("toggle", () => {
      if (this.root.open) {
        opened(this);
      }
    });
  }

  show(group: ErrorGroup): void {
    const drawn = JSON.stringify(group);
    if (drawn === JSON.stringify(this.group)) {
      return;
    }
    this.group = group;
    this.root.classList.toggle("redflow-now", group.at === undefined);
    this.root.classList.toggle("redflow-warning", group.severity === "warning");
    this.code.textContent = cut(group.code, SHOWN_IN_ROW);
    this.times.textContent = group.count > 1 ? `×${group.count}` : "";
    this.when.textContent = group.at === undefined ? text("agent.errors.now") : moment(group.at);
    this.draw();
  }

  /** Asks for what is not known yet. */
  async explain(runtime: string): Promise<void> {
    const group = this.group;
    const of = group === undefined ? "" : (group.runs[0]?.id ?? group.code);
    if (group === undefined || group.help !== undefined || this.explained?.of === of) {
      return;
    }
    const run = group.message === undefined ? group.runs[0]?.id : undefined;
    const [why, page] = await Promise.allSettled([
      run === undefined ? undefined : whyFailed(runtime, run),
      aboutCode(runtime, group.code),
    ]);
    const isWhole = why.status === "fulfilled" && page.status === "fulfilled";
    const about = page.status === "fulfilled" ? page.value : undefined;
    this.explained = {
      // What did come is used; the rest is asked for again the next time.
      of: isWhole ? of : "",
      message: why.status === "fulfilled" ? why.value?.message : undefined,
      summary: about?.summary ?? "",
      mend: about?.mend ?? "",
    };
    this.draw();
  }

  private draw(): void {
    const group = this.group;
    if (group === undefined) {
      return;
    }
    const message = group.message ?? this.explained?.message ?? this.explained?.summary ?? "";
    const whole = group.about === undefined ? message : `${group.about}: ${message}`;
    const isLong = whole.length > SHOWN_IN_ROW;
    this.line.textContent = cut(whole, SHOWN_IN_ROW);
    // An open row says it once, whole.
    this.root.classList.toggle("redflow-error-long", isLong);
    const mend = group.help ?? this.explained?.mend ?? "";
    this.body.replaceChildren(
      ...(isLong ? [foreign("p", whole)] : []),
      ...answerButton(group, this.ways),
      ...(mend === "" ? [] : [element("strong", { text: text("agent.errors.mend") }), drawMend(mend)]),
      ...runButtons(group, this.ways),
    );
  }
}

function answerButton(group: ErrorGroup, ways: Ways): HTMLElement[] {
  const run = waitingRun(group);
  if (run === undefined) {
    return [];
  }
  return [element("div", { class: "redflow-error-answer" }, button(text("agent.runs.answer"), () => ways.answerRun(run)))];
}

function runButtons({ runs, count }: ErrorGroup, { showRun }: Ways): HTMLElement[] {
  if (runs.length === 0) {
    return [];
  }
  const buttons = runs.map(({ id, at }, place) => {
    const words = place === 0 ? text("agent.errors.showRun") : moment(at);
    return button(words, () => showRun(id), { title: text("agent.errors.showRun") });
  });
  const more = count - runs.length;
  const rest = more > 0 ? element("span", { class: "redflow-hint", text: text("agent.errors.more", { n: more }) }) : undefined;
  return [element("div", { class: "redflow-error-runs" }, ...buttons, rest)];
}
