// What the timeline needs from the page around it: words, formats and looks. It takes nothing from a global.

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Formats } from "./formats.js";

/** The values of a text. */
export type WordValues = Record<string, string | number>;

/** Returns the text of a key of `words/en.json` in the user's language, with its values in their places. */
export type Words = (key: string, values?: WordValues) => string;

/** A failed request, for people. */
export interface ShownProblem {
  code: string;
  message: string;
  /** What the user can do, or what the problem means for the page. */
  hint?: string;
}

export interface TimelineEnvironment {
  words: Words;
  formats: Formats;
  describeProblem: (error: unknown) => ShownProblem;
  /** Whether what people, models and tools said is hidden, for a shared screen. Absent: it is shown. */
  isShaded?: () => boolean;
  /** The classes of buttons. */
  buttons: { plain: string; primary: string };
}

const Environment = createContext<TimelineEnvironment | undefined>(undefined);

export const EnvironmentProvider = Environment.Provider;

export function useEnvironment(): TimelineEnvironment {
  const found = useContext(Environment);
  if (found === undefined) {
    throw new Error("a part of the timeline needs an EnvironmentProvider above it");
  }
  return found;
}
