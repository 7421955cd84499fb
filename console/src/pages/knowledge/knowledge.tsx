// The knowledge bases, and one of them: a search, its documents with their passages, and files that are added.

import { useState } from "preact/hooks";
import type { Collection, Document as StoredDocument } from "@redflow/bindings";
import { api } from "../../app.js";
import type { Page, PageProps } from "../../page.js";
import { Act, Age, Confirm, Empty, Fact, Reading } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Problem } from "../../parts/problem.js";
import { Name } from "../../parts/text.js";
import { useTurns } from "../../parts/turns.js";
import { formatPlace, go, replaceQuery } from "../../router.js";
import { formatBytes, formatCount, t } from "../../words.js";
import { AddFiles, changes } from "./add-files.js";
import { Passages, Search, Title } from "./passages.js";

/** The documents that are shown at once. */
const PAGE_DOCUMENTS = 50;

/** The embedder that counts words. All others find meaning. */
const WORDS_ONLY = "hash";

const findsOf = ({ embedder }: Collection): string => (embedder === WORDS_ONLY ? t("kb.finds.words") : t("kb.finds.meaning"));

function Knowledge({ params: { name }, query }: PageProps) {
  const { value, error, again } = useLoad((signal) => api.knowledgeBases({ signal }), [changes.value]);
  const bases = value?.knowledgeBases;
  const base = bases?.find((one) => one.name === name);
  return (
    <>
      {name === undefined ? (
        <h1>{t("knowledge")}</h1>
      ) : (
        <>
          <p class="crumbs">
            <a href="#/knowledge">{t("kb.all")}</a>
          </p>
          <h1>
            <Name text={name} />
          </h1>
        </>
      )}
      <Problem error={error} onRetry={again} />
      {bases === undefined ? (
        error === undefined ? <Reading /> : null
      ) : name === undefined && bases.length > 0 ? (
        <Bases bases={bases} />
      ) : base === undefined ? (
        <Empty title={name === undefined ? t("kb.empty") : t("kb.unknown")}>
          <p>{t("kb.empty.how")}</p>
          <code>redflow kb add NAME PATH</code>
        </Empty>
      ) : (
        <Base base={base} query={query} />
      )}
      {bases === undefined ? null : <AddFiles base={name} key={name} />}
    </>
  );
}

function Bases({ bases }: { bases: readonly Collection[] }) {
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label={t("knowledge")}>
      <table>
        <caption class="unseen">{t("knowledge")}</caption>
        <thead>
          <tr>
            <th scope="col">{t("token.name")}</th>
            <th scope="col" class="number">
              {t("kb.documents")}
            </th>
            <th scope="col" class="number">
              {t("kb.passages")}
            </th>
            <th scope="col">{t("kb.embedder")}</th>
            <th scope="col">{t("kb.finds")}</th>
          </tr>
        </thead>
        <tbody>
          {bases.map((base) => (
            <tr key={base.name}>
              <th scope="row">
                <a href={formatPlace(["knowledge", base.name])} data-entry="">
                  <Name text={base.name} />
                </a>
              </th>
              <td class="number">{formatCount(base.documents)}</td>
              <td class="number">{formatCount(base.entries)}</td>
              <td>
                <Name text={base.embedder} />
              </td>
              <td>{findsOf(base)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Base({ base, query }: { base: Collection; query: PageProps["query"] }) {
  const { name } = base;
  const [isAsked, setAsked] = useState(false);
  const remove = async (isHere: () => boolean): Promise<void> => {
    await api.removeKnowledgeBase(name);
    if (isHere()) {
      go(["knowledge"]);
    }
    changes.value += 1;
  };
  return (
    <>
      <div class="head">
        <dl class="facts">
          <Fact name={t("kb.documents")}>{formatCount(base.documents)}</Fact>
          <Fact name={t("kb.passages")}>{formatCount(base.entries)}</Fact>
          <Fact name={t("kb.embedder")}>
            <Name text={base.embedder} />
          </Fact>
          <Fact name={t("kb.finds")}>{findsOf(base)}</Fact>
        </dl>
        <Act scope="deploy" kind="danger" onClick={() => setAsked(true)}>
          {t("kb.remove")}
        </Act>
      </div>
      <Contents base={name} query={query} />
      {isAsked ? (
        <Confirm scope="deploy" title={t("kb.remove")} yes={t("token.remove")} act={remove} onClose={() => setAsked(false)}>
          {t("kb.remove.ask", { n: base.documents })}
        </Confirm>
      ) : null}
    </>
  );
}

/** The search and the documents. What is chosen of either is shown beside them. */
function Contents({ base, query }: { base: string; query: PageProps["query"] }) {
  const { value, error, again, turns } = useTurns(
    (after: string | undefined, signal) => api.documents(base, { after, limit: PAGE_DOCUMENTS, signal }),
    [base, changes.value],
  );
  const { document = "", at = "" } = query;
  return (
    <div class="two follow">
      <div>
        <Search base={base} />
        <section aria-labelledby="kb-documents">
          <h2 id="kb-documents">{t("kb.documents")}</h2>
          <Problem error={error} onRetry={again} />
          {value === undefined ? (
            error === undefined ? <Reading /> : null
          ) : (
            <div class="table-box" tabIndex={0} role="group" aria-label={t("kb.documents")}>
              <table>
                <caption class="unseen">{t("kb.documents")}</caption>
                <thead>
                  <tr>
                    <th scope="col">{t("kb.document")}</th>
                    <th scope="col" class="number">
                      {t("kb.size")}
                    </th>
                    <th scope="col" class="number">
                      {t("kb.passages")}
                    </th>
                    <th scope="col">{t("kb.tags")}</th>
                    <th scope="col">{t("kb.added")}</th>
                  </tr>
                </thead>
                <tbody>
                  {value.documents.map((one) => (
                    <DocumentRow key={one.name} base={base} document={one} isChosen={one.name === document} />
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {turns}
        </section>
      </div>
      {document === "" ? null : (
        <Passages
          key={`${document} ${at}`}
          base={base}
          document={document}
          known={value?.documents.find(({ name }) => name === document)}
          at={Number(at)}
          onClose={() => replaceQuery({})}
        />
      )}
    </div>
  );
}

function DocumentRow({ base, document, isChosen }: { base: string; document: StoredDocument; isChosen: boolean }) {
  const { name, title, bytes, chunks, tags, addedAt } = document;
  return (
    <tr aria-current={isChosen ? "true" : undefined}>
      <th scope="row">
        <a href={formatPlace(["knowledge", base], { document: name })} data-entry="">
          <Title title={title} name={name} />
        </a>
        <br />
        <small class="muted">
          <Name text={name} />
        </small>
      </th>
      <td class="number">{formatBytes(bytes)}</td>
      <td class="number">{formatCount(chunks)}</td>
      <td>
        <Name text={tags.join(", ")} />
      </td>
      <td>
        <Age at={addedAt} />
      </td>
    </tr>
  );
}

export const page: Page = { feature: "knowledge", route: "knowledge/:name?", title: "knowledge", view: Knowledge };
