// The knowledge bases, and one of them: a search, its documents with their passages, and files that are added.

import type { Collection, Document as StoredDocument } from "@redflow/bindings";
import { api } from "../../app.js";
import type { Page, PageProps } from "../../page.js";
import { Age, Empty, Fact } from "../../parts/controls.js";
import { useLoad } from "../../parts/load.js";
import { Loaded } from "../../parts/problem.js";
import { Heading, Remove, findsOf } from "../../parts/search.js";
import { Table } from "../../parts/table.js";
import { Name } from "../../parts/text.js";
import { useTurns } from "../../parts/turns.js";
import { formatPlace, go, replaceQuery } from "../../router.js";
import { formatBytes, formatCount, t } from "../../words.js";
import { AddFiles, changes } from "./add-files.js";
import { Passages, SearchPassages, Title } from "./passages.js";

/** The documents that are shown at once. */
const PAGE_DOCUMENTS = 50;

function Knowledge({ params: { name }, query }: PageProps) {
  const load = useLoad((signal) => api.knowledgeBases({ signal }), [changes.value]);
  return (
    <>
      <Heading name={name} title={t("knowledge")} all={t("kb.all")} href="#/knowledge" />
      <Loaded load={load}>
        {({ knowledgeBases: bases }) => {
          const base = bases.find((one) => one.name === name);
          return (
            <>
              {name === undefined && bases.length > 0 ? (
                <Bases bases={bases} />
              ) : base === undefined ? (
                <Empty title={name === undefined ? t("kb.empty") : t("kb.unknown")}>
                  <p>{t("kb.empty.how")}</p>
                  <code>redflow kb add NAME PATH</code>
                </Empty>
              ) : (
                <Base base={base} query={query} />
              )}
              <AddFiles base={name} key={name} />
            </>
          );
        }}
      </Loaded>
    </>
  );
}

function Bases({ bases }: { bases: readonly Collection[] }) {
  return (
    <Table label={t("knowledge")} heads={[t("token.name"), t("kb.documents"), t("kb.passages"), t("kb.embedder"), t("kb.finds")]} numbers={[1, 2]}>
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
          <td>{findsOf(base.embedder)}</td>
        </tr>
      ))}
    </Table>
  );
}

function Base({ base, query }: { base: Collection; query: PageProps["query"] }) {
  const { name } = base;
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
          <Fact name={t("kb.finds")}>{findsOf(base.embedder)}</Fact>
        </dl>
        <Remove title={t("kb.remove")} act={remove}>
          {t("kb.remove.ask", { n: base.documents })}
        </Remove>
      </div>
      <Contents base={name} query={query} />
    </>
  );
}

/** The search and the documents. What is chosen of either is shown beside them. */
function Contents({ base, query }: { base: string; query: PageProps["query"] }) {
  const { turns, ...load } = useTurns(
    (after: string | undefined, signal) => api.documents(base, { after, limit: PAGE_DOCUMENTS, signal }),
    [base, changes.value],
  );
  const { document = "", at = "" } = query;
  return (
    <div class="two follow">
      <div>
        <SearchPassages base={base} />
        <section aria-labelledby="kb-documents">
          <h2 id="kb-documents">{t("kb.documents")}</h2>
          <Loaded load={load}>
            {({ documents }) => (
              <Table label={t("kb.documents")} heads={[t("kb.document"), t("kb.size"), t("kb.passages"), t("kb.tags"), t("kb.added")]} numbers={[1, 2]}>
                {documents.map((one) => (
                  <DocumentRow key={one.name} base={base} document={one} isChosen={one.name === document} />
                ))}
              </Table>
            )}
          </Loaded>
          {turns}
        </section>
      </div>
      {document === "" ? null : (
        <Passages
          key={`${document} ${at}`}
          base={base}
          document={document}
          known={load.value?.documents.find(({ name }) => name === document)}
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
