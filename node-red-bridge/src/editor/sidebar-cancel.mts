// Ending a run, asked about once and in place. Owns the question; what the run did is told elsewhere.

import type { RunSummary } from "@redflow/bindings";
import { ask, isAllowed } from "./ask.mjs";
import { button, element } from "./dom.mjs";
import { problemOf } from "./runs-feed.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

/** Goes into the run's error, which is English. */
const REASON = "by hand, in the Node-RED editor";

export class CancelForm {
  readonly root = element("div", { class: "redflow-cancel" });

  constructor(
    private readonly runtime: string,
    private readonly run: string,
    private readonly done: (run: RunSummary) => void,
  ) {
    this.offer(false);
  }

  private offer(focus: boolean): void {
    if (!isAllowed("redflow.write")) {
      this.root.replaceChildren(element("p", { class: "redflow-hint", text: text("runs.problem.readOnly") }));
      return;
    }
    const wish = button(text("runs.cancel.wish"), () => this.confirm());
    this.root.replaceChildren(wish);
    if (focus) {
      wish.focus();
    }
  }

  private confirm(): void {
    const yes = button(text("runs.cancel.yes"), () => void this.cancel(), { class: "red-ui-button red-ui-button-small primary" });
    const no = button(text("runs.cancel.no"), () => this.offer(true));
    this.root.replaceChildren(element("span", { text: text("runs.cancel.ask") }), yes, no);
    no.focus();
  }

  private async cancel(): Promise<void> {
    this.root.replaceChildren(element("span", { class: "redflow-hint", text: text("runs.cancel.now") }));
    try {
      this.done(await ask.cancel(this.runtime, this.run, { reason: REASON }));
    } catch (error) {
      this.offer(true);
      this.root.append(problemLine(problemOf(error)));
    }
  }
}
