// The form that resolves a call with an unknown outcome. Shows the whole call. The sidecar validates the answer. No answer is
// preselected, because it cannot be changed later.

import { type JsonValue, MAX_ROW_CHARS, type ResolveRequest, type ToolResult, type WaitingCall } from "@redflow/bindings";
import type { VNode } from "preact";
import { useRef, useState } from "preact/hooks";
import { EnvironmentProvider, type ShownProblem, type TimelineEnvironment, useEnvironment } from "./environment.js";
import { Foreign, ProblemLine, ContentText, Sentence, ToolName } from "./foreign.js";

/** The most characters of a call's input before the user opens all of it. */
const MAX_INPUT = 20_000;

const ANSWERS = ["done", "failed", "notDone"] as const;
export type Answer = (typeof ANSWERS)[number];

/** The result for the model. `typed` is JSON for a call that happened, else a reason. Undefined if it is not JSON. */
export function resultOf(answer: Answer, typed: string): ToolResult | undefined {
  const input = typed.trim();
  if (answer === "notDone") {
    return { success: false, error: `the call did not happen: ${input || "a person says so"}` };
  }
  if (answer === "failed") {
    return { success: false, error: input || "a person says that the call failed" };
  }
  try {
    return { success: true, output: input === "" ? null : (JSON.parse(input) as JsonValue) };
  } catch {
    return undefined;
  }
}

export interface ResolveFormProps {
  environment: TimelineEnvironment;
  call: WaitingCall;
  /** Why the user may not answer; undefined if it is allowed. */
  forbidden?: string | undefined;
  /** Sends the answer. */
  resolve: (request: ResolveRequest) => Promise<void>;
}

export function ResolveForm({ environment, ...props }: ResolveFormProps): VNode {
  return (
    <EnvironmentProvider value={environment}>
      <Form {...props} />
    </EnvironmentProvider>
  );
}

function Form({ call, forbidden, resolve }: Omit<ResolveFormProps, "environment">): VNode {
  const { words, buttons, describeProblem } = useEnvironment();
  const [chosen, setChosen] = useState<Answer>();
  /** A text for each answer: a result is not a reason, so the input of one answer must not become that of another. */
  const [typed, setTyped] = useState<Partial<Record<Answer, string>>>({});
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<ShownProblem | "notJson">();
  const box = useRef<HTMLTextAreaElement>(null);
  const choose = (answer: Answer): void => {
    setChosen(answer);
    setProblem(undefined);
  };
  const submit = async (): Promise<void> => {
    const result = chosen && resultOf(chosen, typed[chosen] ?? "");
    if (result === undefined) {
      setProblem(chosen && "notJson");
      box.current?.focus();
      return;
    }
    setProblem(undefined);
    setSending(true);
    try {
      await resolve({ callId: call.callId, result });
    } catch (error) {
      setSending(false);
      setProblem(describeProblem(error));
    }
  };
  const id = `redflow-resolve-${call.callId}-${chosen}`;
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    void submit();
  };
  return (
    <form class="redflow-resolve" onSubmit={onSubmit}>
      <CallDescription call={call} />
      {forbidden !== undefined ? (
        <p class="redflow-hint">{forbidden}</p>
      ) : (
        <fieldset disabled={isSending}>
          <legend>{words("timeline.resolve.question")}</legend>
          {ANSWERS.map((answer) => (
            <label key={answer} class="redflow-way">
              <input type="radio" name="redflow-resolve-way" value={answer} checked={chosen === answer} onChange={() => choose(answer)} />
              <span>{words(`timeline.resolve.${answer}`)}</span>
            </label>
          ))}
          {chosen && (
            <div key={chosen}>
              <label for={id}>{words(chosen === "done" ? "timeline.resolve.result" : "timeline.resolve.reason")}</label>
              <textarea
                id={id}
                ref={box}
                rows={2}
                spellcheck={false}
                dir="auto"
                placeholder={chosen === "done" ? "null" : ""}
                value={typed[chosen] ?? ""}
                onInput={(event) => setTyped({ ...typed, [chosen]: event.currentTarget.value })}
              />
            </div>
          )}
          <button type="submit" class={buttons.primary} disabled={chosen === undefined}>
            {words("timeline.resolve.send")}
          </button>
        </fieldset>
      )}
      <div role="alert">
        {problem === "notJson" ? <div class="redflow-trouble">{words("timeline.resolve.notJson")}</div> : problem && <ProblemLine {...problem} />}
      </div>
    </form>
  );
}

function CallDescription({ call: { tool, input, iteration, askedAt, callId } }: { call: WaitingCall }): VNode {
  const { words, formats, buttons } = useEnvironment();
  const [isWhole, setWhole] = useState(false);
  const text = JSON.stringify(input, null, 2);
  return (
    <div>
      <div class="redflow-resolve-title">
        <Sentence of="timeline.resolve.title" values={{ tool: <ToolName name={tool} /> }} />
      </div>
      <div class="redflow-hint">{words("timeline.resolve.when", { iteration, at: formats.time(askedAt) })}</div>
      <ContentText as="pre" class="redflow-preview" text={text} maxChars={isWhole ? Infinity : MAX_INPUT} />
      {text.length > MAX_INPUT && !isWhole && (
        <p class="redflow-trouble">
          {words("timeline.resolve.cut")}{" "}
          <button type="button" class={buttons.plain} onClick={() => setWhole(true)}>
            {words("timeline.resolve.whole", { n: text.length })}
          </button>
        </p>
      )}
      <div class="redflow-hint">
        <Sentence of="timeline.resolve.call" values={{ id: <Foreign as="code" text={callId} maxChars={MAX_ROW_CHARS} /> }} />
      </div>
    </div>
  );
}
