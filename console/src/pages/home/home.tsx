// What needs attention, the agents, the spending of two weeks, and the newest runs.

import { useState } from "preact/hooks";
import type { AgentState, RunId, RunSummary, Stats } from "@redflow/bindings";
import { api } from "../../app.js";
import { LIST_TYPES } from "../../live.js";
import type { Page } from "../../page.js";
import { Plot } from "../../drawing/plot.js";
import { Age, Badge, Empty, Reading } from "../../parts/controls.js";
import { AskBox, OWN_INSTANCE } from "../../parts/ask.js";
import { useLive } from "../../parts/load.js";
import { helpOf, messageOf } from "../../parts/phrases.js";
import { Coded, Problem } from "../../parts/problem.js";
import { Name } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { formatCost, formatCount, formatExactCost, formatShort, t } from "../../words.js";
import { applyEvents, runEvents } from "../runs/list.js";
import { DAY_MS, dayOf, daysBetween, seriesOf, unpricedCallsOf } from "../usage/sums.js";

/** The days of the plot. */
const DAYS = 14;
/** The newest runs. */
const NEWEST = 8;
/** The most runs that are counted for "what needs you". */
const MOST_COUNTED = 200;
/** The most agents that are shown. */
const MAX_AGENTS = 50;
/** The least time between two reads while runs begin. */
const REFRESH_MS = 2_000;

interface Agent {
  state: AgentState;
  instance: string;
  tab: string | undefined;
}

/** The sums, or why they cannot be read. */
type Spending = Stats | { error: unknown };

interface HomeData {
  newest: readonly RunSummary[];
  waiting: ReadonlySet<RunId>;
  failed: number;
  agents: readonly Agent[];
  stats: Spending;
}

async function readHome(signal: AbortSignal): Promise<HomeData> {
  const now = Date.now();
  const [newest, waiting, failed, flows, instances, stats] = await Promise.all([
    api.runs({ limit: NEWEST }, { signal }),
    api.runs({ status: "waiting", limit: MOST_COUNTED }, { signal }),
    api.runs({ status: "failed", since: now - DAY_MS, limit: MOST_COUNTED }, { signal }),
    api.flows({ signal }),
    api.instances({ signal }),
    // Without sums the rest of the page is still of use.
    api.stats({ by: "agent", from: dayOf(now - (DAYS - 1) * DAY_MS), to: dayOf(now) }, { signal }).catch((error: unknown) => ({ error })),
  ]);
  const own = flows.flows.flatMap((tab) => tab.agents.map((state): Agent => ({ state, instance: OWN_INSTANCE, tab: tab.id })));
  const others = instances.instances.flatMap(({ instance, agents }) => agents.map((state): Agent => ({ state, instance, tab: undefined })));
  return { newest: newest.runs, waiting: new Set(waiting.runs.map(({ runId }) => runId)), failed: failed.runs.length, agents: [...own, ...others], stats };
}

function Home() {
  const [data, setData] = useState<HomeData | undefined>();
  const { refresh } = useLive(
    {
      types: [...LIST_TYPES, "deployed"],
      read: async (signal) => setData(await readHome(signal)),
      take: (items) => {
        const events = runEvents(items);
        setData((old) => (old === undefined ? old : { ...old, newest: applyEvents(old.newest, events, {}).rows }));
        // Most calls return in a run that did not wait, and change nothing here.
        if (events.length < items.length || events.some(({ runId, event }) => event.type !== "tool_returned" || data?.waiting.has(runId) === true)) {
          refresh(REFRESH_MS);
        }
      },
    },
    [],
  );
  if (data === undefined) {
    return (
      <>
        <h1>{t("home")}</h1>
        <Reading />
      </>
    );
  }
  const refused = data.agents.filter(({ state }) => !state.ready);
  return (
    <>
      <h1>{t("home")}</h1>
      <Needs waiting={data.waiting.size} failed={data.failed} refused={refused} />
      <div class="halves">
        <section aria-labelledby="home-agents">
          <h2 id="home-agents">{t("home.agents")}</h2>
          {data.agents.length === 0 ? (
            <Empty title={t("home.agents.none")}>
              <p>{t("home.agents.how")}</p>
            </Empty>
          ) : (
            <Agents agents={data.agents} />
          )}
        </section>
        <div>
          <section aria-labelledby="home-spend">
            <h2 id="home-spend">{t("home.spend", { n: DAYS })}</h2>
            <Spend stats={data.stats} />
          </section>
          <section aria-labelledby="home-newest">
            <h2 id="home-newest">{t("home.newest")}</h2>
            <Newest runs={data.newest} />
          </section>
        </div>
      </div>
    </>
  );
}

function Needs({ waiting, failed, refused }: { waiting: number; failed: number; refused: readonly Agent[] }) {
  const counted = (n: number): string => (n >= MOST_COUNTED ? `${formatCount(n)}+` : formatCount(n));
  if (waiting + failed + refused.length === 0) {
    return <p class="good">✓ {t("home.nothing")}</p>;
  }
  return (
    <section aria-labelledby="home-needs">
      <h2 id="home-needs">{t("home.needs")}</h2>
      <ul class="needs">
        {waiting > 0 ? (
          <li>
            <a href="#/inbox">{t("home.waiting", { n: counted(waiting) })}</a>
          </li>
        ) : null}
        {failed > 0 ? (
          <li>
            <a href="#/runs?status=failed&period=24h">{t("home.failed", { n: counted(failed) })}</a>
          </li>
        ) : null}
        {refused.length > 0 ? <li>{t("home.refused", { n: refused.length })}</li> : null}
      </ul>
    </section>
  );
}

function Agents({ agents }: { agents: readonly Agent[] }) {
  const shown = agents.slice(0, MAX_AGENTS);
  return (
    <>
      <ul class="agents">
        {shown.map(({ state: { node, ready, problems }, instance, tab }) => (
          <li key={`${instance} ${node.id}`} class="card">
            <details>
              <summary data-entry="">
                <Name text={node.name} fallback={node.id} /> <small class="muted">{node.type}</small>
                <span class={`badge ${ready ? "status-completed" : "status-failed"}`}>{ready ? t("agent.ready") : t("agent.refused")}</span>
              </summary>
              {problems
                .filter(({ severity }) => severity === "error")
                .map((problem, index) => (
                  <Coded key={index} code={problem.code} message={messageOf(problem)} help={helpOf(problem)} />
                ))}
              {ready && instance === OWN_INSTANCE ? <AskBox node={node.id} name={node.name || node.id} /> : null}
              {instance === OWN_INSTANCE ? null : <p class="muted">{t("agent.elsewhere")}</p>}
              <p>
                <a href={formatPlace(["runs"], { agent: node.id })}>{t("agent.runs")}</a>{" "}
                <a href={formatPlace(tab === undefined ? ["flow"] : ["flow", tab], { node: node.id, instance: instance === OWN_INSTANCE ? undefined : instance })}>
                  {t("agent.flow")}
                </a>
              </p>
            </details>
          </li>
        ))}
      </ul>
      {agents.length > MAX_AGENTS ? <p><a href="#/flow">{t("more", { n: agents.length - MAX_AGENTS })}</a></p> : null}
    </>
  );
}

function Spend({ stats }: { stats: Spending }) {
  if ("error" in stats) {
    return <Problem error={stats.error} />;
  }
  if (stats.rows.length === 0) {
    return (
      <Empty title={t("usage.empty")}>
        <p>{t("usage.empty.how")}</p>
      </Empty>
    );
  }
  const hasCost = stats.rows.some(({ cost }) => (cost ?? 0) > 0);
  const unpriced = unpricedCallsOf(stats);
  const series = seriesOf(stats, hasCost ? "cost" : "tokens");
  return (
    <>
      <Plot
        label={hasCost ? t("run.cost") : t("run.tokens")}
        days={daysBetween(stats.from, stats.to)}
        series={series}
        format={hasCost ? formatCost : formatShort}
        formatExactly={hasCost ? formatExactCost : formatCount}
        isSmall
      />
      {hasCost && unpriced > 0 ? <p class="muted">{t("usage.unpriced", { n: unpriced })}</p> : null}
      <p>
        <a href="#/usage">{t("usage")}</a>
      </p>
    </>
  );
}

function Newest({ runs }: { runs: readonly RunSummary[] }) {
  if (runs.length === 0) {
    return (
      <Empty title={t("runs.empty")}>
        <p>{t("runs.empty.how")}</p>
      </Empty>
    );
  }
  return (
    <>
      <ul class="newest">
        {runs.map(({ runId, name, agent, status, startedAt, hung }) => (
          <li key={runId}>
            <a href={formatPlace(["runs", runId])} data-entry="">
              <Name text={name} fallback={agent.nodeId} />
            </a>
            <Badge status={status} isHung={hung} />
            <Age at={startedAt} />
          </li>
        ))}
      </ul>
      <p>
        <a href="#/runs">{t("run.all")}</a>
      </p>
    </>
  );
}

export const page: Page = { feature: "home", route: "", title: "home", view: Home };
