// A text of a run that is folded until a user opens it. Owns when the text is requested: when it is opened, and again while it
// is open and its row changes.

import type { CutText, IterationDetail } from "@redflow/bindings";
import { cut, element, untrusted } from "./dom.mjs";
import { problemOf } from "./run-watch.mjs";
import { text } from "./text.mjs";

/** The most characters that are shown. The sidecar cuts at 64 KiB. */
const MAX_CHARS = 20_000;

/** Requests one iteration of a run. */
export type ReadIteration = (iteration: number) => Promise<IterationDetail>;

export class TextDetails {
  readonly root = element("details", { class: "redflow-details" });
  private readonly content = untrusted("pre", "", { class: "redflow-preview" });
  /** Changes when the text may have changed. */
  private key = "";
  /** The key of the text that is shown or requested. */
  private requested: string | undefined;

  constructor(
    name: string,
    private readonly read: () => Promise<CutText | undefined>,
  ) {
    this.root.append(element("summary", { text: text(`runs.texts.${name}`) }), this.content);
    this.root.hidden = true;
    this.root.addEventListener("toggle", () => this.update());
  }

  /** Shows or hides it. A new `key` means that the text may have changed. */
  show(visible: boolean, key: unknown): void {
    this.root.hidden = !visible;
    this.key = JSON.stringify(key) ?? "";
    this.update();
  }

  private update(): void {
    if (this.root.open && !this.root.hidden && this.requested !== this.key) {
      void this.request(this.key);
    }
  }

  private async request(key: string): Promise<void> {
    this.requested = key;
    if (this.content.textContent === "") {
      this.content.textContent = text("runs.texts.asking");
    }
    let shown: string;
    try {
      const found = await this.read();
      const end = found?.bytes === undefined ? "" : "…";
      shown = found === undefined ? text("runs.texts.none") : cut(`${found.text}${end}`, MAX_CHARS);
    } catch (error) {
      shown = text("runs.texts.failed", { message: cut(problemOf(error).message) });
      // The user can close it and open it again.
      this.requested = this.requested === key ? undefined : this.requested;
    }
    // A later request has a newer text.
    if (this.key === key && this.content.textContent !== shown) {
      this.content.textContent = shown;
    }
  }
}
