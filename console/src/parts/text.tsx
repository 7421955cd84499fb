// Texts of strangers: users, models, tools and flows. They are text nodes, isolated and cut. Nothing in them becomes a link.

import { useState } from "preact/hooks";
import { type CutText, cutText, showInvisible } from "@redflow/bindings";
import { shade } from "../app.js";
import { formatBytes, t } from "../words.js";
import { CopyButton } from "./controls.js";

/** The most characters of a name in a row. */
export const MAX_NAME = 120;
/** The most characters of a text that is shown at once. */
export const MAX_TEXT = 20_000;

/** The beginning of a text of strangers, as a reader may see it. */
export function showText(text: string, most: number = MAX_TEXT): string {
  return showInvisible(cutText(text, most));
}

/** A name of a stranger, in one line of plain text. */
export function showName(text: string, fallback = ""): string {
  return showText(text || fallback, MAX_NAME).replace(/\s+/g, " ");
}

/** A name of a stranger. */
export function Name({ text, fallback }: { text: string; fallback?: string }) {
  return <bdi class="name">{showName(text, fallback)}</bdi>;
}

/** A sentence with words of strangers in it, such as the message of an error. */
export function Message({ text }: { text: string }) {
  return <bdi>{showText(text)}</bdi>;
}

/** Words of a person, a model or a tool. Hidden under the shade. `onFull` reads the whole of a text that the sidecar cut. */
export function Quote({ text, label, onFull }: { text: CutText | string; label: string; onFull?: (() => void) | undefined }) {
  const [isWhole, setWhole] = useState(false);
  const { text: words, bytes } = typeof text === "string" ? { text, bytes: undefined } : text;
  const isLong = words.length > MAX_TEXT;
  return (
    <section class="said" aria-label={label}>
      <header>
        <span class="label">{label}</span>
        {shade.value ? null : <CopyButton text={words} name={label} />}
      </header>
      {shade.value ? (
        <p class="muted">{t("shade.hidden")}</p>
      ) : (
        <pre dir="auto" tabIndex={0} aria-label={label}>
          <bdi>{showText(words, isWhole ? Infinity : MAX_TEXT)}</bdi>
        </pre>
      )}
      {shade.value ? null : (
        <footer>
          {isLong && !isWhole ? (
            <button type="button" class="quiet" onClick={() => setWhole(true)}>
              {t("text.whole", { n: words.length })}
            </button>
          ) : null}
          {bytes === undefined ? null : <span class="muted">{t("text.cut", { bytes: formatBytes(bytes) })}</span>}
          {bytes !== undefined && onFull !== undefined ? (
            <button type="button" class="quiet" onClick={onFull}>
              {t("text.full")}
            </button>
          ) : null}
        </footer>
      )}
    </section>
  );
}

/** A value as indented JSON; a text as it is. */
export function writeValue(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/** Our own Markdown in short form: code in backticks, the rest as text. */
export function Advice({ text }: { text: string }) {
  return (
    <div class="advice">
      {text
        .trim()
        .split(/\n{2,}/)
        .map((paragraph, index) => (
          <p key={index}>{paragraph.split("`").map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part))}</p>
        ))}
    </div>
  );
}
