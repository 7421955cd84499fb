// The clocks of the running calls. They tick once a second, and only they are drawn again.

import { type RunTimeline, activeCalls } from "@redflow/bindings";
import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { VNode } from "preact";
import { useEffect } from "preact/hooks";
import { useEnvironment } from "./environment.js";

const TICK_MS = 1_000;

/** The time by the clock of `now`, as a signal that ticks while a call of the run is active and the page is visible. */
export function useClock(timeline: RunTimeline, now: number): ReadonlySignal<number> {
  const clock = useSignal(now);
  const isActive = activeCalls(timeline).length > 0;
  useEffect(() => {
    clock.value = now;
    if (!isActive) {
      return;
    }
    const offset = now - Date.now();
    const timer = setInterval(() => {
      if (!document.hidden) {
        clock.value = Date.now() + offset;
      }
    }, TICK_MS);
    return () => clearInterval(timer);
  }, [isActive, now]);
  return clock;
}

export function Clock({ clock, since }: { clock: ReadonlySignal<number>; since: number }): VNode {
  const { formats } = useEnvironment();
  return <span class="redflow-clock">{formats.clock(clock.value - since)}</span>;
}
