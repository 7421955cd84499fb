// The questions of a run that waits, each with its form.

import { useEffect, useRef } from "preact/hooks";
import type { RunSummary } from "@redflow/bindings";
import { allows, api, isOffline, say, sayFailure } from "../app.js";
import { ResolveForm } from "../timeline/index.js";
import { t } from "../words.js";
import { environment } from "./environment.js";

export function Resolve({ run, onDone }: { run: RunSummary; onDone: (run: RunSummary) => void }) {
  const isGone = useRef(false);
  useEffect(() => () => void (isGone.current = true), []);
  const questions = run.questions ?? (run.waiting === undefined ? [] : [run.waiting]);
  const forbidden = allows("run") ? (isOffline() ? t("act.offline") : undefined) : t("act.scope", { scope: "run" });
  return (
    <>
      {questions.map((call) => (
        <ResolveForm
          key={call.callId}
          environment={environment}
          call={call}
          forbidden={forbidden}
          resolve={async (request) => {
            try {
              const changed = await api.resolve(run.runId, request);
              say(t("inbox.resolved"));
              onDone(changed);
            } catch (error) {
              // Another user was faster, and the form is no longer there to show the refusal.
              if (isGone.current) {
                sayFailure(error);
              }
              throw error;
            }
          }}
        />
      ))}
    </>
  );
}
