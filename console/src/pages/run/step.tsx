// The chosen step of a run: what was new to the model, its answer, the tool calls, and what they used.

import { useEffect, useState } from "preact/hooks";
import type { CallDetail, IterationDetail, RunSummary, RunTimeline, ToolStep } from "@redflow/bindings";
import { api, shade } from "../../app.js";
import { Fact, Reading, Sheet } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Fix, Problem } from "../../parts/problem.js";
import { Name, Quote, Unfold } from "../../parts/text.js";
import { formatCount, formatDuration, formatKnownCost, formatShare, t, tOf } from "../../words.js";
import type { WrittenText } from "./run.js";

interface StepProps {
  summary: RunSummary;
  iteration: number;
  timeline: RunTimeline;
  written: WrittenText | undefined;
  /** Whether the words are shown. */
  isUnfolded: boolean;
  onUnfold: () => void;
  /** Whether a narrow page shows it. */
  isOpen: boolean;
  onClose: () => void;
}

export function Step({ summary, iteration, timeline, written, isUnfolded, onUnfold, isOpen, onClose }: StepProps) {
  const [isFull, setFull] = useState(false);
  const step = timeline.steps.find((one) => one.iteration === iteration);
  // What the sidecar has to tell changes with the answer, each result, and the end.
  const returned = step?.tools.filter(({ returnedAt }) => returnedAt !== undefined).length ?? 0;
  const keys = [iteration, isFull, step?.model?.answeredAt, returned, timeline.end !== undefined];
  const { value, error, again } = useLoad((signal) => api.runIteration(summary.runId, iteration, { full: isFull, signal }), keys);
  useEffect(() => setFull(false), [iteration]);
  const tools = new Map(step?.tools.map((tool) => [tool.callId, tool]));
  const writes = written?.iteration === iteration && step?.model?.open === true ? `${written.isCut ? "…" : ""}${written.text}` : undefined;
  return (
    <Sheet label={t("step", { iteration })} isOpen={isOpen} onClose={onClose}>
      <h2>{t("step", { iteration })}</h2>
      <Problem error={error} onRetry={again} />
      {writes === undefined || shade.value || !isUnfolded ? null : <Quote text={writes} label={t("step.writes")} />}
      {value === undefined ? (error === undefined ? <Reading /> : null) : <Detail {...{ value, tools, onUnfold }} isOpen={isUnfolded} onFull={() => setFull(true)} />}
    </Sheet>
  );
}

interface DetailProps {
  value: IterationDetail;
  /** The calls in the timeline. */
  tools: ReadonlyMap<string, ToolStep>;
  isOpen: boolean;
  onFull: () => void;
  onUnfold: () => void;
}

function Detail({ value, tools, isOpen, onFull, onUnfold }: DetailProps) {
  const { model, durationMs, confidence, usage, requestId, fellOver = [], refused = [], calls, prompt, answer, output, raw } = value;
  return (
    <>
      <dl class="facts">
        {model === undefined ? null : (
          <Fact name={t("step.model")}>
            <Name text={model} />
          </Fact>
        )}
        {durationMs === undefined ? null : <Fact name={t("run.duration")}>{formatDuration(durationMs)}</Fact>}
        {confidence === undefined ? null : <Fact name={t("step.confidence")}>{formatShare(confidence)}</Fact>}
        {usage === undefined ? null : (
          <Fact name={usage.estimated === true ? t("run.tokens.estimated") : t("run.tokens")}>
            {t("run.tokens.both", { input: usage.inputTokens, output: usage.outputTokens })}
            {(usage.cachedTokens ?? 0) > 0 ? ` · ${t("run.tokens.cached", { n: usage.cachedTokens ?? 0 })}` : ""}
          </Fact>
        )}
        {usage === undefined ? null : <Fact name={t("run.cost")}>{formatKnownCost(usage)}</Fact>}
        {requestId === undefined ? null : (
          <Fact name={t("step.request")}>
            <Name text={requestId} />
          </Fact>
        )}
        {refused.length === 0 ? null : (
          <Fact name={t("agent.refused")}>
            <Name text={refused.join(", ")} />
          </Fact>
        )}
      </dl>
      {fellOver.map((failed, index) => (
        <p key={index} class="remark">
          <Name text={failed.model} />: <code>{failed.code}</code> {failed.skipped === true ? t("step.skipped") : t("step.fellOver")}
        </p>
      ))}
      {isOpen ? (
        <>
          <Quote text={prompt} label={t("step.prompt")} onFull={onFull} />
          {answer === undefined ? null : <Quote text={answer} label={t("step.answer")} onFull={onFull} />}
        </>
      ) : (
        <Unfold onUnfold={onUnfold} />
      )}
      {calls.map((call) => (
        <Call key={call.callId} call={call} shown={tools.get(call.callId)} isOpen={isOpen} onFull={onFull} />
      ))}
      {output === undefined || !isOpen ? null : <Quote text={output} label={t("step.output")} onFull={onFull} />}
      {raw === undefined || !isOpen ? null : (
        <details>
          <summary>{t("step.raw")}</summary>
          <Quote text={raw} label={t("step.raw")} onFull={onFull} />
        </details>
      )}
    </>
  );
}

interface CallProps extends Pick<DetailProps, "isOpen" | "onFull"> {
  call: CallDetail;
  /** The call in the timeline. */
  shown: ToolStep | undefined;
}

function Call({ call, shown, isOpen, onFull }: CallProps) {
  const { tool, id, effect, durationMs, tries, input, success, result } = call;
  const code = shown?.code ?? "TOOL_ERROR";
  const sources = shown?.sources;
  const state = success === undefined ? "open" : success ? "worked" : "failed";
  return (
    <article class={`call call-${state}`} aria-label={t("call", { tool })}>
      <h3>
        <Name text={tool} /> <span class={`badge status-${state === "open" ? "running" : success ? "completed" : "failed"}`}>{tOf("call", state)}</span>
      </h3>
      <dl class="facts">
        {id === undefined ? null : (
          <Fact name={t("tool.id")}>
            <Name text={id} />
          </Fact>
        )}
        {effect === undefined ? null : <Fact name={t("tool.effect")}>{tOf("effect", effect)}</Fact>}
        {durationMs === undefined ? null : <Fact name={t("run.duration")}>{formatDuration(durationMs)}</Fact>}
        {tries === undefined ? null : <Fact name={t("call.tries")}>{formatCount(tries)}</Fact>}
      </dl>
      {isOpen ? (
        <>
          <Quote text={input} label={t("call.input")} onFull={onFull} />
          {result === undefined ? null : <Quote text={result} label={success === false ? t("call.error") : t("call.result")} onFull={onFull} />}
          {sources === undefined ? null : <Quote text={sources.map(({ ref, score }) => (score === undefined ? ref : `${ref} · ${formatShare(score)}`)).join("\n")} label={t("call.sources")} />}
        </>
      ) : null}
      {success === false ? (
        <>
          <code>{code}</code> <Fix code={code} />
        </>
      ) : null}
    </article>
  );
}
