// The message that left the agent.

import type { RunDetail } from "@redflow/bindings";
import { Empty } from "../../parts/controls.js";
import { Said, writeValue } from "../../parts/text.js";
import { t } from "../../words.js";

export function Result({ detail: { result, refusedAnswer, summary } }: { detail: RunDetail }) {
  if (result === null && refusedAnswer === undefined) {
    return (
      <Empty title={t("result.none")}>
        <p>{summary.endedAt === undefined ? t("result.wait") : t("result.failed")}</p>
      </Empty>
    );
  }
  const { payload, ...rest } = result ?? {};
  return (
    <>
      {result === null ? null : <Said text={writeValue(payload)} label={t("result.payload")} />}
      {refusedAnswer === undefined ? null : <Said text={refusedAnswer} label={t("result.refused")} />}
      {result === null ? null : (
        <details class="card">
          <summary>{t("result.message")}</summary>
          <Said text={writeValue(rest)} label={t("result.message")} />
        </details>
      )}
    </>
  );
}
