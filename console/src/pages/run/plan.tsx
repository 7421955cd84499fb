// The plan of a run: the nodes as they were when the run began. Its digest is part of the proof.

import { api } from "../../app.js";
import { Fact, Reading } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Coded, Problem } from "../../parts/problem.js";
import { Name, Quote, writeValue } from "../../parts/text.js";
import { t, tOf } from "../../words.js";

interface PlanNode {
  node?: { id?: string; type?: string; name?: string };
  config?: unknown;
}

interface PlanRecord {
  agent?: PlanNode;
  model?: PlanNode;
  memory?: PlanNode | null;
  tools?: PlanNode[];
}

/** The header and the plan of the first lines of a journal. */
export function planOf(lines: readonly string[]): { digest: string; plan: PlanRecord | undefined } {
  let [digest, plan]: [string, PlanRecord | undefined] = ["", undefined];
  for (const line of lines) {
    try {
      const { record } = JSON.parse(line) as { record?: { kind?: string; planDigest?: string; plan?: PlanRecord } };
      digest = record?.planDigest ?? digest;
      plan = record?.plan ?? plan;
    } catch {
      // A damaged line has no plan.
    }
  }
  return { digest, plan };
}

export function Plan({ id }: { id: string }) {
  const { value, error, again } = useLoad((signal) => api.journalPage(id, { from: 1, lines: 2, signal }), [id]);
  if (value === undefined) {
    return error === undefined ? <Reading /> : <Problem error={error} onRetry={again} />;
  }
  const { digest, plan } = planOf(value.lines);
  const nodes = plan === undefined ? [] : [
    ...(["agent", "model", "memory"] as const).map((role) => ({ role, entry: plan[role] ?? undefined })),
    ...(plan.tools ?? []).map((entry) => ({ role: "tool", entry })),
  ];
  return (
    <>
      {value.problem === undefined ? null : <Coded code={value.problem.code} message={value.problem.message} />}
      {digest === "" ? null : (
        <dl class="facts">
          <Fact name={t("plan.digest")}>
            <code>{digest}</code>
          </Fact>
        </dl>
      )}
      {plan === undefined ? <p class="muted">{t("plan.none")}</p> : null}
      {nodes.map(({ role, entry }, index) =>
        entry === undefined ? null : (
          <details key={index} class="card">
            <summary data-entry="">
              <strong>{tOf("role", role)}</strong> <Name text={entry.node?.name ?? ""} fallback={entry.node?.id ?? ""} />{" "}
              <code>
                <Name text={entry.node?.type ?? ""} />
              </code>
            </summary>
            <Quote text={writeValue(entry.config ?? {})} label={t("plan.config")} />
          </details>
        ),
      )}
    </>
  );
}
