// The box that asks an agent: a payload, and the run that it starts.

import { useId, useState } from "preact/hooks";
import type { JsonValue } from "@redflow/bindings";
import { api } from "../app.js";
import { go } from "../router.js";
import { t } from "../words.js";
import { Act } from "./controls.js";
import { Problem } from "./problem.js";

/** The payload that a text means: JSON if it is an object or a list, else the text. */
export function readPayload(text: string): JsonValue {
  if (/^\s*[[{]/.test(text)) {
    try {
      return JSON.parse(text) as JsonValue;
    } catch {
      // It is a text that begins like JSON.
    }
  }
  return text;
}

export function AskBox({ node, name, payload = "" }: { node: string; name: string; payload?: string }) {
  const id = useId();
  const [text, setText] = useState(payload);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const ask = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const { runs } = await api.start({ node, payload: readPayload(text) });
      const [first] = runs;
      if (first !== undefined) {
        go(["runs", first.runId]);
      }
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return (
    <form
      class="ask"
      onSubmit={(event: Event) => {
        event.preventDefault();
        void ask();
      }}
    >
      <label for={id}>{t("ask.label", { name })}</label>
      <textarea id={id} rows={2} dir="auto" value={text} onInput={(event: Event) => setText((event.currentTarget as HTMLTextAreaElement).value)} />
      <Act scope="run" kind="primary" type="submit" isBusy={isBusy} isOff={text.trim() === ""}>
        {t("ask")}
      </Act>
      {error === undefined ? null : <Problem error={error} />}
    </form>
  );
}
