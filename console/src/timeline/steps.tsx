// The narrow timeline: the iterations of a run below each other, with texts that a user can open.

import { type ActiveCall, type CutText, type IterationStep, type RunTimeline, type Unanswered, activeCalls, endOfText, unansweredReason } from "@redflow/bindings";
import type { ReadonlySignal } from "@preact/signals";
import type { ComponentChildren, VNode } from "preact";
import { useRef } from "preact/hooks";
import { Clock } from "./clock.js";
import { useEnvironment } from "./environment.js";
import { ContentText } from "./foreign.js";
import { FailedModelSentence, ModelNumbers, type ModelProps, ModelSentence, RefusedFields, RemarkSentence, Sources, ToolNumbers, type ToolProps, ToolSentence } from "./sentences.js";
import { type IterationTexts, type ReadTexts, TextDetails } from "./texts.js";

/** The most characters of a text that a model writes now. */
const MAX_LIVE_CHARS = 20_000;

/** The text that a model writes now. */
export interface LiveText {
  iteration: number;
  text: string;
  /** Whether the beginning may be missing. */
  isCut: boolean;
}

/** The end of the text, where it grows. */
export function LivePreview({ live: { text, isCut } }: { live: LiveText }): VNode {
  const dots = isCut || text.length > MAX_LIVE_CHARS ? "…" : "";
  return <ContentText as="pre" class="redflow-preview redflow-live" text={dots + endOfText(text, MAX_LIVE_CHARS)} maxChars={MAX_LIVE_CHARS + 1} />;
}

export interface StepsProps {
  timeline: RunTimeline;
  live: LiveText | undefined;
  clock: ReadonlySignal<number>;
  readTexts: ReadTexts;
}

export function Steps({ timeline, live, clock, readTexts }: StepsProps): VNode {
  const { words } = useEnvironment();
  const { steps, end, stepsLeftOut: n, remarks, remarksLeftOut } = timeline;
  const unanswered = end && unansweredReason(end);
  const active = activeCalls(timeline);
  return (
    <>
      {remarks.length > 0 && (
        <ul class="redflow-remarks">
          {remarks.map((remark) => (
            <Remark key={remark.seq} remark={remark} />
          ))}
        </ul>
      )}
      {n + remarksLeftOut > 0 && <p class="redflow-hint">{words("timeline.leftOut", { n, remarks: remarksLeftOut })}</p>}
      <ol class="redflow-steps">
        {steps.map((step) => (
          <Step
            key={step.iteration}
            {...{ step, unanswered, clock, readTexts }}
            active={active.filter(({ iteration }) => iteration === step.iteration)}
            live={live?.iteration === step.iteration ? live : undefined}
          />
        ))}
      </ol>
    </>
  );
}

/** The colour of a remark: that of what it is about. */
const REMARK_KINDS: Record<RunTimeline["remarks"][number]["is"], "memory" | "budget" | "model"> = {
  ...{ memory_recalled: "memory", memory_cleared: "memory", memory_failed: "memory" },
  ...{ budget_low: "budget", budget_reached: "budget", concluding: "budget" },
  ...{ images_fetched: "model", summarised: "model" },
};

function Remark({ remark }: { remark: RunTimeline["remarks"][number] }): VNode {
  const { formats } = useEnvironment();
  return (
    <li class={`redflow-is-${REMARK_KINDS[remark.is]}`} title={formats.time(remark.at)}>
      <RemarkSentence remark={remark} />
    </li>
  );
}

interface StepProps extends Omit<StepsProps, "timeline"> {
  step: IterationStep;
  unanswered: Unanswered | undefined;
  active: ActiveCall[];
}

/** One iteration: the call of the model, and the calls of tools side by side. */
function Step({ step, unanswered, active, live, clock, readTexts }: StepProps): VNode {
  const { words } = useEnvironment();
  const { iteration, model, failedModels, tools, toolsLeftOut } = step;
  const read = useTexts(step, unanswered, readTexts);
  const label = words("timeline.iteration", { iteration });
  const isWriting = model?.open === true && unanswered === undefined;
  const sinceOf = (callId: string | undefined): number | undefined => active.find((call) => call.callId === callId)?.since;
  return (
    <li class="redflow-step" aria-label={label}>
      <span class="redflow-step-number" title={label}>
        {iteration}
      </span>
      <div class="redflow-step-body">
        {failedModels.length > 0 && (
          <div class="redflow-failed-models">
            {failedModels.map((failed) => (
              <div key={failed.seq} class="redflow-step-row redflow-is-model redflow-failed">
                <FailedModelSentence failed={failed} />
              </div>
            ))}
          </div>
        )}
        {model && <ModelRow {...{ model, unanswered, clock, read }} since={sinceOf(undefined)} />}
        {model?.refused && (
          <div class="redflow-hint">
            <RefusedFields fields={model.refused} />
          </div>
        )}
        {live && isWriting && <LivePreview live={live} />}
        {tools.length + toolsLeftOut > 1 && (
          <div class="redflow-hint">
            {words("timeline.tool.count", { n: tools.length + toolsLeftOut })}
            {toolsLeftOut > 0 && ` ${words("timeline.tool.leftOut", { n: toolsLeftOut })}`}
          </div>
        )}
        <div class="redflow-calls">
          {tools.map((tool) => (
            <ToolRow key={tool.callId} {...{ tool, unanswered, clock, read }} since={sinceOf(tool.callId)} />
          ))}
        </div>
      </div>
    </li>
  );
}

/** Requests the texts once for all details of the step, and again after a change or a failure. */
function useTexts({ iteration, model, tools }: IterationStep, unanswered: Unanswered | undefined, readTexts: ReadTexts) {
  const cached = useRef<{ key: string; result: Promise<IterationTexts> } | undefined>(undefined);
  // The journal may have more texts after each change.
  const key = JSON.stringify([model?.open, unanswered, tools.map(({ open }) => open)]);
  return (): Promise<IterationTexts> => {
    if (cached.current?.key !== key) {
      const result = readTexts(iteration);
      cached.current = { key, result };
      result.catch(() => (cached.current = undefined));
    }
    return cached.current.result;
  };
}

interface RowProps {
  clock: ReadonlySignal<number>;
  /** Since when the call runs; undefined if it does not. */
  since: number | undefined;
  read: () => Promise<IterationTexts>;
}

function ModelRow({ model, unanswered, clock, since, read }: ModelProps & RowProps): VNode {
  const version = JSON.stringify([model, unanswered]);
  const isActive = model.open && unanswered === undefined;
  return (
    <Row kind="model" isActive={isActive} clock={clock} since={since} line={[<ModelSentence model={model} unanswered={unanswered} />, <ModelNumbers model={model} />]}>
      <TextDetails name="prompt" version={version} read={async () => (await read()).prompt} />
      {!isActive && <TextDetails name="answer" version={version} read={async () => (await read()).answer} />}
    </Row>
  );
}

function ToolRow({ tool, unanswered, clock, since, read }: ToolProps & RowProps): VNode {
  const version = JSON.stringify([tool, unanswered]);
  const hasEnded = !tool.open || unanswered !== undefined;
  const isActive = !hasEnded && tool.waiting === undefined;
  const textOf = async (name: "input" | "result"): Promise<CutText | undefined> =>
    (await read()).calls.find(({ callId }) => callId === tool.callId)?.[name];
  return (
    <Row kind="tool" isActive={isActive} clock={clock} since={since} line={[<ToolSentence tool={tool} unanswered={unanswered} />, <ToolNumbers tool={tool} />]}>
      {tool.sources && (
        <div class="redflow-hint">
          <Sources sources={tool.sources} />
        </div>
      )}
      <TextDetails name="input" version={version} read={() => textOf("input")} />
      {hasEnded && <TextDetails name="result" version={version} read={() => textOf("result")} />}
    </Row>
  );
}

interface RowFrameProps extends Omit<RowProps, "read"> {
  kind: "model" | "tool";
  isActive: boolean;
  line: ComponentChildren;
  children: ComponentChildren;
}

/** The row of a call: a line, and details below it. */
function Row({ kind, isActive, clock, since, line, children }: RowFrameProps): VNode {
  return (
    <div class={`redflow-step-row redflow-is-${kind}${isActive ? " redflow-is-open" : ""}`}>
      <div class="redflow-step-line">
        {line}
        {isActive && since !== undefined && <Clock clock={clock} since={since} />}
      </div>
      {children}
    </div>
  );
}
