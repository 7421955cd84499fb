// The head of a run: its state, what it used, where it came from, and the proof.

import { useState } from "preact/hooks";
import type { ReplayReport, RunSummary, RunTimeline } from "@redflow/bindings";
import { usedBy } from "@redflow/bindings";
import { api } from "../../app.js";
import { Act, Age, Badge, CopyButton, Fact } from "../../parts/controls.js";
import { Coded, Problem } from "../../parts/problem.js";
import { Name } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { formatCount, formatDuration, formatKnownCost, t } from "../../words.js";
import { FirstDifference } from "./difference.js";

export function Head({ summary, timeline }: { summary: RunSummary; timeline: RunTimeline }) {
  const { runId, status, hung, startedAt, endedAt, agent, by, parent, children, tally } = summary;
  const used = tally ?? usedBy(timeline);
  const cost = used === undefined ? undefined : formatKnownCost(used);
  return (
    <>
      <dl class="facts">
        <Fact name={t("run.status")}>
          <Badge status={status} isHung={hung} />
        </Fact>
        <Fact name={t("run.start")}>
          <Age at={startedAt} />
        </Fact>
        {endedAt === undefined ? null : <Fact name={t("run.duration")}>{formatDuration(endedAt - startedAt)}</Fact>}
        <Fact name={t("run.iterations")}>{formatCount(tally?.iterations ?? timeline.steps.at(-1)?.iteration ?? 0)}</Fact>
        {used === undefined ? null : (
          <Fact name={used.estimated === true ? t("run.tokens.estimated") : t("run.tokens")}>
            {t("run.tokens.both", { input: used.inputTokens, output: used.outputTokens })}
          </Fact>
        )}
        {cost === undefined ? null : <Fact name={t("run.cost")}>{cost}</Fact>}
        <Fact name="Node-RED">
          <Name text={agent.instance} />
        </Fact>
        {by === undefined ? null : (
          <Fact name={t("run.by")}>
            <Name text={by} />
          </Fact>
        )}
        {parent === undefined ? null : (
          <Fact name={t("run.parent")}>
            <a href={formatPlace(["runs", parent])}>{parent.slice(0, 13)}…</a>
          </Fact>
        )}
        {(children ?? 0) > 0 ? <Fact name={t("run.children")}>{formatCount(children ?? 0)}</Fact> : null}
        <Fact name={t("run.id")}>
          <code>{runId}</code> <CopyButton text={runId} name={t("run.id")} />
        </Fact>
      </dl>
      <Proof key={`${runId} ${status}`} summary={summary} />
    </>
  );
}

/** Replays the run and shows the proof, or the first difference. */
function Proof({ summary: { runId } }: { summary: RunSummary }) {
  const [report, setReport] = useState<ReplayReport | undefined>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const replay = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      setReport(await api.replay(runId));
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return (
    <section class="proof" aria-label={t("proof")}>
      <Act scope="read" kind="primary" isBusy={isBusy} onClick={() => void replay()}>
        {t("proof.replay")}
      </Act>
      <div role="status">
        {report === undefined ? (
          <span class="muted">{t("proof.what")}</span>
        ) : report.equal ? (
          <span class="proved">
            ✓ {t("proof.equal", { facts: report.facts, effects: report.effects })} {report.complete ? null : t("proof.open")}
          </span>
        ) : (
          <span class="differs">✗ {report.problem === undefined ? t("proof.differs") : t("proof.damaged", { facts: report.facts, effects: report.effects })}</span>
        )}
      </div>
      {report?.problem === undefined ? null : <Coded code={report.problem.code} message={report.problem.message} />}
      {report === undefined || report.difference === null ? null : <FirstDifference id={runId} difference={report.difference} />}
      <Problem error={error} />
    </section>
  );
}
