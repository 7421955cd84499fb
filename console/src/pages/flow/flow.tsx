// The drawing of the active flow: at its own places, with its problems and the state of its agents.

import { useEffect, useState } from "preact/hooks";
import type { FlowGraph, GraphNode, RunEvent, RunStatus } from "@redflow/bindings";
import { api } from "../../app.js";
import { FlowDrawing } from "../../drawing/flow-drawing.js";
import { LIST_TYPES } from "../../live.js";
import type { Page, PageProps } from "../../page.js";
import { Empty, Reading } from "../../parts/controls.js";
import { Diagnostics } from "../../parts/diagnostics.js";
import { Choice, type Option } from "../../parts/fields.js";
import { useLive, useLoad } from "../../parts/load.js";
import { showName } from "../../parts/text.js";
import { go, replaceQuery } from "../../router.js";
import { formatCount, t } from "../../words.js";
import { runEvents, statusAfter } from "../runs/list.js";
import { AgentPanel } from "./agent-panel.js";

/** The newest runs that are looked at for the state of agents. */
const MOST_RUNS = 200;

/** The status of the newest run of each agent. */
export function statusesOf(runs: readonly { agent: { nodeId: string }; status: RunStatus }[]): Map<string, RunStatus> {
  const statuses = new Map<string, RunStatus>();
  for (const { agent, status } of runs) {
    if (!statuses.has(agent.nodeId)) {
      statuses.set(agent.nodeId, status);
    }
  }
  return statuses;
}

/** The status of the newest run of each agent, after events. */
function applyStatuses(statuses: ReadonlyMap<string, RunStatus>, events: readonly RunEvent[], instance: string): ReadonlyMap<string, RunStatus> {
  const changed = new Map(statuses);
  for (const { agent, event } of events) {
    if (agent.instance === instance) {
      changed.set(agent.nodeId, statusAfter(event) ?? "running");
    }
  }
  return changed;
}

function Flow({ params, query }: PageProps) {
  const [tab, instance] = [params["tab"], query["instance"]];
  const [graph, setGraph] = useState<FlowGraph | undefined>();
  const [statuses, setStatuses] = useState<ReadonlyMap<string, RunStatus>>(new Map());
  const instances = useLoad((signal) => api.instances({ signal }), []);
  const read = async (signal: AbortSignal): Promise<void> => {
    const [drawn, runs] = await Promise.all([api.flowGraph({ tab, instance, signal }), api.runs({ instance: instance ?? "local", limit: MOST_RUNS }, { signal })]);
    setGraph(drawn);
    setStatuses(statusesOf(runs.runs));
  };
  const { refresh } = useLive(
    {
      types: [...LIST_TYPES, "deployed"],
      read,
      take: (items) => {
        if (items.some((item) => item.type === "event" && item.event.kind === "flow" && item.event.event.type === "deployed")) {
          refresh();
        }
        setStatuses((old) => applyStatuses(old, runEvents(items), instance ?? "local"));
      },
    },
    [tab, instance],
  );
  useEffect(() => setGraph(undefined), [instance]);
  const chosen = graph?.nodes.find(({ id }) => id === query["node"]);
  return (
    <>
      <h1>{t("flow")}</h1>
      <form class="filters" aria-label={t("flow.which")}>
        {(instances.value?.instances.length ?? 0) > 0 ? (
          <Choice
            label="Node-RED"
            value={instance ?? ""}
            options={[["", t("flow.own")], ...(instances.value?.instances ?? []).map((one): Option => [one.instance, showName(one.instance)])]}
            onChoose={(name) => go(["flow"], { instance: name })}
          />
        ) : null}
        {graph === undefined || graph.tabs.length === 0 ? null : (
          <Choice
            label={t("flow.tab")}
            data-filter=""
            value={graph.tabs.find(({ isDrawn }) => isDrawn)?.id ?? ""}
            options={graph.tabs.map(({ id, label, isSubflow, nodes }) => [id, `${showName(label, id)} (${isSubflow ? `${t("flow.subflow")}, ` : ""}${formatCount(nodes)})`])}
            onChoose={(id) => go(["flow", id], { instance })}
          />
        )}
      </form>
      {graph === undefined ? (
        <Reading />
      ) : graph.nodes.length === 0 ? (
        <Empty title={t("flow.empty")}>
          <p>{t("flow.empty.how")}</p>
        </Empty>
      ) : (
        <div class="two">
          <FlowDrawing graph={graph} statuses={statuses} chosen={chosen?.id} onChoose={({ id }: GraphNode) => replaceQuery({ ...query, node: id })} />
          {chosen === undefined ? null : <AgentPanel key={chosen.id} node={chosen} graph={graph} instance={instance} onClose={() => replaceQuery({ ...query, node: "" })} />}
        </div>
      )}
      {graph === undefined || graph.diagnostics.length === 0 ? null : (
        <section aria-labelledby="flow-problems">
          <h2 id="flow-problems">{t("flow.problems")}</h2>
          <Diagnostics diagnostics={graph.diagnostics} />
        </section>
      )}
    </>
  );
}

export const page: Page = { feature: "flow", route: "flow/:tab?", title: "flow", view: Flow };
