// The sentences of a timeline: each step, the last step, remarks, what was used, and the end.

import {
  type FailedModelStep,
  type LastAction,
  MAX_ROW_CHARS,
  type ModelStep,
  type RunEnd,
  type RunRemark,
  type RunTimeline,
  type Source,
  type ToolStep,
  type Unanswered,
  type Usage,
  type Used,
  unansweredReason,
} from "@redflow/bindings";
import type { VNode } from "preact";
import { formatConfidence } from "./chart.js";
import { costText } from "./cost.js";
import { type TimelineEnvironment, type Words, useEnvironment } from "./environment.js";
import { Code, Foreign, ContentText, Sentence, ToolName } from "./foreign.js";

/** A model call, and why it has no answer if the run has ended. */
export interface ModelProps {
  model: ModelStep;
  unanswered: Unanswered | undefined;
}

/** A tool call, and why it has no result if the run has ended. */
export interface ToolProps {
  tool: ToolStep;
  unanswered: Unanswered | undefined;
}

export function ModelSentence({ model, unanswered }: ModelProps): VNode {
  const { formats } = useEnvironment();
  const called = model.tools === undefined ? "tool" : "tools";
  const key = model.open ? (unanswered ?? "asked") : model.action === "tool" ? called : "final";
  const values = { tool: <ToolName name={model.tool ?? ""} />, tools: <ToolName name={(model.tools ?? []).join(", ")} /> };
  return (
    <span class="redflow-what" title={model.askedAt === undefined ? "" : formats.time(model.askedAt)}>
      <Sentence of={`timeline.model.${key}`} values={values} />
    </span>
  );
}

function describeTokens(words: Words, { inputTokens: input, outputTokens: output, cachedTokens: cached = 0 }: Usage): string {
  return words(cached > 0 ? "timeline.model.cached" : "timeline.model.tokens", { input, output, cached });
}

/** The confidence and the duration of an answered call. */
export function ModelNumbers({ model }: { model: ModelStep }): VNode | null {
  const { words, formats } = useEnvironment();
  if (model.open) {
    return null;
  }
  const { usage, confidence } = model;
  const tokens = usage && describeTokens(words, usage);
  return (
    <>
      {confidence !== undefined && (
        <span class="redflow-confidence" title={words("timeline.chart.title")}>
          {formatConfidence(formats, confidence)}
        </span>
      )}
      <Duration ms={model.durationMs} title={tokens ?? ""} />
    </>
  );
}

export function ToolSentence({ tool, unanswered }: ToolProps): VNode {
  const openKey = unanswered !== undefined ? "unreturned" : tool.waiting !== undefined ? "waiting" : "called";
  const key = tool.open ? openKey : outcomeKey(tool);
  const why = <ContentText as="span" text={tool.waiting?.reason ?? tool.error ?? ""} />;
  return (
    <span class={`redflow-what redflow-${key === "saidNot" ? "failed" : key}`}>
      <Sentence of={`timeline.tool.${key}`} values={{ tool: <ToolName name={tool.tool} />, why }} />
    </span>
  );
}

/** The duration of a call that has returned. Not the time that a person needed for the answer. */
export function ToolNumbers({ tool }: { tool: ToolStep }): VNode | null {
  return tool.open || tool.resolvedLater === true ? null : <Duration ms={tool.durationMs} title="" />;
}

function Duration({ ms, title }: { ms: number | undefined; title: string }): VNode {
  const { formats } = useEnvironment();
  return (
    <span class="redflow-took" title={title}>
      {ms === undefined ? "" : formats.duration(ms)}
    </span>
  );
}

export function FailedModelSentence({ failed }: { failed: FailedModelStep }): VNode {
  const model = <Foreign as="code" text={failed.model} maxChars={MAX_ROW_CHARS} />;
  return <Sentence of="timeline.model.fellOver" values={{ model, code: <Code code={failed.code} /> }} />;
}

/** What the provider refused of a call. */
export function RefusedFields({ fields }: { fields: string[] | undefined }): VNode | null {
  return fields ? <Sentence of="timeline.model.refused" values={{ fields: <ContentText as="span" text={fields.join(", ")} /> }} /> : null;
}

/** What a result or a memory comes from. */
export function Sources({ sources }: { sources: Source[] | undefined }): VNode | null {
  return sources ? <Sentence of="timeline.tool.sources" values={{ sources: <ContentText as="span" text={sources.map(({ ref }) => ref).join(", ")} /> }} /> : null;
}

export function RemarkSentence({ remark }: { remark: RunRemark }): VNode {
  const { words, formats } = useEnvironment();
  switch (remark.is) {
    case "memory_failed": {
      const message = <ContentText as="span" text={remark.error.message} />;
      return <Sentence of="timeline.memory.failed" values={{ code: <Code code={remark.error.code} />, message }} />;
    }
    case "memory_recalled":
      return (
        <>
          {words("timeline.memory.recalled", { n: remark.messages })} <Sources sources={remark.sources} />
        </>
      );
    case "memory_cleared":
      return <>{words("timeline.memory.cleared")}</>;
    case "budget_low":
    case "budget_reached": {
      const { is, budget, limit, spent } = remark;
      const format = budget === "cost" ? formats.cost : formats.count;
      return <>{words(`timeline.budget.${is}`, { what: words(`timeline.budget.${budget}`), limit: format(limit), spent: format(spent) })}</>;
    }
    case "images_fetched":
      return <>{words("timeline.images", { n: remark.images })}</>;
    case "summarised":
      return <>{words("timeline.summarised", { n: remark.messages })}</>;
    case "concluding":
      return <>{words(`timeline.concluding.${remark.reason}`)}</>;
  }
}

/** The last step, as a status that screen readers announce. */
export function LastLine({ timeline }: { timeline: RunTimeline }): VNode {
  const { last } = timeline;
  return (
    <p class="redflow-last" role="status" hidden={last === undefined}>
      {last && <LastSentence timeline={timeline} last={last} />}
    </p>
  );
}

function LastSentence({ timeline, last }: { timeline: RunTimeline; last: LastAction }): VNode {
  const values = {
    iteration: last.iteration,
    tool: <ToolName name={"tool" in last ? (last.tool ?? "") : ""} />,
    tools: <ToolName name={last.is === "answered" ? (last.tools ?? []).join(", ") : ""} />,
    model: <Foreign as="code" text={last.is === "failed_model" ? last.model : ""} maxChars={MAX_ROW_CHARS} />,
  };
  return <Sentence of={`timeline.last.${lastKey(timeline, last)}`} values={values} />;
}

/** The key of the text for the last step. */
function lastKey({ steps, end }: RunTimeline, last: LastAction): string {
  switch (last.is) {
    case "answered":
      return last.tools === undefined ? last.action : "tools";
    case "failed_model":
      return "fellOver";
    case "returned": {
      const step = steps.find(({ iteration }) => iteration === last.iteration);
      const call = step?.tools.find(({ callId }) => callId === last.callId);
      return outcomeKey({ success: last.success, resolvedLater: call?.resolvedLater });
    }
    case "asked":
      return end === undefined ? "asked" : unansweredReason(end);
    case "called":
    case "waiting":
      return end === undefined ? last.is : "unreturned";
  }
}

/** The key of the text for the outcome of a call. */
function outcomeKey({ success, resolvedLater }: { success?: boolean | undefined; resolvedLater?: boolean | undefined }): string {
  return resolvedLater ? (success ? "saidDone" : "saidNot") : success ? "worked" : "failed";
}

/** The tokens and the cost of a run. */
export function usedText(environment: TimelineEnvironment, used: Used): string {
  const { words, formats } = environment;
  const { inputTokens, outputTokens, cachedTokens = 0, estimated } = used;
  const values = { input: formats.count(inputTokens), output: formats.count(outputTokens) };
  const parts = [words(estimated === true ? "timeline.used.estimated" : "timeline.used.tokens", values)];
  if (cachedTokens > 0) {
    parts.push(words("timeline.used.cached", { n: formats.count(cachedTokens) }));
  }
  const cost = costText(environment, used);
  if (cost !== undefined) {
    parts.push(words("timeline.used.cost", { cost }));
  }
  return parts.join(" · ");
}

const END_KEYS: Record<string, string> = { final_answer: "answered", confidence_threshold: "sure", iteration_limit: "limit", error: "failed" };

export function EndLines({ end }: { end: RunEnd }): VNode {
  const { words, formats } = useEnvironment();
  const { error, stopReason, iterations, durationMs, at } = end;
  const key = error === undefined ? (END_KEYS[stopReason] ?? "stopped") : "failed";
  return (
    <div class="redflow-end">
      <div class={`redflow-end-${key === "failed" ? "failed" : "well"}`} title={formats.time(at)}>
        <strong>{words(`timeline.end.${key}`, { iterations, duration: formats.duration(durationMs) })}</strong>
        {error && (
          <div>
            <Code code={error.code} /> <ContentText as="span" text={error.message} />
          </div>
        )}
        {error?.pointer !== undefined && error.pointer !== "" && (
          <div class="redflow-hint">
            <Sentence of="timeline.end.where" values={{ pointer: <Code code={error.pointer} />, rule: <Code code={error.rule ?? ""} /> }} />
          </div>
        )}
      </div>
    </div>
  );
}
