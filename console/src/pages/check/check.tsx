// Checks a flow that a user pastes or drops. Nothing is deployed.

import { useEffect, useState } from "preact/hooks";
import type { CheckAnswer, Diagnostic, JsonValue, Profile } from "@redflow/bindings";
import { api, copy, sayFailure } from "../../app.js";
import { FlowDrawing } from "../../drawing/flow-drawing.js";
import type { Page, PageProps } from "../../page.js";
import { Act, Tabs } from "../../parts/controls.js";
import { Diagnostics } from "../../parts/diagnostics.js";
import { Drop } from "../../parts/drop.js";
import { Choice, valueOf } from "../../parts/fields.js";
import { Problem } from "../../parts/problem.js";
import { showName } from "../../parts/text.js";
import { t } from "../../words.js";

const PROFILES: readonly Profile[] = ["strict", "redflow"];
/** The largest flow that the page takes. */
const MAX_BYTES = 4 * 1024 * 1024;

/** A report as text, for a message or an issue. */
export function reportText(profile: Profile, diagnostics: readonly Diagnostic[]): string {
  const lines = diagnostics.map(({ severity, code, message, help, node }) => `${severity} ${code}${node === null ? "" : ` at ${node.name || node.id} (${node.id})`}: ${message}\n  ${help}`);
  return [`profile ${profile}: ${diagnostics.length} problems`, ...lines].join("\n");
}

function Check({ query }: PageProps) {
  const [text, setText] = useState("");
  const [reports, setReports] = useState<Readonly<Record<Profile, CheckAnswer>> | undefined>();
  const [profile, setProfile] = useState<Profile>("strict");
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  const check = async (flow: string, tab?: string): Promise<void> => {
    setError(undefined);
    setBusy(true);
    try {
      const flows = JSON.parse(flow) as JsonValue;
      const [strict, redflow] = await Promise.all(PROFILES.map((name) => api.checkAndDraw(flows, { profile: name, tab })));
      if (strict !== undefined && redflow !== undefined) {
        setReports({ strict, redflow });
      }
    } catch (failure) {
      setReports(undefined);
      setError(failure instanceof SyntaxError ? t("check.notJson", { reason: failure.message }) : failure);
    }
    setBusy(false);
  };
  const take = async (file: File | undefined): Promise<void> => {
    if (file === undefined) {
      return;
    }
    if (file.size > MAX_BYTES) {
      setError(t("check.tooLarge"));
      return;
    }
    const read = await file.text();
    setText(read);
    await check(read);
  };
  const checkActive = async (): Promise<void> => {
    const active = JSON.stringify((await api.deployment()).flows, null, 2);
    setText(active);
    await check(active);
  };
  useEffect(() => {
    if (query["from"] === "active") {
      checkActive().catch(sayFailure);
    }
  }, []);
  const report = reports?.[profile];
  return (
    <>
      <h1>{t("check")}</h1>
      <p>{t("check.what")}</p>
      <Drop onSubmit={() => void check(text)} onFiles={([file]) => void take(file)}>
        <label for="check-flow">{t("check.flow")}</label>
        <textarea
          id="check-flow"
          data-filter=""
          rows={reports === undefined ? 12 : 5}
          spellcheck={false}
          maxLength={MAX_BYTES}
          value={text}
          onInput={(event: Event) => setText(valueOf(event))}
        />
        <div class="buttons">
          <Act scope="read" kind="primary" type="submit" isBusy={isBusy} isOff={text.trim() === ""}>
            {t("check.do")}
          </Act>
          <label class="button">
            {t("check.file")}
            <input
              class="unseen"
              type="file"
              accept=".json,application/json"
              onChange={(event: Event) => void take((event.currentTarget as HTMLInputElement).files?.[0])}
            />
          </label>
        </div>
      </Drop>
      <Problem error={error} />
      {report === undefined ? null : (
        <Tabs
          label={t("check.profile")}
          tabs={PROFILES.map((name) => ({ name, title: t(`check.${name}`, { n: reports?.[name].diagnostics.length ?? 0 }) }))}
          chosen={profile}
          onChoose={setProfile}
        >
          <div class="head">
            <p role="status">{report.ok ? `✓ ${t("check.ok")}` : `✗ ${t("check.wrong", { n: report.diagnostics.filter(({ severity }) => severity === "error").length })}`}</p>
            <button type="button" onClick={() => void copy(reportText(profile, report.diagnostics))}>
              {t("check.copy")}
            </button>
          </div>
          {report.graph === undefined || report.graph.tabs.length < 2 ? null : (
            <Choice
              label={t("flow.tab")}
              value={report.graph.tabs.find(({ isDrawn }) => isDrawn)?.id ?? ""}
              options={report.graph.tabs.map(({ id, label }) => [id, showName(label, id)])}
              onChoose={(id) => void check(text, id)}
            />
          )}
          {report.graph === undefined || report.graph.nodes.length === 0 ? null : <FlowDrawing key={report.graph.tabs.find(({ isDrawn }) => isDrawn)?.id} graph={report.graph} />}
          <Diagnostics diagnostics={report.diagnostics} omitted={report.omitted} />
        </Tabs>
      )}
    </>
  );
}

export const page: Page = { feature: "check", route: "check", title: "check", view: Check };
