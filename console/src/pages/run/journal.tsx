// The journal of a run, page by page. Each line is a record of the proof.

import { useState } from "preact/hooks";
import { api, shade } from "../../app.js";
import { Reading } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Coded, Problem } from "../../parts/problem.js";
import { Quote, showText } from "../../parts/text.js";
import { formatBytes, t } from "../../words.js";
import { addressOf } from "./actions.js";

/** The lines of one page. */
const PAGE_LINES = 50;
/** The most characters of a line before it is opened. */
const MAX_LINE = 160;

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

export function Journal({ id, isUnfolded }: { id: string; isUnfolded: boolean }) {
  const [from, setFrom] = useState(1);
  const { value, error, again } = useLoad((signal) => api.journalPage(id, { from, lines: PAGE_LINES, signal }), [id, from]);
  const problem = error === undefined ? null : <Problem error={error} onRetry={again} />;
  if (value === undefined) {
    return problem ?? <Reading />;
  }
  return (
    <>
      {problem}
      <p class="muted">
        {t("journal.lines", { from: value.from, to: value.from + value.lines.length - 1, total: value.total })} {t("run.journal.help")}
      </p>
      <ol class="journal" start={value.from}>
        {value.lines.map((line, index) => (
          <li key={value.from + index} value={value.from + index}>
            <JournalLine line={line} isUnfolded={isUnfolded} />
          </li>
        ))}
      </ol>
      {value.cut === undefined ? null : (
        <p>
          {t("journal.cut", { bytes: formatBytes(value.cut) })} <a href={addressOf(id, "journal")}>{t("run.journal")}</a>
        </p>
      )}
      {value.problem === undefined ? null : <Coded code={value.problem.code} message={value.problem.message} />}
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

/** A line of a journal, which opens in place. */
export function JournalLine({ line, isUnfolded }: { line: string; isUnfolded: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const kind = describeRecord(line);
  return (
    <details onToggle={(event: Event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary data-entry="">
        <strong>{kind}</strong> {shade.value || !isUnfolded ? null : <code><bdi>{showText(line, MAX_LINE)}</bdi></code>}
      </summary>
      {isOpen && isUnfolded ? <Quote text={indent(line)} label={kind || t("run.journal")} /> : null}
    </details>
  );
}
