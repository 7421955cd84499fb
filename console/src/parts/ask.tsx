// The box that asks an agent: a payload, and the run that it starts.

import { useId, useState } from "preact/hooks";
import type { JsonValue } from "@redflow/bindings";
import { api, shade } from "../app.js";
import { go } from "../router.js";
import { t } from "../words.js";
import { Act } from "./controls.js";
import { valueOf } from "./fields.js";
import { Problem } from "./problem.js";
import { showName, writeValue } from "./text.js";

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

/** The instance of the sidecar's own flow. Only its agents can be asked here. */
export const OWN_INSTANCE = "local";

interface AskBoxProps {
  node: string;
  name: string;
  /** The payload to begin with. It is hidden under the shade, and sent as it is unless the user changes its text. */
  payload?: JsonValue | undefined;
}

export function AskBox({ node, name, payload }: AskBoxProps) {
  const id = useId();
  const given = payload === undefined ? "" : writeValue(payload);
  const [text, setText] = useState(given);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const ask = async (): Promise<void> => {
    const from = window.location.hash;
    setBusy(true);
    setError(undefined);
    try {
      const { runs } = await api.start({ node, payload: payload !== undefined && text === given ? payload : readPayload(text) });
      const [first] = runs;
      // A user who went to another page in the meantime stays there.
      if (first !== undefined && window.location.hash === from) {
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
      {shade.value && given !== "" ? (
        <p class="muted">{t("shade.hidden")}</p>
      ) : (
        <>
          <label for={id}>{t("ask.label", { name: showName(name) })}</label>
          <textarea id={id} rows={2} dir="auto" value={text} onInput={(event: Event) => setText(valueOf(event))} />
        </>
      )}
      <Act scope="run" kind="primary" type="submit" isBusy={isBusy} isOff={text.trim() === ""}>
        {t("ask")}
      </Act>
      <Problem error={error} />
    </form>
  );
}
