// A sidecar with more runs, texts and nodes than a page shows at once.

import { setTimeout } from "node:timers/promises";

import { fakeModel } from "../kit/model.mjs";
import { eventually } from "../kit/wait.mjs";
import { startConsole } from "./fixture.mjs";
import { CHILDREN, largeNodes } from "./large-flow.mjs";

/** The runs of the quick agent: with the others more than one page of the list. */
const QUICK_RUNS = 130;
/** How long the long run waits for a person. */
const LONG_WAIT_MS = 6_000;
/** The requests at the same time. */
const AT_ONCE = 8;

/** Starts the sidecar and its runs. */
export async function startLarge() {
  const model = await fakeModel();
  const console = await startConsole((post) => largeNodes(post, model.url));
  /** Starts runs of the quick agent, and waits for their ends. */
  const fill = async (count) => {
    let left = count;
    const work = async () => {
      while (left-- > 0) {
        await console.ask("quick", "Fill the list");
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  };
  /** A run of the long agent, which waits for the outcome of its first call. */
  const startLong = async () => {
    const { json } = await console.request("POST", "/api/runs", { node: "long", payload: "Count" });
    const run = json.runs[0].runId;
    await console.untilStatus(run, "waiting");
    return run;
  };
  /** Resolves the call that a run waits for. */
  const resolve = async (run) => {
    const { waiting } = (await console.request("GET", `/api/runs/${run}?only=summary`)).json;
    await console.request("POST", `/api/runs/${run}/resolve`, { callId: waiting.callId, result: { success: true, output: "sent" } });
  };
  const long = await startLong();
  // It waits for so long that this pause is longer than all its calls together.
  const longEnded = setTimeout(LONG_WAIT_MS)
    .then(() => resolve(long))
    .then(() => console.untilStatus(long, "completed"));
  longEnded.catch(() => undefined);
  await fill(QUICK_RUNS);
  const crowd = await console.ask("crowd", "All of you");
  await eventually("all children have ended", async () => {
    const { runs } = (await console.request("GET", `/api/runs/${crowd}/tree?limit=500`)).json;
    return runs.filter(({ run }) => run.status === "completed").length === CHILDREN;
  });
  return {
    ...console,
    model,
    fill,
    startLong,
    crowd,
    long,
    /** Fails if the long run does not end. */
    longEnded,
    stop: async () => {
      await console.stop();
      model.stop();
    },
  };
}
