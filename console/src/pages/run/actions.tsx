// What a user can do with a run.

import { useState } from "preact/hooks";
import type { JsonValue, RunId, RunSummary } from "@redflow/bindings";
import { api, copy, say } from "../../app.js";
import { Act, Confirm, Dialog } from "../../parts/controls.js";
import { AskBox, OWN_INSTANCE } from "../../parts/ask.js";
import { useLoad } from "../../parts/load.js";
import { t } from "../../words.js";
import { OPEN_STATUSES } from "../runs/list.js";

/** The address of a file of a run that the browser downloads. */
export function addressOf(id: RunId, file: "journal" | "report"): string {
  return `api/runs/${encodeURIComponent(id)}/${file}`;
}

interface ActionsProps {
  summary: RunSummary;
  onChange: (summary: RunSummary) => void;
}

export function Actions({ summary, onChange }: ActionsProps) {
  const [dialog, setDialog] = useState<"cancel" | "ask" | undefined>();
  const isOpen = OPEN_STATUSES.includes(summary.status);
  const cancel = async (): Promise<void> => {
    onChange(await api.cancel(summary.runId));
    say(t("run.cancelled"));
  };
  return (
    <div class="buttons">
      {isOpen ? (
        <Act scope="run" kind="danger" onClick={() => setDialog("cancel")}>
          {t("run.cancel")}
        </Act>
      ) : null}
      <Act scope="run" onClick={() => setDialog("ask")}>
        {t("run.again")}
      </Act>
      <button type="button" onClick={() => void copy(window.location.href)}>
        {t("run.link")}
      </button>
      <a class="button" href={addressOf(summary.runId, "journal")} download={`${summary.runId}.jsonl`} title={t("run.journal.help")}>
        {t("run.journal")}
      </a>
      <a class="button" href={addressOf(summary.runId, "report")} download={`${summary.runId}.md`} title={t("run.report.help")}>
        {t("run.report")}
      </a>
      {dialog === "cancel" ? (
        <Confirm scope="run" title={t("run.cancel")} yes={t("run.cancel.yes")} act={cancel} onClose={() => setDialog(undefined)}>
          {t("run.cancel.ask")}
        </Confirm>
      ) : null}
      {dialog === "ask" ? <AskAgain summary={summary} onClose={() => setDialog(undefined)} /> : null}
    </div>
  );
}

/** The journal's line with the message that started the run. */
const START_LINE = 3;

/** The payload that started a run, as its journal has it. */
function payloadOf(line: string | undefined): JsonValue | undefined {
  try {
    const { record } = JSON.parse(line ?? "") as { record?: { fact?: { message?: { payload?: JsonValue } } } };
    return record?.fact?.message?.payload;
  } catch {
    return undefined;
  }
}

export function AskAgain({ summary: { runId, agent, name }, onClose }: { summary: RunSummary; onClose: () => void }) {
  const page = useLoad((signal) => api.journalPage(runId, { from: START_LINE, lines: 1, signal }), [runId]);
  const isRead = page.value !== undefined || page.error !== undefined;
  return (
    <Dialog title={t("run.again")} onClose={onClose}>
      {agent.instance !== OWN_INSTANCE ? (
        <p>{t("agent.elsewhere")}</p>
      ) : isRead ? (
        <AskBox node={agent.nodeId} name={name} payload={payloadOf(page.value?.lines[0])} />
      ) : null}
    </Dialog>
  );
}
