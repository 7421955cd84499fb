// A text of a run that is folded until a user opens it. Owns when the text is requested: when it is opened, and again while it
// is open and its row changes.

import { type CallDetail, type CutText, type IterationDetail, cutText } from "@redflow/bindings";
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useEnvironment } from "./environment.js";
import { ContentText } from "./foreign.js";

/** The most characters that are shown. */
const MAX_CHARS = 20_000;

/** The texts of one iteration that a timeline shows. */
export type IterationTexts = Pick<IterationDetail, "prompt" | "answer" | "output"> & {
  calls: Pick<CallDetail, "callId" | "input" | "result">[];
};

/** Requests the texts of one iteration of a run. */
export type ReadTexts = (iteration: number) => Promise<IterationTexts>;

export interface TextDetailsProps {
  /** Which text it is: the end of a key. */
  name: "prompt" | "answer" | "input" | "result" | "output";
  /** Changes when the text may have changed. */
  version: string;
  read: () => Promise<CutText | undefined>;
}

export function TextDetails({ name, version, read }: TextDetailsProps): VNode {
  const { words, describeProblem } = useEnvironment();
  const [open, setOpen] = useState(false);
  const [shown, setShown] = useState<CutText>();
  /** The version that is shown or requested. */
  const requested = useRef<string | undefined>(undefined);
  useEffect(() => {
    if (!open || requested.current === version) {
      return;
    }
    requested.current = version;
    // A later request has a newer text.
    const isNewest = (): boolean => requested.current === version;
    read().then(
      (text) => isNewest() && setShown(text ?? { text: words("timeline.texts.none") }),
      (error: unknown) => {
        if (isNewest()) {
          // The user can close it and open it again.
          requested.current = undefined;
          setShown({ text: words("timeline.texts.failed", { message: cutText(describeProblem(error).message) }) });
        }
      },
    );
  }, [open, version]);
  return (
    <details class="redflow-details" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{words(`timeline.texts.${name}`)}</summary>
      <ContentText as="pre" class="redflow-preview" text={shown?.text ?? (open ? words("timeline.texts.asking") : "")} maxChars={MAX_CHARS} />
      {shown?.bytes !== undefined && <p class="redflow-hint">{words("timeline.texts.cut", { bytes: shown.bytes })}</p>}
    </details>
  );
}
