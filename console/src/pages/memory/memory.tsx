// The long memories, and one of them: a search, its entries, and those that wait for a review.

import { useState } from "preact/hooks";
import type { Decision, EntryState, MemoryCollection, MemoryFilter } from "@redflow/bindings";
import { api, sayFailure } from "../../app.js";
import type { Page, PageProps } from "../../page.js";
import { Act, Age, Confirm, Empty, Fact, Tabs } from "../../parts/controls.js";
import { Choice, Field, type Option } from "../../parts/fields.js";
import { useLoad } from "../../parts/load.js";
import { Loaded } from "../../parts/problem.js";
import { Heading, Reasons, Search, findsOf } from "../../parts/search.js";
import { Table } from "../../parts/table.js";
import { Name, Quote } from "../../parts/text.js";
import { useTurns } from "../../parts/turns.js";
import { formatPlace, replaceQuery } from "../../router.js";
import { formatCount, t, tOf } from "../../words.js";
import { Beginning, Chosen, Facts, KINDS, State, changes } from "./entry.js";
import { Forget } from "./forget.js";

/** The entries that are shown at once. */
const PAGE_ENTRIES = 50;
const STATES: readonly EntryState[] = ["live", "pinned", "archived", "superseded", "quarantined"];

function Memory({ params: { name }, query }: PageProps) {
  const load = useLoad((signal) => api.memories({ signal }), [changes.value]);
  return (
    <>
      <div class="head">
        <div>
          <Heading name={name} title={t("memory")} all={t("memory.all")} href="#/memory" />
        </div>
        <Forget />
      </div>
      <Loaded load={load}>
        {({ memories }) => {
          const memory = memories.find((one) => one.name === name);
          return name === undefined && memories.length > 0 ? (
            <Memories memories={memories} />
          ) : memory === undefined ? (
            <Empty title={name === undefined ? t("memory.empty") : t("memory.unknown")}>
              <p>{t("memory.empty.how")}</p>
            </Empty>
          ) : (
            <One key={name} memory={memory} query={query} />
          );
        }}
      </Loaded>
    </>
  );
}

function Waiting({ count }: { count: number }) {
  return count === 0 ? <>0</> : <span class="badge status-waiting">{formatCount(count)}</span>;
}

function Memories({ memories }: { memories: readonly MemoryCollection[] }) {
  return (
    <Table label={t("memory")} heads={[t("token.name"), t("memory.entries"), t("memory.review"), t("kb.embedder"), t("kb.finds"), t("kb.added")]} numbers={[1, 2]}>
      {memories.map(({ name, entries, quarantined, embedder, createdAt }) => (
        <tr key={name}>
          <th scope="row">
            <a href={formatPlace(["memory", name])} data-entry="">
              <Name text={name} />
            </a>
          </th>
          <td class="number">{formatCount(entries)}</td>
          <td class="number">
            <Waiting count={quarantined} />
          </td>
          <td>
            <Name text={embedder} />
          </td>
          <td>{findsOf(embedder)}</td>
          <td>
            <Age at={createdAt} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** What the tabs of a memory share. */
interface PartProps {
  name: string;
  query: PageProps["query"];
  /** The address of an entry. */
  hrefOf: (key: string) => string;
}

function One({ memory, query }: { memory: MemoryCollection; query: PageProps["query"] }) {
  const { name, embedder, entries, quarantined } = memory;
  const chosen = query["entry"] ?? "";
  const hrefOf = (key: string): string => formatPlace(["memory", name], { ...query, entry: key });
  const part: PartProps = { name, query, hrefOf };
  return (
    <>
      <dl class="facts">
        <Fact name={t("memory.entries")}>{formatCount(entries)}</Fact>
        <Fact name={t("memory.review")}>
          <Waiting count={quarantined} />
        </Fact>
        <Fact name={t("kb.embedder")}>
          <Name text={embedder} />
        </Fact>
        <Fact name={t("kb.finds")}>{findsOf(embedder)}</Fact>
      </dl>
      <Tabs
        label={t("memory")}
        tabs={[
          { name: "", title: t("memory.entries") },
          { name: "review", title: `${t("memory.review")} (${formatCount(quarantined)})` },
        ]}
        chosen={query["tab"] === "review" ? "review" : ""}
        onChoose={(tab) => replaceQuery({ ...query, tab, entry: "" })}
      >
        <div class="two follow">
          <div>{query["tab"] === "review" ? <Review {...part} /> : <Entries {...part} />}</div>
          {chosen === "" ? null : <Chosen key={chosen} {...{ memory: name, chosen, hrefOf }} onClose={() => replaceQuery({ ...query, entry: "" })} />}
        </div>
      </Tabs>
    </>
  );
}

/** The filters, the search, and the list. */
function Entries({ name, query, hrefOf }: PartProps) {
  const set = (field: string) => (value: string) => replaceQuery({ ...query, [field]: value });
  const [user, session] = [query["user"] || undefined, query["session"] || undefined];
  const [kind, state] = [KINDS.find((one) => one === query["kind"]), STATES.find((one) => one === query["state"])];
  const owner = { ...(user === undefined ? {} : { user }), ...(session === undefined ? {} : { session }) };
  const filter: MemoryFilter = { ...owner, ...(kind === undefined ? {} : { kind }), ...(state === undefined ? {} : { state }) };
  const all: Option = ["", t("filter.all")];
  return (
    <>
      <form class="filters" aria-label={t("filter")} onSubmit={(event: Event) => event.preventDefault()}>
        <Field label={t("entry.user")} type="search" value={user ?? ""} onDone={set("user")} />
        <Field label={t("entry.session")} type="search" value={session ?? ""} onDone={set("session")} />
        <Choice label={t("entry.kind")} value={kind ?? ""} options={[all, ...KINDS.map((one): Option => [one, tOf("entry.kind", one)])]} onChoose={set("kind")} />
      </form>
      <Search
        search={(request, signal) => api.searchMemory(name, { ...request, ...owner, ...(kind === undefined ? {} : { kinds: [kind] }) }, { signal })}
        keys={[user, session, kind, changes.value]}
        help={t("memory.nothing.how")}
        hit={({ entry, score, reason }, place) => (
          <li key={entry.key} class="card">
            <h3>
              {place}.{" "}
              <a href={hrefOf(entry.key)} data-entry="">
                {tOf("entry.kind", entry.kind)}
              </a>
            </h3>
            <Quote text={entry.text} label={t("entry.text")} />
            <Reasons score={score} reason={reason} />
          </li>
        )}
      />
      <section aria-labelledby="memory-entries">
        <h2 id="memory-entries">{t("memory.entries")}</h2>
        <form class="filters" aria-label={t("memory.entries")} onSubmit={(event: Event) => event.preventDefault()}>
          <Choice label={t("run.status")} value={state ?? ""} options={[all, ...STATES.map((one): Option => [one, tOf("entry.state", one)])]} onChoose={set("state")} />
        </form>
        <List key={JSON.stringify(filter)} {...{ name, filter, query, hrefOf }} />
      </section>
    </>
  );
}

function List({ name, filter, query, hrefOf }: PartProps & { filter: MemoryFilter }) {
  const { turns, ...load } = useTurns(
    (after: string | undefined, signal) => api.memoryEntries(name, { ...filter, limit: PAGE_ENTRIES, after, signal }),
    [name, changes.value],
  );
  return (
    <>
      <Loaded load={load}>
        {({ entries }) =>
          entries.length === 0 ? (
            <p class="muted">{t("memory.none")}</p>
          ) : (
            <Table label={t("memory.entries")} heads={[t("entry.text"), t("entry.kind"), t("run.status"), t("entry.trust"), t("entry.user"), t("kb.added")]}>
              {entries.map((entry) => (
                <tr key={entry.key} aria-current={entry.key === query["entry"] ? "true" : undefined}>
                  <th scope="row">
                    <Beginning entry={entry} href={hrefOf(entry.key)} />
                  </th>
                  <td>{tOf("entry.kind", entry.kind)}</td>
                  <td>
                    <State entry={entry} />
                  </td>
                  <td>{tOf("entry.trust", entry.trust)}</td>
                  <td>
                    <Name text={entry.user ?? ""} />
                  </td>
                  <td>
                    <Age at={entry.createdAt} />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      {turns}
    </>
  );
}

/** The entries that wait for a person, each with what it is about. */
function Review({ name, hrefOf }: PartProps) {
  const [rejected, setRejected] = useState<string | undefined>();
  const { turns, ...load } = useTurns(
    (after: string | undefined, signal) => api.memoryEntries(name, { state: "quarantined", limit: PAGE_ENTRIES, after, signal }),
    [name, changes.value],
  );
  const decide = async (key: string, decision: Decision): Promise<void> => {
    await api.reviewMemory({ memory: name, keys: [key], decision });
    changes.value += 1;
  };
  return (
    <>
      <p class="muted">{t("memory.review.what")}</p>
      <Loaded load={load}>
        {({ entries }) =>
          entries.length === 0 ? (
            <Empty title={t("memory.review.none")} />
          ) : (
            <ul class="hits">
              {entries.map((entry) => (
                <li key={entry.key} class="card">
                  <h3>
                    <a href={hrefOf(entry.key)} data-entry="">
                      {tOf("entry.kind", entry.kind)}
                    </a>
                  </h3>
                  <Quote text={entry.text} label={t("entry.text")} />
                  <Facts entry={entry} />
                  <div class="buttons">
                    <Act scope="admin" kind="primary" onClick={() => void decide(entry.key, "approve").catch(sayFailure)}>
                      {t("memory.approve")}
                    </Act>
                    <Act scope="admin" kind="danger" onClick={() => setRejected(entry.key)}>
                      {t("memory.reject")}
                    </Act>
                  </div>
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
      {turns}
      {rejected === undefined ? null : (
        <Confirm scope="admin" title={t("memory.reject")} yes={t("memory.reject")} act={() => decide(rejected, "reject")} onClose={() => setRejected(undefined)}>
          {t("entry.remove.ask")}
        </Confirm>
      )}
    </>
  );
}

export const page: Page = { feature: "memory", route: "memory/:name?", title: "memory", view: Memory };
