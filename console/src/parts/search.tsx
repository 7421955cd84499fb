// What the pages of knowledge bases and of memories share: the frame of a page, a search that says why it found something, and
// the removal of something.

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useState } from "preact/hooks";
import type { HitReason, SearchMode } from "@redflow/bindings";
import { shade } from "../app.js";
import { formatAge, formatCount, formatShare, t, tOf } from "../words.js";
import { Act, Confirm, Empty, Fact } from "./controls.js";
import { Choice, Field, type Option } from "./fields.js";
import { useLoad } from "./load.js";
import { Problem } from "./problem.js";
import { Name } from "./text.js";

const MODES: readonly SearchMode[] = ["semantic", "lexical", "hybrid"];
const LIMITS: readonly string[] = ["5", "10", "20", "50"];
/** The embedder that counts words. All others find meaning. */
const WORDS_ONLY = "hash";

/** What a search with this embedder finds. */
export function findsOf(embedder: string): string {
  return embedder === WORDS_ONLY ? t("kb.finds.words") : t("kb.finds.meaning");
}

/** The heading of a page of many: its title, or the name of the chosen one below a link to all. */
export function Heading({ name, title, all, href }: { name: string | undefined; title: string; all: string; href: string }) {
  return name === undefined ? (
    <h1>{title}</h1>
  ) : (
    <>
      <p class="crumbs">
        <a href={href}>{all}</a>
      </p>
      <h1>
        <Name text={name} />
      </h1>
    </>
  );
}

/** What a user searches for. */
export interface SearchRequest {
  text: string;
  limit: number;
  mode?: SearchMode;
}

interface SearchProps<Hit> {
  /** Searches, the best first. */
  search: (request: SearchRequest, signal: AbortSignal) => Promise<{ results: readonly Hit[] }>;
  /** The search is made again when they change. */
  keys: readonly unknown[];
  /** What to do if nothing is found. */
  help: string;
  /** Draws something that was found at a place, from 1. */
  hit: (hit: Hit, place: number) => ComponentChildren;
}

export function Search<Hit>({ search, keys, help, hit }: SearchProps<Hit>) {
  const id = useId();
  const [text, setText] = useState("");
  const [mode, setMode] = useState<SearchMode | "">("");
  const [limit, setLimit] = useState("5");
  const [request, setRequest] = useState<SearchRequest | undefined>();
  // The shade hides what was typed before it and what was sent.
  const [isHidden, setHidden] = useState(shade.value);
  useLayoutEffect(() => setHidden(shade.value), [shade.value]);
  const { value, error, again } = useLoad(async (signal) => request && { request, ...(await search(request, signal)) }, [request, ...keys]);
  const isBusy = request !== undefined && error === undefined && value?.request !== request;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{t("kb.search")}</h2>
      <form
        class="filters"
        role="search"
        aria-labelledby={id}
        onSubmit={(event: Event) => {
          event.preventDefault();
          setHidden(shade.value);
          setRequest({ text, limit: Number(limit), ...(mode === "" ? {} : { mode }) });
        }}
      >
        <Field
          class="wide"
          label={t("kb.search.text")}
          type="search"
          data-filter=""
          dir="auto"
          required
          value={isHidden ? "" : text}
          onText={(typed) => {
            setHidden(false);
            setText(typed);
          }}
        />
        <Choice label={t("kb.mode")} value={mode} options={[["", t("kb.mode.auto")], ...MODES.map((name): Option<SearchMode> => [name, tOf("kb.mode", name)])]} onChoose={setMode} />
        <Choice label={t("kb.limit")} value={limit} options={LIMITS.map((count) => [count, count])} onChoose={setLimit} />
        <Act scope="read" kind="primary" type="submit" isBusy={isBusy}>
          {t("kb.search")}
        </Act>
      </form>
      <Problem error={error} onRetry={again} />
      <div role="status">{isBusy ? t("reading") : value === undefined ? null : <span class="unseen">{t("kb.found", { n: value.results.length })}</span>}</div>
      {value?.results.length === 0 ? (
        <Empty title={t("kb.nothing")}>
          <p>{help}</p>
        </Empty>
      ) : null}
      <ol class="hits">{value?.results.map((one, index) => hit(one, index + 1))}</ol>
    </section>
  );
}

/** Why something was found. */
export function Reasons({ score, reason: { vectorRank, cosine, textRank, ageMs } }: { score: number; reason: HitReason }) {
  return (
    <dl class="facts">
      <Fact name={t("kb.score")}>{formatShare(score)}</Fact>
      {vectorRank === undefined ? null : <Fact name={t("kb.vectorRank")}>{formatCount(vectorRank)}</Fact>}
      {cosine === undefined ? null : <Fact name={t("kb.cosine")}>{formatShare(cosine)}</Fact>}
      {textRank === undefined ? null : <Fact name={t("kb.textRank")}>{formatCount(textRank)}</Fact>}
      <Fact name={t("kb.added")}>{formatAge(ageMs)}</Fact>
    </dl>
  );
}

interface RemoveProps {
  /** What the button says. */
  title: string;
  act: (isHere: () => boolean) => Promise<void>;
  /** What the question says. */
  children: ComponentChildren;
}

/** A button that removes something after a question. */
export function Remove({ title, act, children }: RemoveProps) {
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <Act scope="deploy" kind="danger" onClick={() => setAsked(true)}>
        {title}
      </Act>
      {isAsked ? (
        <Confirm scope="deploy" title={title} yes={t("token.remove")} act={act} onClose={() => setAsked(false)}>
          {children}
        </Confirm>
      ) : null}
    </>
  );
}
