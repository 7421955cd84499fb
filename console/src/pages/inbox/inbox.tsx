// The runs that wait for a person: calls whose outcome is unknown.

import { useState } from "preact/hooks";
import type { RunSummary } from "@redflow/bindings";
import { api, shade } from "../../app.js";
import { LIST_TYPES } from "../../live.js";
import type { Page } from "../../page.js";
import { Age, Empty, Reading } from "../../parts/controls.js";
import { useLive } from "../../parts/load.js";
import { Resolve } from "../../parts/resolve.js";
import { Name } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { t } from "../../words.js";
import { changesWaiting, runEvents } from "../runs/list.js";

/** The most runs that are shown. */
const MAX_RUNS = 50;
/** The least time between two reads while runs begin to wait. */
const REFRESH_MS = 1_000;

function Inbox() {
  const [runs, setRuns] = useState<readonly RunSummary[] | undefined>();
  const [hasMore, setMore] = useState(false);
  const { refresh } = useLive(
    {
      types: LIST_TYPES,
      read: async (signal) => {
        const page = await api.runs({ status: "waiting", limit: MAX_RUNS }, { signal });
        setRuns(page.runs);
        setMore(page.next !== undefined);
      },
      take: (items) => {
        if (changesWaiting(runEvents(items), new Set(runs?.map(({ runId }) => runId)))) {
          refresh(REFRESH_MS);
        }
      },
    },
    [],
  );
  return (
    <>
      <h1>{t("inbox")}</h1>
      {runs === undefined ? (
        <Reading />
      ) : runs.length === 0 ? (
        <Empty title={t("inbox.empty")}>
          <p>{t("inbox.empty.what")}</p>
          <p>
            <a href="#/runs">{t("run.all")}</a>
          </p>
        </Empty>
      ) : (
        <ul class="inbox">
          {runs.map((run) => (
            <li key={run.runId} class="card">
              <h2>
                <a href={formatPlace(["runs", run.runId])} data-entry="">
                  <Name text={run.name} fallback={run.agent.nodeId} />
                </a>{" "}
                <small class="muted">
                  <Age at={run.startedAt} />
                </small>
              </h2>
              {shade.value ? <p class="muted">{t("shade.hidden")}</p> : <Resolve run={run} onDone={() => refresh()} />}
            </li>
          ))}
        </ul>
      )}
      {hasMore ? <p class="muted">{t("inbox.more", { n: MAX_RUNS })}</p> : null}
    </>
  );
}

export const page: Page = { feature: "inbox", route: "inbox", title: "inbox", view: Inbox };
