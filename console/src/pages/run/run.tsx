// One run: what happened, why, what it cost, and the proof.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { EventsItem, RunDetail, RunId, RunSummary, RunTimeline, TreeRun } from "@redflow/bindings";
import { applyEvents, emptyTimeline, endOfText } from "@redflow/bindings";
import { api, readFailure, shade } from "../../app.js";
import { addShortcuts } from "../../shortcuts.js";
import type { Page, PageProps } from "../../page.js";
import { Reading, Tabs } from "../../parts/controls.js";
import { useLive } from "../../parts/load.js";
import { Coded, Problem } from "../../parts/problem.js";
import { Name, Unfold } from "../../parts/text.js";
import { replaceQuery } from "../../router.js";
import { readTree, replaceBeginning } from "../../tree.js";
import { t } from "../../words.js";
import { applyEvent, applyToChildren, runEvents } from "../runs/list.js";
import { Actions } from "./actions.js";
import { Head } from "./head.js";
import { Journal } from "./journal.js";
import { NextSteps } from "./next-steps.js";
import { Plan } from "./plan.js";
import { Result } from "./result.js";
import { Step } from "./step.js";
import { Steps } from "./steps.js";

/** The most characters of an answer that is being written. */
const MAX_WRITTEN = 64_000;
/** The least time between two reads while the run goes on. */
const REFRESH_MS = 250;
/** The events that change what the sidecar says of a run. A call of a tool may start a run. */
const CHANGES: readonly string[] = ["tool_called", "waiting_for_outcome", "run_finished", "tool_returned"];
/** The most child runs whose events are followed. */
const MAX_FOLLOWED = 200;

const TABS = ["steps", "result", "journal", "plan"] as const;
type Tab = (typeof TABS)[number];

/** What a model writes now. */
export interface WrittenText {
  iteration: number;
  attempt: number;
  text: string;
  /** Whether its beginning is missing. */
  isCut: boolean;
}

/** The text that is being written, after more of it. A new iteration or attempt begins anew. */
export function addDeltas(written: WrittenText | undefined, items: readonly EventsItem[]): WrittenText | undefined {
  let next = written;
  for (const item of items) {
    if (item.type === "delta") {
      const { iteration, attempt, text } = item.delta;
      const isSame = next?.iteration === iteration && next.attempt === attempt;
      const whole = `${isSame ? next?.text : ""}${text}`;
      next = { iteration, attempt, text: endOfText(whole, MAX_WRITTEN), isCut: whole.length > MAX_WRITTEN || (isSame && next?.isCut === true) };
    }
  }
  return next;
}

/** The timeline for one drawing. The fold changes its steps in place, and a part with the same step is not drawn again. */
export function copyTimeline(timeline: RunTimeline): RunTimeline {
  const steps = timeline.steps.map((step) => ({
    ...step,
    ...(step.model === undefined ? {} : { model: { ...step.model } }),
    tools: step.tools.map((tool) => ({ ...tool })),
  }));
  return { ...timeline, steps };
}

/** The child runs to follow: those before, and those that have not ended. They stay, so that the connection does. */
function addOpen(followed: readonly RunId[], runs: readonly TreeRun[]): readonly RunId[] {
  const open = runs.filter(({ run }) => run.endedAt === undefined && !followed.includes(run.runId)).map(({ run }) => run.runId);
  return open.length === 0 || followed.length >= MAX_FOLLOWED ? followed : [...followed, ...open].slice(0, MAX_FOLLOWED);
}

function Run({ params, query }: PageProps) {
  const id = params["id"] ?? "";
  const [detail, setDetail] = useState<RunDetail | undefined>();
  const [summary, setSummary] = useState<RunSummary | undefined>();
  const [written, setWritten] = useState<WrittenText | undefined>();
  const [timeline, setTimeline] = useState<RunTimeline>(emptyTimeline());
  const [isSheetOpen, setSheetOpen] = useState(false);
  const [wasAsked, setAsked] = useState(false);
  const [childRuns, setChildRuns] = useState<readonly TreeRun[]>([]);
  const [isTreeCut, setTreeCut] = useState(false);
  const [followed, setFollowed] = useState<readonly RunId[]>([]);
  /** What the child runs that are shown were read for. */
  const treeKey = useRef("");
  const fold = useRef<RunTimeline>(emptyTimeline());

  const show = (read: RunDetail): void => {
    setDetail(read);
    setSummary(read.summary);
    setTimeline(copyTimeline(applyEvents(fold.current, read.events)));
  };
  const { refresh } = useLive(
    {
      runs: [id, ...followed],
      deltas: true,
      read: async (signal, hasMissed) => {
        const read = await api.run(id, { signal });
        show(read);
        const { children = 0, status } = read.summary;
        const key = `${children} ${status} ${followed.length}`;
        if (children === 0 || (key === treeKey.current && !hasMissed)) {
          return;
        }
        const isCut = await readTree(
          (after) => api.runTree(id, { after }, { signal }),
          (runs, isAll) => {
            setChildRuns((old) => (isAll ? runs : replaceBeginning(old, runs)));
            setFollowed((old) => (isAll ? addOpen(old, runs) : old));
          },
        );
        setTreeCut(isCut);
        treeKey.current = key;
      },
      take: (items) => {
        const events = runEvents(items);
        const own = events.filter(({ runId }) => runId === id);
        setWritten((old) => addDeltas(old, items.filter((item) => item.type === "delta" && item.delta.runId === id)));
        setChildRuns((old) => applyToChildren(old, events));
        if (own.length === 0) {
          return;
        }
        setTimeline(copyTimeline(applyEvents(fold.current, own)));
        setSummary((old) => (old === undefined ? old : own.reduce(applyEvent, old)));
        if (own.some(({ event }) => CHANGES.includes(event.type))) {
          refresh(REFRESH_MS);
        }
      },
    },
    [id, followed.join(" ")],
  );
  const steps = timeline.steps.map(({ iteration }) => iteration);
  const last = steps.at(-1) ?? 0;
  const asked = Number(query["step"]);
  const step = steps.includes(asked) ? asked : last;
  const choose = (iteration: number): void => {
    setSheetOpen(true);
    replaceQuery({ ...query, step: String(iteration) });
  };
  const tab: Tab = TABS.find((name) => name === query["tab"]) ?? "steps";
  const move = (by: number): void => {
    const next = steps[steps.indexOf(step) + by];
    if (next !== undefined) {
      choose(next);
    }
  };
  // Before the next key: an effect after the paint would let a second key see the step before.
  useLayoutEffect(() => addShortcuts({ "[": () => move(-1), "]": () => move(1) }), [step, steps.length, JSON.stringify(query)]);

  if (detail === undefined || summary === undefined) {
    return (
      <>
        <h1>{t("run")}</h1>
        {readFailure.value === undefined ? <Reading /> : <p><a href="#/runs">{t("run.all")}</a></p>}
      </>
    );
  }
  const error = timeline.end?.error;
  // The words of an agent without debug stay folded until the user asks for them.
  const isUnfolded = timeline.debug || wasAsked;
  return (
    <>
      <p class="crumbs">
        <a href="#/runs">{t("runs")}</a>
      </p>
      <div class="head">
        <h1>
          <Name text={summary.name} fallback={summary.agent.nodeId} />
        </h1>
        <Actions summary={summary} onChange={setSummary} />
      </div>
      <Head summary={summary} timeline={timeline} />
      {detail.problem === undefined ? null : <Coded code={detail.problem.code} message={detail.problem.message} />}
      {detail.difference === undefined ? null : <Problem error={detail.difference.message} />}
      {error === undefined ? null : <Coded code={error.code} message={shade.value ? t("shade.hidden") : error.message} />}
      <Tabs
        label={t("run")}
        tabs={TABS.map((name) => ({ name, title: t(`run.tab.${name}`) }))}
        chosen={tab}
        onChoose={(name) => replaceQuery({ ...query, tab: name === "steps" ? "" : name })}
      >
        {tab === "steps" ? (
          <div class="two">
            <Steps summary={summary} timeline={timeline} written={isUnfolded ? written : undefined} chosen={step} onChoose={choose} onChange={setSummary} childRuns={childRuns} isTreeCut={isTreeCut} />
            {last === 0 ? null : (
              <Step
                key={`${id} ${step}`}
                {...{ summary, timeline, written, isUnfolded }}
                onUnfold={() => setAsked(true)}
                iteration={step}
                isOpen={isSheetOpen}
                onClose={() => setSheetOpen(false)}
              />
            )}
          </div>
        ) : tab === "result" ? (
          isUnfolded ? <Result detail={detail} /> : <Unfold onUnfold={() => setAsked(true)} />
        ) : tab === "journal" ? (
          <>
            {isUnfolded ? null : <Unfold onUnfold={() => setAsked(true)} />}
            <Journal id={id} isUnfolded={isUnfolded} />
          </>
        ) : (
          <Plan id={id} />
        )}
      </Tabs>
      <NextSteps summary={summary} />
    </>
  );
}

export const page: Page = { feature: "runs", route: "runs/:id", title: "run", view: Run, isHidden: true };
