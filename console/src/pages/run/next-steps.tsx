// What to try next, for a user who has just seen the first run.

import type { RunSummary } from "@redflow/bindings";
import { api } from "../../app.js";
import { useLoad } from "../../parts/load.js";
import { t } from "../../words.js";

/** Users with more runs than this know the console. */
const FEW_RUNS = 3;

export function NextSteps({ summary }: { summary: RunSummary }) {
  const { value } = useLoad(() => api.runs({ limit: FEW_RUNS + 1 }), [summary.runId]);
  if (value === undefined || value.runs.length > FEW_RUNS) {
    return null;
  }
  return (
    <section class="cards" aria-label={t("next")}>
      <article class="card">
        <h2>{t("next.ask")}</h2>
        <p>{t("next.ask.what")}</p>
        <a class="button" href="#/">
          {t("home")}
        </a>
      </article>
      <article class="card">
        <h2>{t("next.break")}</h2>
        <p>{t("next.break.what")}</p>
        <a class="button" href="#/check?from=active">
          {t("check")}
        </a>
      </article>
      <article class="card">
        <h2>{t("next.nodeRed")}</h2>
        <p>{t("next.nodeRed.what")}</p>
        <code>npm install @redflow/node-red-bridge</code>
      </article>
    </section>
  );
}
