// A page, an environment and events for the tests of the timeline.

import { type RunEvent, type RunEventKind, type RunTimeline, applyEvents, emptyTimeline } from "@redflow/bindings";
import { Window } from "happy-dom";
import { type ComponentChild, render } from "preact";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TimelineEnvironment, formatsIn } from "../src/timeline/index.js";

const { window } = new Window();
Object.assign(globalThis, { window, document: window.document, requestAnimationFrame: (act: () => void) => setTimeout(act, 0) });

/** The folder of the timeline's sources. */
export const SOURCES = join(import.meta.dirname, "..", "src", "timeline");

export const wordsIn = (language: string): Record<string, string> => JSON.parse(readFileSync(join(SOURCES, "words", `${language}.json`), "utf8"));

const english = wordsIn("en");

/** An environment in English. Every key and every value must exist. */
export const environment: TimelineEnvironment = {
  words(key, values = {}) {
    const text = english[key];
    if (text === undefined) {
      throw new Error(`${key} has no text`);
    }
    return text.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = values[name];
      if (value === undefined) {
        throw new Error(`${key} has no value for ${name}`);
      }
      return String(value);
    });
  },
  formats: formatsIn(() => "en-US", () => "en-GB"),
  describeProblem: (error) => ({ code: "CODE", message: error instanceof Error ? error.message : "" }),
  buttons: { plain: "plain", primary: "primary" },
};

const agent = { instance: "i", nodeId: "a" };

/** Events with times: [time, event]. */
export const timed = (kinds: [number, RunEventKind][]): RunEvent[] => kinds.map(([at, event], index) => ({ runId: "r", seq: index + 1, at, agent, event }));

export const timelineOf = (...kinds: [number, RunEventKind][]): RunTimeline => applyEvents(emptyTimeline(), timed(kinds));

export interface Screen {
  root: HTMLElement;
  show: (content: ComponentChild) => void;
}

/** A new place in the page, which is empty again after the test. */
export function screen(t: { after: (act: () => void) => void }): Screen {
  const root = document.body.appendChild(document.createElement("div"));
  t.after(() => {
    render(null, root);
    root.remove();
  });
  return { root, show: (content) => render(content, root) };
}

/** Waits until a condition holds: Preact draws a little later. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  for (let waited = 0; !holds(); waited += 5) {
    if (waited > 5_000) {
      throw new Error(`never: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Opens details as a user does. */
export function open(details: Element | null | undefined): void {
  (details as HTMLDetailsElement).open = true;
  details?.dispatchEvent(new window.Event("toggle") as unknown as Event);
}

export const textOf = (element: Element | null | undefined): string => (element?.textContent ?? "").replace(/\s+/g, " ").trim();
