// The first difference of a replay: the line between its neighbours, and what was recorded against what was replayed.

import { diffWordsWithSpace } from "diff";
import { type Difference, cutText, showInvisible } from "@redflow/bindings";
import { api, shade } from "../../app.js";
import { Reading } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { Words } from "../../parts/text.js";
import { t } from "../../words.js";
import { JournalLine } from "./journal.js";

/** The most characters that are compared. */
const MAX_COMPARED = 4_000;

export function FirstDifference({ id, difference }: { id: string; difference: Difference }) {
  const { line, message, recorded, replayed } = difference;
  const from = Math.max(1, line - 1);
  const page = useLoad((signal) => api.journalPage(id, { from, lines: 3, signal }), [id, line]);
  return (
    <div class="difference">
      <p>
        <strong>{t("proof.line", { n: line })}</strong> <Words text={message} />
      </p>
      {shade.value ? <p class="muted">{t("shade.hidden")}</p> : (
        <>
          {recorded === undefined && replayed === undefined ? null : <Comparison recorded={recorded ?? ""} replayed={replayed ?? ""} />}
          <Problem error={page.error} />
          {page.value === undefined ? (page.error === undefined ? <Reading /> : null) : (
            <ol class="journal" start={page.value.from}>
              {page.value.lines.map((text, index) => (
                <li key={index} value={from + index} aria-current={from + index === line ? "true" : undefined}>
                  <JournalLine line={text} isUnfolded />
                </li>
              ))}
            </ol>
          )}
        </>
      )}
    </div>
  );
}

function Comparison({ recorded, replayed }: { recorded: string; replayed: string }) {
  const parts = diffWordsWithSpace(cutText(recorded, MAX_COMPARED), cutText(replayed, MAX_COMPARED));
  return (
    <dl class="compared">
      <dt>{t("proof.recorded")}</dt>
      <dd>
        <bdi>{parts.map((part, index) => (part.added ? null : part.removed ? <del key={index}>{showInvisible(part.value)}</del> : showInvisible(part.value)))}</bdi>
      </dd>
      <dt>{t("proof.replayed")}</dt>
      <dd>
        <bdi>{parts.map((part, index) => (part.removed ? null : part.added ? <ins key={index}>{showInvisible(part.value)}</ins> : showInvisible(part.value)))}</bdi>
      </dd>
    </dl>
  );
}
