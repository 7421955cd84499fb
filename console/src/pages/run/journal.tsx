// The journal of a run, page by page. Each line is a record of the proof.

import { useState } from "preact/hooks";
import { api, shade } from "../../app.js";
import { Reading } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { cut, showInvisible } from "../../parts/text.js";
import { t } from "../../words.js";

/** The lines of one page. */
const PAGE_LINES = 50;
/** The most characters of a line before it is opened. */
const MAX_LINE = 160;
/** The most characters of an opened line. */
const MAX_OPENED = 20_000;

/** The kind of a record, such as `fact model_answered`. */
export function describeRecord(line: string): string {
  try {
    const { record } = JSON.parse(line) as { record?: { kind?: unknown; effect?: unknown; fact?: { type?: unknown } } };
    return [record?.kind, record?.fact?.type ?? record?.effect].filter((part) => typeof part === "string").join(" ");
  } catch {
    return "";
  }
}

/** A line as indented JSON; as it is if it is none. */
function indent(line: string): string {
  try {
    return JSON.stringify(JSON.parse(line), null, 2);
  } catch {
    return line;
  }
}

export function Journal({ id }: { id: string }) {
  const [from, setFrom] = useState(1);
  const { value, error, again } = useLoad((signal) => api.journalPage(id, { from, lines: PAGE_LINES, signal }), [id, from]);
  if (error !== undefined && value === undefined) {
    return <Problem error={error} onRetry={again} />;
  }
  if (value === undefined) {
    return <Reading />;
  }
  return (
    <>
      <p class="muted">
        {t("journal.lines", { from: value.from, to: value.from + value.lines.length - 1, total: value.total })} {t("run.journal.help")}
      </p>
      <ol class="journal" start={value.from}>
        {value.lines.map((line, index) => (
          <li key={value.from + index} value={value.from + index}>
            <JournalLine line={line} />
          </li>
        ))}
      </ol>
      <div class="buttons">
        <button type="button" disabled={from <= 1} onClick={() => setFrom(Math.max(1, from - PAGE_LINES))}>
          {t("journal.before")}
        </button>
        <button type="button" disabled={value.next === undefined} onClick={() => setFrom(value.next ?? from)}>
          {t("journal.next")}
        </button>
      </div>
    </>
  );
}

function JournalLine({ line }: { line: string }) {
  const [isOpen, setOpen] = useState(false);
  const kind = describeRecord(line);
  return (
    <details onToggle={(event: Event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary data-entry="">
        <strong>{kind}</strong> {shade.value ? null : <code><bdi>{showInvisible(cut(line, MAX_LINE))}</bdi></code>}
      </summary>
      {isOpen ? (
        shade.value ? (
          <p class="muted">{t("shade.hidden")}</p>
        ) : (
          <pre tabIndex={0} aria-label={kind}>
            <bdi>{showInvisible(cut(indent(line), MAX_OPENED))}</bdi>
          </pre>
        )
      ) : null}
    </details>
  );
}
