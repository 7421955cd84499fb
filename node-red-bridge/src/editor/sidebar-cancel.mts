// The form that cancels a run, with a confirmation in place.

import type { RunSummary } from "@redflow/bindings";
import { adminApi, isAllowed } from "./admin-client.mjs";
import { button, element } from "./dom.mjs";
import { problemOf } from "./run-watch.mjs";
import { problemLine } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

/** The reason in the run's error, which is always English. */
const REASON = "by hand, in the Node-RED editor";

export class CancelForm {
  readonly root = element("div", { class: "redflow-cancel" });

  constructor(
    private readonly runtime: string,
    private readonly run: string,
    private readonly onDone: (run: RunSummary) => void,
  ) {
    this.showButton();
  }

  /** Shows the first button, and returns it; undefined if the user may not cancel. */
  private showButton(): HTMLButtonElement | undefined {
    if (!isAllowed("redflow.write")) {
      this.root.replaceChildren(element("p", { class: "redflow-hint", text: text("runs.problem.readOnly") }));
      return undefined;
    }
    const cancel = button(text("runs.cancel.wish"), () => this.confirm());
    this.root.replaceChildren(cancel);
    return cancel;
  }

  private confirm(): void {
    const yes = button(text("runs.cancel.yes"), () => void this.cancel(), { class: "red-ui-button red-ui-button-small primary" });
    const no = button(text("runs.cancel.no"), () => this.showButton()?.focus());
    this.root.replaceChildren(element("span", { text: text("runs.cancel.ask") }), yes, no);
    no.focus();
  }

  private async cancel(): Promise<void> {
    this.root.replaceChildren(element("span", { class: "redflow-hint", text: text("runs.cancel.now") }));
    try {
      this.onDone(await adminApi.cancel(this.runtime, this.run, { reason: REASON }));
    } catch (error) {
      this.showButton()?.focus();
      this.root.append(problemLine(problemOf(error)));
    }
  }
}
