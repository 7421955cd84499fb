// Cost, tokens, runs and failures by day.

import { useMemo } from "preact/hooks";
import type { Stats, StatsBy } from "@redflow/bindings";
import { api } from "../../app.js";
import { Plot } from "../../drawing/plot.js";
import type { Page, PageProps } from "../../page.js";
import { Empty } from "../../parts/controls.js";
import { Choice } from "../../parts/fields.js";
import { useLoad } from "../../parts/load.js";
import { Loaded, Problem } from "../../parts/problem.js";
import { Table } from "../../parts/table.js";
import { Name } from "../../parts/text.js";
import { formatPlace, replaceQuery } from "../../router.js";
import { formatCost, formatCount, formatExactCost, formatShort, formatTime, t, tOf } from "../../words.js";
import { DAY_MS, csvOf, dayOf, daysBetween, seriesOf, unpricedCallsOf } from "./sums.js";
import type { Measure } from "./sums.js";

const PERIODS = ["7", "30", "90", "400"] as const;
const GROUPS: readonly StatsBy[] = ["agent", "model", "tool"];

function Usage({ query }: PageProps) {
  const days = Number(PERIODS.find((name) => name === query["days"]) ?? "30");
  const by = GROUPS.find((name) => name === query["by"]) ?? "agent";
  const to = dayOf(Date.now());
  const from = dayOf(Date.now() - (days - 1) * DAY_MS);
  const sums = useLoad((signal) => api.stats({ by, from, to }, { signal }), [from, to, by]);
  const failures = useLoad((signal) => api.stats({ by: "code", from, to }, { signal }), [from, to]);
  const set = (name: string) => (value: string) => replaceQuery({ ...query, [name]: value });
  return (
    <>
      <div class="head">
        <h1>{t("usage")}</h1>
        {sums.value === undefined ? null : <Csv stats={sums.value} />}
      </div>
      <form class="filters" aria-label={t("filter")}>
        <Choice label={t("filter.period")} data-filter="" value={String(days)} options={PERIODS.map((name) => [name, t("usage.days", { n: Number(name) })])} onChoose={set("days")} />
        <Choice label={t("usage.by")} value={by} options={GROUPS.map((name) => [name, tOf("role", name)])} onChoose={set("by")} />
      </form>
      <Loaded load={sums}>{(stats) => <Sums stats={stats} />}</Loaded>
      <section aria-labelledby="usage-failures">
        <h2 id="usage-failures">{t("usage.failures")}</h2>
        <Problem error={failures.error} onRetry={failures.again} />
        {failures.value === undefined ? null : <Failures stats={failures.value} />}
      </section>
      <p class="muted">{t("usage.utc")}</p>
    </>
  );
}

function Sums({ stats }: { stats: Stats }) {
  const days = useMemo(() => daysBetween(stats.from, stats.to), [stats.from, stats.to]);
  const measures: readonly Measure[] = stats.by === "tool" ? ["calls", "failed"] : ["cost", "tokens", "cached", "runs", "failed"];
  const plots = measures.map((measure) => ({ measure, series: seriesOf(stats, measure) })).filter(({ series }) => series.length > 0);
  if (plots.length === 0) {
    return (
      <Empty title={t("usage.empty")}>
        <p>{t("usage.empty.how")}</p>
      </Empty>
    );
  }
  const unpriced = unpricedCallsOf(stats);
  return (
    <div class="plots">
      {unpriced === 0 ? null : <p class="muted">{t("usage.unpriced", { n: unpriced })}</p>}
      {plots.map(({ measure, series }) => (
        <Plot
          key={measure}
          label={t(`usage.${measure}`)}
          {...{ days, series }}
          format={measure === "cost" ? formatCost : measure === "tokens" || measure === "cached" ? formatShort : formatCount}
          formatExactly={measure === "cost" ? formatExactCost : formatCount}
        />
      ))}
    </div>
  );
}

function Failures({ stats }: { stats: Stats }) {
  const totals = seriesOf(stats, "failed").toSorted((a, b) => b.total - a.total);
  if (totals.length === 0) {
    return <p class="good">✓ {t("usage.failures.none")}</p>;
  }
  return (
    <>
      <Table label={t("usage.failures")} heads={[t("run.code"), t("usage.failed")]} numbers={[1]}>
        {totals.map(({ name, total }) => (
          <tr key={name}>
            <th scope="row">{name === "" ? t("usage.other") : <a href={formatPlace(["runs"], { code: name })}><Name text={name} /></a>}</th>
            <td class="number">{formatCount(total)}</td>
          </tr>
        ))}
      </Table>
      {stats.searchedTo === undefined ? null : <p class="muted">{t("usage.searched", { at: formatTime(stats.searchedTo) })}</p>}
    </>
  );
}

/** Downloads the sums of the page. */
function Csv({ stats }: { stats: Stats }) {
  const save = (): void => {
    const address = URL.createObjectURL(new Blob([csvOf(stats)], { type: "text/csv" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = `redflow-${stats.by}-${stats.from}-${stats.to}.csv`;
    link.click();
    URL.revokeObjectURL(address);
  };
  return (
    <button type="button" onClick={save}>
      {t("usage.csv")}
    </button>
  );
}

export const page: Page = { feature: "usage", route: "usage", title: "usage", view: Usage };
