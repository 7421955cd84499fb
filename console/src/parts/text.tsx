// Foreign texts: users, models, tools and flows. They are text nodes, isolated and cut. Nothing in them becomes a link.

import { useState } from "preact/hooks";
import { type CutText, cutText, showInvisible } from "@redflow/bindings";
import { shade } from "../app.js";
import { formatBytes, t } from "../words.js";
import { CopyButton } from "./controls.js";

/** The most characters of a name in a row. */
export const MAX_NAME = 120;
/** The most characters of a text that are shown at once. A browser needs minutes to lay out some millions. */
export const MAX_TEXT = 20_000;

/** The beginning of a foreign text, as a reader may see it. */
export function showText(text: string, most: number = MAX_TEXT): string {
  return showInvisible(cutText(text, most));
}

/** A foreign name, in one line of plain text. */
export function showName(text: string, fallback = ""): string {
  return showText(text || fallback, MAX_NAME).replace(/\s+/g, " ");
}

/** A place near `index` between two characters of a text. */
function boundary(text: string, index: number): number {
  return /[\udc00-\udfff]/.test(text[index] ?? "") ? index - 1 : index;
}

/** A foreign name. */
export function Name({ text, fallback }: { text: string; fallback?: string }) {
  return <bdi class="name">{showName(text, fallback)}</bdi>;
}

/** A sentence with foreign words, such as an error text. */
export function Words({ text }: { text: string }) {
  return <bdi>{showText(text)}</bdi>;
}

/** Words of a person, a model or a tool. Hidden under the shade. `onFull` reads the whole of a text that the sidecar cut. */
export function Quote({ text, label, onFull }: { text: CutText | string; label: string; onFull?: (() => void) | undefined }) {
  const [part, setPart] = useState(0);
  const { text: words, bytes } = typeof text === "string" ? { text, bytes: undefined } : text;
  const last = Math.floor(Math.max(0, words.length - 1) / MAX_TEXT);
  const shown = Math.min(part, last);
  const [from, to] = [boundary(words, shown * MAX_TEXT), boundary(words, Math.min(words.length, (shown + 1) * MAX_TEXT))];
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
          <bdi>{showInvisible(words.slice(from, to))}</bdi>
        </pre>
      )}
      {shade.value ? null : (
        <footer>
          {last > 0 ? (
            <>
              <span class="muted">{t("text.part", { from: from + 1, to, all: words.length })}</span>
              <button type="button" class="quiet" disabled={shown === 0} onClick={() => setPart(shown - 1)}>
                {t("text.before")}
              </button>
              <button type="button" class="quiet" disabled={shown === last} onClick={() => setPart(shown + 1)}>
                {t("text.next")}
              </button>
              <button type="button" class="quiet" disabled={shown === last} onClick={() => setPart(last)}>
                {t("text.last")}
              </button>
            </>
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

/** The button that shows folded words. */
export function Unfold({ onUnfold }: { onUnfold: () => void }) {
  return (
    <p>
      <button type="button" onClick={onUnfold}>
        {t("shade.show")}
      </button>
    </p>
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
