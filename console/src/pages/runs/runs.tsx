// The runs: filtered by the address, live, newest first.

import { useEffect, useRef, useState } from "preact/hooks";
import type { RunId, RunSummary, TreeRun } from "@redflow/bindings";
import { api, now, say, sayFailure, waitingCount } from "../../app.js";
import { addKeys } from "../../keys.js";
import { LIST_TYPES } from "../../live.js";
import type { Page, PageProps } from "../../page.js";
import { Act, Age, Badge, Dialog, Empty, Reading } from "../../parts/controls.js";
import { useLive } from "../../parts/load.js";
import { Rows } from "../../parts/rows.js";
import type { Column } from "../../parts/rows.js";
import { Name } from "../../parts/text.js";
import { formatPlace, replaceQuery } from "../../router.js";
import { formatCost, formatCount, formatDuration, formatShort, formatTime, t, tOf } from "../../words.js";
import { MAX_ROWS, OPEN_STATUSES, PERIODS, STATUSES, appendPage, applyEvents, filterOf, mergeFirstPage, requestOf, runEvents } from "./list.js";

/** The rows of one request. */
const PAGE_ROWS = 100;
/** The least time between two reads of the first page while runs begin. */
const REFRESH_MS = 1_000;
/** The most runs that one click cancels. */
const MAX_CANCELLED = 1_000;
/** The cancellations that are sent at the same time. */
const CANCELS_AT_ONCE = 4;

/** On narrower pages the fields of the filter are folded at first. */
const NARROW_PX = 800;

/** The filters of one key: the key, the word and the statuses. */
const QUICK: readonly { key: string; name: string; status: string }[] = [
  { key: "1", name: "all", status: "" },
  { key: "2", name: "open", status: OPEN_STATUSES.join(",") },
  { key: "3", name: "waiting", status: "waiting" },
  { key: "4", name: "failed", status: "failed" },
];

interface Line {
  run: RunSummary;
  depth: number;
}

function Runs({ query }: PageProps) {
  const filter = filterOf(query);
  const key = JSON.stringify(filter);
  const [rows, setRows] = useState<readonly RunSummary[] | undefined>();
  const [next, setNext] = useState<RunId | undefined>();
  const [searchedTo, setSearchedTo] = useState<number | undefined>();
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const [children, setChildren] = useState<ReadonlyMap<RunId, readonly TreeRun[]>>(new Map());
  const [isCancelling, setCancelling] = useState(false);
  const isAtRest = useRef(true);
  const isReading = useRef(false);
  const shown = useRef(rows);
  shown.current = rows;

  const readFirst = async (signal?: AbortSignal): Promise<void> => {
    const page = await api.runs({ ...requestOf(filter, Date.now()), limit: PAGE_ROWS }, signal === undefined ? {} : { signal });
    const known = shown.current ?? [];
    const isOnly = known.length <= PAGE_ROWS;
    setRows(mergeFirstPage(known, page.runs, page.next === undefined || isOnly));
    if (isOnly) {
      setNext(page.next);
      setSearchedTo(page.searchedTo);
    }
    setFresh(new Set());
  };

  const timer = useRef<number | undefined>(undefined);
  const refreshSoon = (): void => {
    timer.current ??= window.setTimeout(() => {
      timer.current = undefined;
      readFirst().catch(sayFailure);
    }, REFRESH_MS);
  };

  useEffect(() => {
    setRows(undefined);
    setChildren(new Map());
    return () => {
      window.clearTimeout(timer.current);
      timer.current = undefined;
    };
  }, [key]);

  useLive(
    {
      types: LIST_TYPES,
      read: readFirst,
      take: (items) => {
        const changed = applyEvents(shown.current ?? [], runEvents(items), filter);
        setRows(changed.rows);
        if (changed.begun.length === 0) {
          return;
        }
        if (isAtRest.current) {
          refreshSoon();
        } else {
          setFresh((old) => new Set([...old, ...changed.begun]));
        }
      },
    },
    [key],
  );

  const readNext = async (): Promise<void> => {
    if (next === undefined || isReading.current || (rows?.length ?? 0) >= MAX_ROWS) {
      return;
    }
    isReading.current = true;
    try {
      const page = await api.runs({ ...requestOf(filter, Date.now()), limit: PAGE_ROWS, before: next });
      setRows((old) => appendPage(old ?? [], page.runs));
      setNext(page.next);
      setSearchedTo(page.searchedTo);
    } catch (error) {
      sayFailure(error);
    } finally {
      isReading.current = false;
    }
  };

  const toggleChildren = async (id: RunId): Promise<void> => {
    const opened = new Map(children);
    if (!opened.delete(id)) {
      try {
        opened.set(id, (await api.runTree(id)).runs);
      } catch (error) {
        sayFailure(error);
      }
    }
    setChildren(opened);
  };

  useEffect(() => addKeys(Object.fromEntries(QUICK.map(({ key: pressed, status }) => [pressed, () => replaceQuery({ ...query, status })]))), [query]);

  const lines = (rows ?? []).flatMap((run): Line[] => [
    { run, depth: 0 },
    ...(children.get(run.runId) ?? []).map((child) => ({ run: child.run, depth: child.depth })),
  ]);
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return (
    <>
      <div class="head">
        <h1>{t("runs")}</h1>
        <Act scope="run" kind="danger" isOff={rows === undefined || rows.length === 0} onClick={() => setCancelling(true)}>
          {t("runs.cancel")}
        </Act>
      </div>
      <Filters query={query} />
      {fresh.size > 0 ? (
        <button type="button" class="fresh" onClick={() => void readFirst().catch(sayFailure)}>
          {t("runs.fresh", { n: fresh.size })}
        </button>
      ) : null}
      {rows === undefined ? (
        <Reading />
      ) : rows.length === 0 ? (
        <Empty title={isFiltered ? t("runs.empty.filter") : t("runs.empty")}>
          <p>{isFiltered ? <a href="#/runs">{t("runs.empty.all")}</a> : <a href="#/">{t("runs.empty.ask")}</a>}</p>
        </Empty>
      ) : (
        <Rows
          class="runs"
          label={t("runs")}
          rows={lines}
          columns={columns(toggleChildren, children)}
          keyOf={({ run }) => run.runId}
          onEnd={() => (searchedTo === undefined ? void readNext() : undefined)}
          onRest={(rest) => {
            isAtRest.current = rest;
            if (rest && fresh.size > 0) {
              refreshSoon();
            }
          }}
        />
      )}
      <p class="muted" role="status">
        {rows === undefined ? null : t("runs.count", { n: rows.length })}{" "}
        {searchedTo === undefined ? null : (
          <>
            {t("runs.searched", { at: formatTime(searchedTo) })}{" "}
            <button type="button" onClick={() => void readNext()}>
              {t("runs.goOn")}
            </button>
          </>
        )}
        {(rows?.length ?? 0) >= MAX_ROWS ? t("runs.tooMany", { n: MAX_ROWS }) : null}
      </p>
      {isCancelling ? <CancelAll filter={requestOf(filter, now.value)} onClose={() => setCancelling(false)} /> : null}
    </>
  );
}

function columns(onToggle: (id: RunId) => Promise<void>, opened: ReadonlyMap<RunId, unknown>): Column<Line>[] {
  return [
    { name: "status", title: t("run.status"), view: ({ run }) => <Badge status={run.status} isHung={run.hung} /> },
    {
      name: "agent",
      title: t("run.agent"),
      view: ({ run, depth }) => (
        <span class={`depth-${Math.min(depth, 4)}`}>
          <a href={formatPlace(["runs", run.runId])} data-entry="" class="row-link">
            <Name text={run.name} fallback={run.agent.nodeId} />
          </a>
          {(run.children ?? 0) > 0 && depth === 0 ? (
            <button
              type="button"
              class="quiet small over"
              aria-expanded={opened.has(run.runId)}
              aria-label={t("runs.children", { n: run.children ?? 0 })}
              onClick={() => void onToggle(run.runId)}
            >
              {opened.has(run.runId) ? "▾" : "▸"} {formatCount(run.children ?? 0)}
            </button>
          ) : null}
        </span>
      ),
    },
    { name: "instance", title: "Node-RED", view: ({ run }) => <Name text={run.agent.instance} /> },
    { name: "start", title: t("run.start"), view: ({ run }) => <Age at={run.startedAt} /> },
    {
      name: "duration",
      title: t("run.duration"),
      isNumber: true,
      view: ({ run }) => (run.endedAt === undefined ? "" : formatDuration(run.endedAt - run.startedAt)),
    },
    { name: "iterations", title: t("run.iterations"), isNumber: true, view: ({ run }) => run.tally?.iterations ?? "" },
    {
      name: "tokens",
      title: t("run.tokens"),
      isNumber: true,
      view: ({ run }) => (run.tally === undefined ? "" : formatShort(run.tally.inputTokens + run.tally.outputTokens)),
    },
    { name: "cost", title: t("run.cost"), isNumber: true, view: ({ run }) => (run.tally?.cost === undefined ? "" : formatCost(run.tally.cost)) },
    { name: "code", title: t("run.code"), view: ({ run }) => (run.code === undefined ? "" : <code>{run.code}</code>) },
  ];
}

function Filters({ query }: { query: Readonly<Record<string, string>> }) {
  const set = (name: string, value: string): void => replaceQuery({ ...query, [name]: value });
  const [isOpen] = useState(window.innerWidth > NARROW_PX || Object.keys(query).some((name) => name !== "status"));
  const field = (name: string, label: string, isFirst = false) => (
    <label>
      {label}
      <input
        type="search"
        value={query[name] ?? ""}
        data-filter={isFirst ? "" : undefined}
        onChange={(event: Event) => set(name, (event.currentTarget as HTMLInputElement).value.trim())}
      />
    </label>
  );
  return (
    <form class="filters" role="search" aria-label={t("filter")} onSubmit={(event: Event) => event.preventDefault()}>
      <div class="chips" role="group" aria-label={t("run.status")}>
        {QUICK.map(({ key, name, status }) => (
          <button key={key} type="button" aria-pressed={(query["status"] ?? "") === status} title={key} onClick={() => set("status", status)}>
            {tOf("filter", name)}
          </button>
        ))}
      </div>
      <details class="more-filters" open={isOpen}>
        <summary>{t("filter.more")}</summary>
        <div class="filters">
          <label>
            {t("run.status")}
            <select value={query["status"] ?? ""} onChange={(event: Event) => set("status", (event.currentTarget as HTMLSelectElement).value)}>
              <option value="">{t("filter.all")}</option>
              <option value={OPEN_STATUSES.join(",")}>{t("filter.open")}</option>
              {STATUSES.map((name) => (
                <option key={name} value={name}>
                  {tOf("status", name)}
                </option>
              ))}
            </select>
          </label>
          <label>
            {t("filter.period")}
            <select value={query["period"] ?? ""} onChange={(event: Event) => set("period", (event.currentTarget as HTMLSelectElement).value)}>
              <option value="">{t("filter.always")}</option>
              {Object.keys(PERIODS).map((name) => (
                <option key={name} value={name}>
                  {tOf("period", name)}
                </option>
              ))}
            </select>
          </label>
          {field("prefix", t("filter.prefix"), true)}
          {field("agent", t("filter.agent"))}
          {field("instance", "Node-RED")}
          {field("code", t("run.code"))}
          <label class="tick">
            <input
              type="checkbox"
              checked={query["roots"] === "true"}
              onChange={(event: Event) => set("roots", (event.currentTarget as HTMLInputElement).checked ? "true" : "")}
            />
            {t("filter.roots")}
          </label>
        </div>
      </details>
    </form>
  );
}

/** Cancels all runs of the filter that have not ended, after the user has seen how many they are. */
function CancelAll({ filter, onClose }: { filter: ReturnType<typeof requestOf>; onClose: () => void }) {
  const [ids, setIds] = useState<readonly RunId[] | undefined>();
  const [done, setDone] = useState<number | undefined>();
  const status = OPEN_STATUSES.filter((name) => filter.status?.includes(name) ?? true);
  useEffect(() => {
    const collect = async (): Promise<void> => {
      const found: RunId[] = [];
      let before: RunId | undefined;
      do {
        const page = status.length === 0 ? { runs: [] } : await api.runs({ ...filter, status, limit: 200, before });
        found.push(...page.runs.map(({ runId }) => runId));
        before = "next" in page ? page.next : undefined;
      } while (before !== undefined && found.length < MAX_CANCELLED);
      setIds(found.slice(0, MAX_CANCELLED));
    };
    collect().catch((error: unknown) => {
      sayFailure(error);
      onClose();
    });
  }, []);
  const cancel = async (): Promise<void> => {
    const left = [...(ids ?? [])];
    let failed = 0;
    setDone(0);
    const work = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) {
        await api.cancel(id).catch(() => (failed += 1));
        setDone((old) => (old ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: CANCELS_AT_ONCE }, work));
    say(t("runs.cancelled", { n: (ids?.length ?? 0) - failed, failed }));
    waitingCount.value = undefined;
    onClose();
  };
  return (
    <Dialog title={t("runs.cancel")} onClose={onClose}>
      {ids === undefined ? (
        <Reading />
      ) : (
        <>
          <p>{t("runs.cancel.ask", { n: ids.length })}</p>
          {done === undefined ? null : <progress max={ids.length} value={done} aria-label={t("runs.cancel")} />}
          <div class="buttons">
            <button type="button" onClick={onClose}>
              {t("no")}
            </button>
            <Act scope="run" kind="danger" isOff={ids.length === 0} isBusy={done !== undefined} onClick={() => void cancel()}>
              {t("runs.cancel.yes", { n: ids.length })}
            </Act>
          </div>
        </>
      )}
    </Dialog>
  );
}

export const page: Page = { feature: "runs", route: "runs", title: "runs", view: Runs };
