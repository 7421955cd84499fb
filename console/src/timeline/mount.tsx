// Draws the timeline and its forms into elements of a page that does not use Preact, such as Node-RED's editor.

import type { RunTimeline } from "@redflow/bindings";
import { render } from "preact";
import { CancelForm, type CancelFormProps } from "./cancel.js";
import type { TimelineEnvironment } from "./environment.js";
import { ResolveForm, type ResolveFormProps } from "./resolve.js";
import type { LiveText } from "./steps.js";
import type { ReadTexts } from "./texts.js";
import { Timeline } from "./timeline.js";

export interface MountedTimeline {
  /** Draws the timeline at the time `now`, with the text that the model writes now. */
  show(timeline: RunTimeline, now: number, live?: LiveText): void;
  destroy(): void;
}

/** Draws narrow timelines at the end of `host`. */
export function mountTimeline(host: HTMLElement, environment: TimelineEnvironment, readTexts: ReadTexts): MountedTimeline {
  const root = host.appendChild(document.createElement("div"));
  return {
    show(timeline, now, live) {
      render(<Timeline layout={{ mode: "narrow", readTexts }} {...{ environment, timeline, now, live }} />, root);
    },
    destroy() {
      render(null, root);
      root.remove();
    },
  };
}

/** An element with the form that cancels a run. */
export function mountCancelForm(props: CancelFormProps): HTMLElement {
  const root = document.createElement("div");
  render(<CancelForm {...props} />, root);
  return root;
}

/** An element with the form that resolves a call. */
export function mountResolveForm(props: ResolveFormProps): HTMLElement {
  const root = document.createElement("div");
  render(<ResolveForm {...props} />, root);
  return root;
}
