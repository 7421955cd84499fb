// The tools of the registry and of the flows: their state, class, schema, permissions, rules and calls.

import { useState } from "preact/hooks";
import type { PolicyRule, Stats, ToolEntry, ToolRule } from "@redflow/bindings";
import { api } from "../../app.js";
import type { Page, PageProps } from "../../page.js";
import { Age, Empty, Fact, Reading, Sheet } from "../../parts/controls.js";
import { Diagnostics } from "../../parts/diagnostics.js";
import { Field } from "../../parts/fields.js";
import { useLive, useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { Table } from "../../parts/table.js";
import { Name, Quote, Words, showName, showText, writeValue } from "../../parts/text.js";
import { formatPlace, replaceQuery } from "../../router.js";
import { formatCount, formatDuration, t, tOf } from "../../words.js";
import { DAY_MS, dayOf } from "../usage/sums.js";

/** The least time between two reads while tools are called. */
const REFRESH_MS = 1_000;
/** The days of the counts. */
const DAYS = 7;
/** The calls that are shown. */
const LAST_CALLS = 20;
/** The rules that are shown. */
const MAX_RULES = 50;
/** The most tools that are shown. */
const MAX_TOOLS = 500;

/** The calls and failures of each tool. */
export function countsOf(stats: Stats | undefined): Map<string, { calls: number; failed: number }> {
  const counts = new Map<string, { calls: number; failed: number }>();
  for (const { key, calls, failed } of stats?.rows ?? []) {
    const name = stats?.keys[key]?.key ?? "";
    const old = counts.get(name) ?? { calls: 0, failed: 0 };
    counts.set(name, { calls: old.calls + calls, failed: old.failed + failed });
  }
  return counts;
}

/** Names a tool in the address. Several nodes may have a tool of one id. */
function keyOf({ id, provider, instance }: ToolEntry): string {
  return [id, provider, ...(instance === undefined ? [] : [instance])].join(" ");
}

/** Reads the tools and their sums. Without the sums the list is still of use. */
async function readTools(signal: AbortSignal) {
  const now = Date.now();
  const [list, stats] = await Promise.all([
    api.tools({ signal }),
    api.stats({ by: "tool", from: dayOf(now - (DAYS - 1) * DAY_MS), to: dayOf(now) }, { signal }).then(
      (value) => ({ value, error: undefined }),
      (error: unknown) => ({ value: undefined, error }),
    ),
  ]);
  return { list, stats };
}

function Tools({ query }: PageProps) {
  const [data, setData] = useState<Awaited<ReturnType<typeof readTools>> | undefined>();
  const { refresh } = useLive(
    {
      // The calls of a run are counted when it ends.
      types: ["tool_invoked", "deployed", "run_finished"],
      read: async (signal) => setData(await readTools(signal)),
      take: () => refresh(REFRESH_MS),
    },
    [],
  );
  const { list, stats } = data ?? {};
  const counts = countsOf(stats?.value);
  const countOf = ({ id, name }: ToolEntry): string => {
    const count = counts.get(id) ?? counts.get(name);
    if (count !== undefined) {
      return t("tool.calls", { n: count.calls, failed: count.failed });
    }
    // The sums name the tools with the most calls; the calls of all others are one sum.
    return stats?.value === undefined ? "" : counts.has("") ? t("usage.other") : "0";
  };
  const words = (query["q"] ?? "").toLowerCase();
  const found = list?.tools.filter(({ id, name, description }) => `${id} ${name} ${description}`.toLowerCase().includes(words)) ?? [];
  const chosen = list?.tools.find((tool) => keyOf(tool) === query["tool"]);
  return (
    <>
      <h1>{t("tools")}</h1>
      <form class="filters" role="search" aria-label={t("filter")} onSubmit={(event: Event) => event.preventDefault()}>
        <Field label={t("tools.search")} type="search" data-filter="" value={query["q"] ?? ""} onText={(text) => replaceQuery({ ...query, q: text })} />
      </form>
      {stats?.error === undefined ? null : <Problem error={stats.error} onRetry={() => refresh()} />}
      {list === undefined ? (
        <Reading />
      ) : list.tools.length === 0 ? (
        <Empty title={t("tools.empty")}>
          <p>{t("tools.empty.how")}</p>
        </Empty>
      ) : (
        <div class="two">
          <Table
            label={t("tools")}
            heads={[t("tool"), t("run.status"), t("tool.effect"), t("tool.origin"), t("tool.week")]}
            numbers={[4]}
            foot={
              <>
                {found.length === 0 ? <p class="muted">{t("tools.notFound")}</p> : null}
                {found.length > MAX_TOOLS ? <p class="muted">{t("more", { n: found.length - MAX_TOOLS })}</p> : null}
              </>
            }
          >
                {found.slice(0, MAX_TOOLS).map((tool) => (
                  <ToolRow key={keyOf(tool)} tool={tool} count={countOf(tool)} isChosen={tool === chosen} query={query} />
                ))}
          </Table>
          {chosen === undefined ? null : <Tool key={keyOf(chosen)} tool={chosen} policy={list.policy ?? []} onClose={() => replaceQuery({ ...query, tool: "" })} />}
        </div>
      )}
      {(list?.problems?.length ?? 0) > 0 ? <Diagnostics diagnostics={list?.problems ?? []} /> : null}
    </>
  );
}

interface ToolRowProps {
  tool: ToolEntry;
  /** Its calls, in words. */
  count: string;
  isChosen: boolean;
  query: Readonly<Record<string, string>>;
}

function ToolRow({ tool, count, isChosen, query }: ToolRowProps) {
  return (
    <tr aria-current={isChosen ? "true" : undefined}>
      <th scope="row">
        <a href={formatPlace(["tools"], { ...query, tool: keyOf(tool) })} data-entry="">
          <Name text={tool.title ?? ""} fallback={tool.name} />
        </a>
        <br />
        <small class="muted">
          <Name text={tool.id} />
        </small>
      </th>
      <td>
        <span class={`badge tool-${tool.state}`}>{tOf("tool.state", tool.state)}</span>
      </td>
      <td>{tool.effect === undefined ? t("effect.perCall") : tOf("effect", tool.effect)}</td>
      <td>{tOf("tool.from", tool.origin)}</td>
      <td class="number">{count}</td>
    </tr>
  );
}

/** What a rule is about, as tools.yaml has it. */
export function narrowing(rule: PolicyRule): string {
  const { allow: _allow, ask: _ask, deny: _deny, limit: _limit, ...rest } = rule;
  return Object.entries(rest)
    .map(([key, value]) => `${key}: ${Array.isArray(value) ? value.join(", ") : String(value)}`)
    .join("; ");
}

function Rules({ rules, policy }: { rules: readonly ToolRule[]; policy: readonly PolicyRule[] }) {
  return (
    <>
      <h3>{t("tool.rules")}</h3>
      {rules.length === 0 ? <p class="muted">{t("tool.noRules")}</p> : null}
      <ul class="rules">
        {rules.slice(0, MAX_RULES).map(({ rule, action, calls }) => (
          <li key={rule}>
            <strong>{t("rule", { n: rule })}</strong> {tOf("rule", calls === "none" && action !== "allow" ? "none" : `${action}.${calls}`)}{" "}
            <code>{showText(narrowing(policy[rule - 1] ?? {}))}</code>
          </li>
        ))}
      </ul>
      {rules.length > MAX_RULES ? <p class="muted">{t("more", { n: rules.length - MAX_RULES })}</p> : null}
    </>
  );
}

interface ToolProps {
  tool: ToolEntry;
  policy: readonly PolicyRule[];
  onClose: () => void;
}

function Tool({ tool, policy, onClose }: ToolProps) {
  const calls = useLoad((signal) => api.toolCalls(tool.id, { limit: LAST_CALLS, signal }), [tool.id]);
  const { network, files, process, secrets } = tool.permissions;
  return (
    <Sheet label={showName(tool.name)} onClose={onClose}>
      <h2>
        <Name text={tool.name} />
      </h2>
      {tool.reason === undefined ? null : (
        <p class="problem">
          <Words text={tool.reason} />
        </p>
      )}
      <p>
        <Words text={tool.description} />
      </p>
      <dl class="facts">
        <Fact name={t("tool.provider")}>
          <Name text={tool.provider} />
        </Fact>
        {tool.instance === undefined ? null : (
          <Fact name="Node-RED">
            <Name text={tool.instance} />
          </Fact>
        )}
        <Fact name={t("tool.timeout")}>{formatDuration(tool.timeoutMs)}</Fact>
        <Fact name={t("tool.retry")}>{formatCount(tool.retry.max)}</Fact>
        <Fact name={t("tool.network")}>{tOf("network", network)}</Fact>
        <Fact name={t("tool.files")}>{tOf("files", files)}</Fact>
        <Fact name={t("tool.process")}>{process ? t("yes") : t("no")}</Fact>
        {secrets.length === 0 ? null : (
          <Fact name={t("tool.secrets")}>
            <Words text={secrets.join(", ")} />
          </Fact>
        )}
        <Fact name={t("tool.digest")}>
          <code>{tool.digest.slice(0, 16)}…</code>
        </Fact>
      </dl>
      {tool.inputSchema === undefined ? <p class="muted">{t("tool.noSchema")}</p> : <Quote text={writeValue(tool.inputSchema)} label={t("tool.schema")} />}
      {tool.outputSchema === undefined ? null : <Quote text={writeValue(tool.outputSchema)} label={t("tool.schema.output")} />}
      <Rules rules={tool.rules ?? []} policy={policy} />
      <h3>{t("tool.last")}</h3>
      <Problem error={calls.error} onRetry={calls.again} />
      {calls.value?.calls.length === 0 ? <p class="muted">{t("tool.noCalls")}</p> : null}
      <ul class="newest">
        {calls.value?.calls.map((call) => (
          <li key={call.callId + call.at}>
            {call.runId === undefined ? <Name text={call.by ?? ""} /> : <a href={formatPlace(["runs", call.runId])}>{t("run")}</a>}
            <span class={`badge status-${call.success ? "completed" : "failed"}`}>{call.success ? t("call.worked") : (call.code ?? t("call.failed"))}</span>
            <Age at={call.at} /> {formatDuration(call.durationMs)}
          </li>
        ))}
      </ul>
    </Sheet>
  );
}

export const page: Page = { feature: "tools", route: "tools", title: "tools", view: Tools };
