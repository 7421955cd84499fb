// Reads a long list part by part.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { t } from "../words.js";
import { type LoadState, useLoad } from "./load.js";

/** Reads the part of a list that follows `after`, and gives the buttons to the parts before and after it. */
export function useTurns<After, T extends { next?: After }>(
  read: (after: After | undefined, signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
  first?: After,
): LoadState<T> & { turns: ComponentChildren } {
  /** Where the shown part and those before it begin. */
  const [afters, setAfters] = useState<readonly After[]>(first === undefined ? [] : [first]);
  const load = useLoad((signal) => read(afters.at(-1), signal), [...keys, afters]);
  const next = load.value?.next;
  const turns =
    afters.length === 0 && next === undefined ? null : (
      <div class="buttons">
        <button type="button" disabled={afters.length === 0} onClick={() => setAfters(afters.slice(0, -1))}>
          {t("text.before")}
        </button>
        <button type="button" disabled={next === undefined} onClick={() => next !== undefined && setAfters([...afters, next])}>
          {t("text.next")}
        </button>
      </div>
    );
  return { ...load, turns };
}
