// The chosen node of a drawing: its wires and problems; of an agent also its tools, its last runs, and a box to ask it.

import type { FlowGraph, GraphNode } from "@redflow/bindings";
import { api } from "../../app.js";
import { AskBox, OWN_INSTANCE } from "../../parts/ask.js";
import { Age, Badge, Fact, Reading, Sheet } from "../../parts/controls.js";
import { Diagnostics } from "../../parts/diagnostics.js";
import { useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { Name, Quote, Words, showName, writeValue } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { formatCount, t, tOf } from "../../words.js";

/** The last runs that are shown. */
const LAST_RUNS = 5;

interface PanelProps {
  node: GraphNode;
  graph: FlowGraph;
  instance: string | undefined;
  onClose: () => void;
}

export function AgentPanel({ node, graph, instance, onClose }: PanelProps) {
  const problems = graph.diagnostics.filter((one) => one.node?.id === node.id || one.target?.id === node.id);
  const names = new Map(graph.nodes.map((one) => [one.id, one.name || one.id]));
  const bound = graph.wires.filter(({ from, to }) => from === node.id || to === node.id);
  return (
    <Sheet label={showName(node.name, node.id)} onClose={onClose}>
      <h2>
        <Name text={node.name} fallback={node.id} />
      </h2>
      <dl class="facts">
        <Fact name={t("flow.type")}>
          <Name text={node.type} />
        </Fact>
        <Fact name={t("flow.role")}>{tOf("role", node.role)}</Fact>
      </dl>
      <ul class="bindings">
        {bound.map(({ from, to, kind, port }, index) => (
          <li key={index}>
            {tOf("kind", kind)} {from === node.id ? "→" : "←"} <Name text={names.get(from === node.id ? to : from) ?? ""} />
            {port === undefined ? ` (${t("flow.binding")})` : ""}
          </li>
        ))}
      </ul>
      {problems.length > 0 ? <Diagnostics diagnostics={problems} /> : null}
      {node.role === "agent" ? <Agent id={node.id} name={node.name || node.id} instance={instance} /> : null}
    </Sheet>
  );
}

function Agent({ id, name, instance }: { id: string; name: string; instance: string | undefined }) {
  const state = useLoad((signal) => api.agentState(id, { instance, signal }), [id, instance]);
  const runs = useLoad((signal) => api.runs({ agent: id, instance: instance ?? OWN_INSTANCE, limit: LAST_RUNS }, { signal }), [id, instance]);
  return (
    <>
      {instance === undefined ? <AskBox node={id} name={name} /> : <p class="muted">{t("agent.elsewhere")}</p>}
      <h3>{t("agent.last")}</h3>
      <Problem error={runs.error} onRetry={runs.again} />
      {runs.value?.runs.length === 0 ? <p class="muted">{t("runs.empty")}</p> : null}
      <ul class="newest">
        {runs.value?.runs.map(({ runId, status, startedAt }) => (
          <li key={runId}>
            <a href={formatPlace(["runs", runId])}>
              <Age at={startedAt} />
            </a>
            <Badge status={status} />
          </li>
        ))}
      </ul>
      <h3>{t("tools")}</h3>
      <Problem error={state.error} onRetry={state.again} />
      {state.value === undefined ? state.error === undefined ? <Reading /> : null : state.value.tools.length === 0 ? <p class="muted">{t("agent.noTools")}</p> : null}
      {state.value?.tools.map((tool) => {
        const count = state.value?.calls.find((one) => one.tool === tool.name);
        return (
          <details key={tool.id} class="card">
            <summary>
              <Name text={tool.name} /> <small class="muted">{tool.effect === undefined ? t("effect.perCall") : tOf("effect", tool.effect)}</small>{" "}
              {count === undefined ? null : <small>{t("tool.calls", { n: formatCount(count.calls), failed: formatCount(count.failed) })}</small>}
            </summary>
            <p>
              <Words text={tool.description} />
            </p>
            {tool.inputSchema === undefined ? <p class="muted">{t("tool.noSchema")}</p> : <Quote text={writeValue(tool.inputSchema)} label={t("tool.schema")} />}
          </details>
        );
      })}
    </>
  );
}
