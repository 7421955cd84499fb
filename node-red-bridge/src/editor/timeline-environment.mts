// What the timeline and its forms need from Node-RED's editor: texts, formats, problems and buttons.

import type { CutText } from "@redflow/bindings";
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
  const cut = (text: string | undefined): { text: string } | undefined => (text === undefined ? undefined : { text });
  return async (iteration) => {
    const { prompt, answer, output, calls } = await adminApi.texts(runtime, run, iteration);
    return {
      prompt: { text: prompt },
      ...optional("answer", cut(answer)),
      ...optional("output", cut(output)),
      calls: calls.map(({ callId, input, result }) => ({ callId, input: { text: input }, ...optional("result", cut(result)) })),
    };
  };
}

function optional<K extends string>(name: K, value: CutText | undefined): { [name in K]?: CutText } {
  return (value === undefined ? {} : { [name]: value }) as { [name in K]?: CutText };
}
