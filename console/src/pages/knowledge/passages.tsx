// Passages: where they stand, those that a search finds, and those of a document.

import { useLayoutEffect, useState } from "preact/hooks";
import type { Document as StoredDocument, KnowledgePassage, KnowledgeSearch, PassageMetadata, SearchMode } from "@redflow/bindings";
import { api, shade } from "../../app.js";
import { Act, Age, Confirm, Empty, Fact, Reading, Sheet } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { Name, Quote, Words, showName } from "../../parts/text.js";
import { useTurns } from "../../parts/turns.js";
import { formatPlace } from "../../router.js";
import { formatAge, formatBytes, formatCount, formatShare, t, tOf } from "../../words.js";
import { changes } from "./add-files.js";

const MODES: readonly SearchMode[] = ["semantic", "lexical", "hybrid"];
const LIMITS: readonly number[] = [5, 10, 20, 50];
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

export function Search({ base }: { base: string }) {
  const [text, setText] = useState("");
  const [mode, setMode] = useState<SearchMode | undefined>();
  const [limit, setLimit] = useState(5);
  const [request, setRequest] = useState<KnowledgeSearch | undefined>();
  // The shade hides what was typed before it and what was sent.
  const [isHidden, setHidden] = useState(shade.value);
  useLayoutEffect(() => setHidden(shade.value), [shade.value]);
  const { value, error, again } = useLoad(
    async (signal) => request && { request, ...(await api.searchKnowledge(base, request, { signal })) },
    [request, changes.value],
  );
  const isBusy = request !== undefined && error === undefined && value?.request !== request;
  const search = (event: Event): void => {
    event.preventDefault();
    setHidden(shade.value);
    setRequest({ text, limit, ...(mode === undefined ? {} : { mode }) });
  };
  return (
    <section aria-labelledby="kb-search">
      <h2 id="kb-search">{t("kb.search")}</h2>
      <form class="filters" role="search" aria-labelledby="kb-search" onSubmit={search}>
        <label class="wide">
          {t("kb.search.text")}
          <input
            type="search"
            data-filter=""
            dir="auto"
            required
            value={isHidden ? "" : text}
            onInput={(event: Event) => {
              setHidden(false);
              setText((event.currentTarget as HTMLInputElement).value);
            }}
          />
        </label>
        <label>
          {t("kb.mode")}
          <select
            value={mode ?? ""}
            onChange={(event: Event) => setMode(MODES.find((name) => name === (event.currentTarget as HTMLSelectElement).value))}
          >
            <option value="">{t("kb.mode.auto")}</option>
            {MODES.map((name) => (
              <option key={name} value={name}>
                {tOf("kb.mode", name)}
              </option>
            ))}
          </select>
        </label>
        <label>
          {t("kb.limit")}
          <select value={limit} onChange={(event: Event) => setLimit(Number((event.currentTarget as HTMLSelectElement).value))}>
            {LIMITS.map((count) => (
              <option key={count} value={count}>
                {formatCount(count)}
              </option>
            ))}
          </select>
        </label>
        <Act scope="read" kind="primary" type="submit" isBusy={isBusy}>
          {t("kb.search")}
        </Act>
      </form>
      <Problem error={error} onRetry={again} />
      <div role="status">{isBusy ? t("reading") : value === undefined ? null : <span class="unseen">{t("kb.found", { n: value.results.length })}</span>}</div>
      {value?.results.length === 0 ? (
        <Empty title={t("kb.nothing")}>
          <p>{t("kb.nothing.how")}</p>
        </Empty>
      ) : null}
      <ol class="hits">
        {value?.results.map((hit, index) => (
          <Hit key={`${hit.metadata.document} ${hit.metadata.chunk}`} base={base} hit={hit} place={index + 1} />
        ))}
      </ol>
    </section>
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
      <dl class="facts">
        <Fact name={t("kb.score")}>{formatShare(score)}</Fact>
        {reason.vectorRank === undefined ? null : <Fact name={t("kb.vectorRank")}>{formatCount(reason.vectorRank)}</Fact>}
        {reason.cosine === undefined ? null : <Fact name={t("kb.cosine")}>{formatShare(reason.cosine)}</Fact>}
        {reason.textRank === undefined ? null : <Fact name={t("kb.textRank")}>{formatCount(reason.textRank)}</Fact>}
        <Fact name={t("kb.added")}>{formatAge(reason.ageMs)}</Fact>
      </dl>
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
  const [isAsked, setAsked] = useState(false);
  const { value, error, again, turns } = useTurns(
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
      <Act scope="deploy" kind="danger" onClick={() => setAsked(true)}>
        {t("kb.document.remove")}
      </Act>
      <Problem error={error} onRetry={again} />
      {value === undefined && error === undefined ? <Reading /> : null}
      {value?.passages.map(({ content, metadata }) => (
        <article key={metadata.chunk}>
          <Place metadata={metadata} />
          <Quote text={content} label={t("kb.passage", { n: metadata.chunk })} />
        </article>
      ))}
      {turns}
      {isAsked ? (
        <Confirm scope="deploy" title={t("kb.document.remove")} yes={t("token.remove")} act={remove} onClose={() => setAsked(false)}>
          {t("kb.document.remove.ask")}
        </Confirm>
      ) : null}
    </Sheet>
  );
}
