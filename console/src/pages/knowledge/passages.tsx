// Passages: where they stand, those that a search finds, and those of a document.

import type { Document as StoredDocument, KnowledgePassage, PassageMetadata } from "@redflow/bindings";
import { api, shade } from "../../app.js";
import { Age, Fact, Sheet } from "../../parts/controls.js";
import { Loaded } from "../../parts/problem.js";
import { Reasons, Remove, Search } from "../../parts/search.js";
import { Name, Quote, Words, showName } from "../../parts/text.js";
import { useTurns } from "../../parts/turns.js";
import { formatPlace } from "../../router.js";
import { formatBytes, formatCount, t } from "../../words.js";
import { changes } from "./add-files.js";

/** The passages of a document that are shown at once. */
const PAGE_PASSAGES = 20;

/** The title of a document. It is a text of the document, so the shade hides it: its name is there then. */
export function Title({ title, name }: { title: string; name: string }) {
  return <Name text={shade.value ? name : title} fallback={name} />;
}

/** Where a passage stands in its document. */
function Place({ metadata: { headings = [], page, row, pointer } }: { metadata: PassageMetadata }) {
  const words = shade.value ? [] : [...headings, ...(pointer === undefined ? [] : [pointer])];
  const parts = [...words, ...(page === undefined ? [] : [t("kb.page", { n: page })]), ...(row === undefined ? [] : [t("kb.row", { n: row })])];
  return (
    <small class="muted">
      <Words text={parts.join(" › ")} />
    </small>
  );
}

export function SearchPassages({ base }: { base: string }) {
  return (
    <Search
      search={(request, signal) => api.searchKnowledge(base, request, { signal })}
      keys={[changes.value]}
      help={t("kb.nothing.how")}
      hit={(hit, place) => <Hit key={`${hit.metadata.document} ${hit.metadata.chunk}`} {...{ base, hit, place }} />}
    />
  );
}

function Hit({ base, hit, place }: { base: string; hit: KnowledgePassage; place: number }) {
  const { content, score, metadata, reason } = hit;
  const { document, chunk } = metadata;
  return (
    <li class="card">
      <h3>
        {place}.{" "}
        <a href={formatPlace(["knowledge", base], { document, at: String(chunk) })} data-entry="">
          <Title title={metadata.title} name={document} />
        </a>{" "}
        <Place metadata={metadata} />
      </h3>
      <Quote text={content} label={t("kb.passage", { n: chunk })} />
      <Reasons score={score} reason={reason} />
    </li>
  );
}

interface PassagesProps {
  base: string;
  document: string;
  /** What is known about the document; undefined if the list beside does not have it. */
  known: StoredDocument | undefined;
  /** The number of the passage to begin with. */
  at: number;
  onClose: () => void;
}

/** The passages of a document, beside the list. */
export function Passages({ base, document, known, at, onClose }: PassagesProps) {
  const { turns, ...load } = useTurns(
    (after: number | undefined, signal) => api.passages(base, document, { after, limit: PAGE_PASSAGES, signal }),
    [base, document, changes.value],
    at > 1 ? at - 1 : undefined,
  );
  const remove = async (isHere: () => boolean): Promise<void> => {
    await api.removeDocument(base, document);
    if (isHere()) {
      onClose();
    }
    changes.value += 1;
  };
  return (
    <Sheet label={showName(document)} onClose={onClose}>
      <h2>
        <Name text={document} />
      </h2>
      {known === undefined ? null : (
        <dl class="facts">
          {shade.value ? null : (
            <Fact name={t("kb.title")}>
              <Name text={known.title} />
            </Fact>
          )}
          <Fact name={t("kb.origin")}>
            <Words text={known.origin} />
          </Fact>
          <Fact name={t("kb.size")}>{formatBytes(known.bytes)}</Fact>
          <Fact name={t("kb.passages")}>{formatCount(known.chunks)}</Fact>
          <Fact name={t("kb.added")}>
            <Age at={known.addedAt} />
          </Fact>
        </dl>
      )}
      <Remove title={t("kb.document.remove")} act={remove}>
        {t("kb.document.remove.ask")}
      </Remove>
      <Loaded load={load}>
        {({ passages }) =>
          passages.map(({ content, metadata }) => (
            <article key={metadata.chunk}>
              <Place metadata={metadata} />
              <Quote text={content} label={t("kb.passage", { n: metadata.chunk })} />
            </article>
          ))
        }
      </Loaded>
      {turns}
    </Sheet>
  );
}
