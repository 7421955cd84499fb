// The form that cancels a run, with a confirmation in place.

import type { VNode } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { EnvironmentProvider, type ShownProblem, type TimelineEnvironment, useEnvironment } from "./environment.js";
import { ProblemLine } from "./foreign.js";

export interface CancelFormProps {
  environment: TimelineEnvironment;
  /** Why the user may not cancel runs; undefined if it is allowed. */
  forbidden?: string | undefined;
  /** Cancels the run. */
  cancel: () => Promise<void>;
}

export function CancelForm({ environment, ...props }: CancelFormProps): VNode {
  return (
    <EnvironmentProvider value={environment}>
      <div class="redflow-cancel">{props.forbidden === undefined ? <Buttons {...props} /> : <p class="redflow-hint">{props.forbidden}</p>}</div>
    </EnvironmentProvider>
  );
}

type State = "button" | "question" | "ending";

function Buttons({ cancel }: Pick<CancelFormProps, "cancel">): VNode {
  const { words, buttons, describeProblem } = useEnvironment();
  const [state, setState] = useState<State>("button");
  const [problem, setProblem] = useState<ShownProblem>();
  const focused = useRef<HTMLButtonElement>(null);
  const isFirst = useRef(true);
  // The pressed button is gone: the focus goes to the harmless one. Not when the form appears.
  useLayoutEffect(() => {
    if (!isFirst.current) {
      focused.current?.focus();
    }
    isFirst.current = false;
  }, [state]);
  const show = (next: State, found?: ShownProblem): void => {
    setState(next);
    setProblem(found);
  };
  const end = async (): Promise<void> => {
    show("ending");
    try {
      await cancel();
    } catch (error) {
      show("button", describeProblem(error));
    }
  };
  switch (state) {
    case "button":
      return (
        <>
          <button type="button" class={buttons.plain} ref={focused} onClick={() => show("question")}>
            {words("timeline.cancel.wish")}
          </button>
          {problem && <ProblemLine {...problem} />}
        </>
      );
    case "question":
      return (
        <>
          <span>{words("timeline.cancel.ask")}</span>
          <button key="yes" type="button" class={buttons.primary} onClick={() => void end()}>
            {words("timeline.cancel.yes")}
          </button>
          <button key="no" type="button" class={buttons.plain} ref={focused} onClick={() => show("button")}>
            {words("timeline.cancel.no")}
          </button>
        </>
      );
    case "ending":
      return <span class="redflow-hint">{words("timeline.cancel.now")}</span>;
  }
}
