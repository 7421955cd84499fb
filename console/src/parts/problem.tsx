// A problem: its code, its sentence, and how to fix it.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { RedflowError } from "@redflow/bindings";
import { api, isOffline } from "../app.js";
import { t } from "../words.js";
import { Reading } from "./controls.js";
import type { LoadState } from "./load.js";
import { Advice, Words } from "./text.js";

/** The pages of codes that were read. There are about a hundred codes. */
const advice = new Map<string, Promise<string>>();

function readAdvice(code: string): Promise<string> {
  let found = advice.get(code);
  if (found === undefined) {
    found = api.code(code).then((entry) => entry.mend ?? entry.summary);
    found.catch(() => advice.delete(code));
    advice.set(code, found);
  }
  return found;
}

/** The section "How to fix it" of a code, read when it is opened. */
export function Fix({ code }: { code: string }) {
  const [text, setText] = useState<string | undefined>();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    let isGone = false;
    if (isOpen && text === undefined) {
      readAdvice(code).then(
        (read) => (isGone ? undefined : setText(read)),
        () => (isGone ? undefined : setText(t("fix.none"))),
      );
    }
    return () => {
      isGone = true;
    };
  }, [code, isOpen]);
  return (
    <details class="fix" onToggle={(event: Event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{t("fix")}</summary>
      {text === undefined ? <p class="muted">{t("reading")}</p> : <Advice text={text} />}
    </details>
  );
}

interface ProblemProps {
  error: unknown;
  onRetry?: (() => void) | undefined;
}

/** A failed request; nothing if there is no error. */
export function Problem({ error, onRetry }: ProblemProps) {
  const problem = error instanceof RedflowError ? error : undefined;
  const message = problem?.message ?? String(error);
  // The banner says it already, and the page reads again when the sidecar is back.
  if (error === undefined || (problem?.code === "SIDECAR_UNREACHABLE" && isOffline())) {
    return null;
  }
  return (
    <div class="problem" role="alert">
      <p>
        {problem === undefined ? null : <code>{problem.code}</code>} <Words text={message} />
      </p>
      {problem === undefined ? null : <Fix code={problem.code} />}
      {onRetry === undefined ? null : (
        <button type="button" onClick={onRetry}>
          {t("retry")}
        </button>
      )}
    </div>
  );
}

/** What is read: the wait, then the value. A failure is shown above an older value. */
export function Loaded<T>({ load, children }: { load: LoadState<T>; children: (value: T) => ComponentChildren }) {
  const { value, error, again } = load;
  return (
    <>
      <Problem error={error} onRetry={again} />
      {value === undefined ? error === undefined ? <Reading /> : null : children(value)}
    </>
  );
}

/** A code with its sentence, such as the error of a run. */
export function Coded({ code, message, help }: { code: string; message: string; help?: string | undefined }) {
  return (
    <div class="problem">
      <p>
        <code>{code}</code> <Words text={message} />
      </p>
      {help === undefined ? null : <p><Words text={help} /></p>}
      <Fix code={code} />
    </div>
  );
}
