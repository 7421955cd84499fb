// A cost in words. A price that is not known is not 0.

import type { Used } from "@redflow/bindings";
import type { TimelineEnvironment } from "./environment.js";

/** The cost of a call, a run or several, as far as it is known. Undefined if no tokens were used. */
export function costText(
  { words, formats }: Pick<TimelineEnvironment, "words" | "formats">,
  { inputTokens, outputTokens, cost, unpricedCalls = 0 }: Pick<Used, "inputTokens" | "outputTokens" | "cost" | "unpricedCalls">,
): string | undefined {
  if (cost === undefined) {
    return inputTokens + outputTokens === 0 ? undefined : words("timeline.cost.unknown");
  }
  const known = formats.cost(cost);
  return unpricedCalls === 0 ? known : words("timeline.cost.least", { cost: known, n: formats.count(unpricedCalls) });
}
