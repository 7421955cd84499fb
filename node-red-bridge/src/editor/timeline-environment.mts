// What the timeline and its forms need from Node-RED's editor: texts, formats, problems and buttons.

import type { ReadTexts, TimelineEnvironment } from "../timeline/index.js";
import { adminApi } from "./admin-client.mjs";
import { formats } from "./formats.mjs";
import { problemOf } from "./run-watch.mjs";
import { describeProblem } from "./sidebar-problem.mjs";
import { text } from "./text.mjs";

const BUTTON = "red-ui-button red-ui-button-small";

export const timelineEnvironment: TimelineEnvironment = {
  words: text,
  formats,
  describeProblem: (error) => describeProblem(problemOf(error)),
  buttons: { plain: BUTTON, primary: `${BUTTON} primary` },
};

/** Requests the texts of a run. */
export function textsOf(runtime: string, run: string): ReadTexts {
  return (iteration) => adminApi.iteration(runtime, run, iteration);
}
