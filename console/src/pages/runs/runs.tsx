// The runs: filtered by the address, live, newest first.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RunId, RunSummary } from "@redflow/bindings";
import { api, now } from "../../app.js";
import { addShortcuts } from "../../shortcuts.js";
import { LIST_TYPES } from "../../live.js";
import type { Page, PageProps } from "../../page.js";
import { Act, Age, Badge, Empty, Reading } from "../../parts/controls.js";
import { Choice, Field, type Option, Tick } from "../../parts/fields.js";
import { useLive } from "../../parts/load.js";
import { Rows } from "../../parts/rows.js";
import type { Column } from "../../parts/rows.js";
import { Name } from "../../parts/text.js";
import { formatPlace, replaceQuery } from "../../router.js";
import { formatCount, formatDuration, formatKnownCost, formatShort, formatTime, t, tOf } from "../../words.js";
import { CancelAll } from "./cancel-all.js";
import { MAX_ROWS, OPEN_STATUSES, PERIODS, STATUSES, appendPage, applyEvents, applyToChildren, filterOf, keyOfLine, linesOf, requestOf, runEvents } from "./list.js";
import type { Line, Opened } from "./list.js";

/** The child runs of one request. */
const CHILD_ROWS = 50;
/** The rows of one request. */
const PAGE_ROWS = 100;
/** The least time between two reads of the first page while runs begin. */
const REFRESH_MS = 1_000;
/** The most new runs that are counted while the reader is not at the top. */
const MAX_FRESH = 200;

/** On narrower pages the fields of the filter are folded at first. */
const NARROW_PX = 800;

/** The filters of one key: the key, the word and the statuses. */
const QUICK: readonly { key: string; name: string; status: string }[] = [
  { key: "1", name: "all", status: "" },
  { key: "2", name: "open", status: OPEN_STATUSES.join(",") },
  { key: "3", name: "waiting", status: "waiting" },
  { key: "4", name: "failed", status: "failed" },
];

/** The rows that were read, and how to get more. */
interface List {
  rows: readonly RunSummary[];
  next: RunId | undefined;
  searchedTo: number | undefined;
}

function Runs({ query }: PageProps) {
  const filter = filterOf(query);
  const key = JSON.stringify(filter);
  const [list, setList] = useState<List | undefined>();
  const [fresh, setFresh] = useState(0);
  const [opened, setOpened] = useState<ReadonlyMap<RunId, Opened>>(new Map());
  const [isCancelling, setCancelling] = useState(false);
  const [isAtRest, setAtRest] = useState(true);
  const [turn, setTurn] = useState(0);
  const atRest = useRef(true);
  /** Whether rows may have come or gone since the list was read at rest. */
  const isDue = useRef(false);
  const latest = useRef(list);
  const show = (changed: List | undefined): void => {
    latest.current = changed;
    setList(changed);
  };

  useEffect(() => {
    show(undefined);
    setOpened(new Map());
    setFresh(0);
  }, [key]);

  const { refresh, load } = useLive(
    {
      types: LIST_TYPES,
      read: async (signal, hasMissed) => {
        const known = latest.current?.rows ?? [];
        const request = requestOf(filter, Date.now());
        if (hasMissed || atRest.current || known.length === 0) {
          // The reader is at the top. Older rows are read again when they come into sight.
          const page = await api.runs({ ...request, limit: PAGE_ROWS }, { signal });
          show({ rows: page.runs, next: page.next, searchedTo: page.searchedTo });
          setOpened((old) => (hasMissed ? new Map() : old));
          setFresh(0);
          isDue.current = false;
        } else {
          const ids = new Set(known.map(({ runId }) => runId));
          const page = await api.runs({ ...request, limit: MAX_FRESH }, { signal });
          // Rows below the last one that is known are older, not new.
          const end = page.runs.findLastIndex(({ runId }) => ids.has(runId));
          setFresh(page.runs.slice(0, end < 0 ? undefined : end).filter(({ runId }) => !ids.has(runId)).length);
        }
      },
      take: (items) => {
        const events = runEvents(items);
        const { current } = latest;
        if (current === undefined) {
          return;
        }
        const { rows, isOutdated } = applyEvents(current.rows, events, requestOf(filter, Date.now()));
        show({ ...current, rows });
        setOpened((old) => (old.size === 0 ? old : new Map([...old].map(([id, one]) => [id, { ...one, runs: applyToChildren(one.runs, events) }]))));
        if (isOutdated) {
          isDue.current = true;
          refresh(REFRESH_MS);
        }
      },
    },
    [key],
  );

  const readNext = (): Promise<void> =>
    load(async (signal) => {
      const { current } = latest;
      if (current?.next === undefined || current.rows.length >= MAX_ROWS) {
        return;
      }
      const { runs, next, searchedTo } = await api.runs({ ...requestOf(filter, Date.now()), limit: PAGE_ROWS, before: current.next }, { signal });
      show({ rows: appendPage(current.rows, runs), next, searchedTo });
    });

  const readChildren = (id: RunId, after?: RunId): Promise<void> =>
    load(async (signal) => {
      const { runs, next } = await api.runTree(id, { after, limit: CHILD_ROWS }, { signal });
      setOpened((old) => new Map(old).set(id, { runs: [...(after === undefined ? [] : (old.get(id)?.runs ?? [])), ...runs], next }));
    });
  const toggleChildren = (id: RunId): void => {
    if (opened.has(id)) {
      setOpened((old) => new Map([...old].filter(([other]) => other !== id)));
    } else {
      void readChildren(id);
    }
  };

  /** Rows come by themselves only while the reader is at the top and points at none. */
  const rest = (isResting: boolean): void => {
    atRest.current = isResting;
    setAtRest(isResting);
    if (isResting && isDue.current) {
      isDue.current = false;
      refresh();
    }
  };

  useLayoutEffect(() => addShortcuts(Object.fromEntries(QUICK.map(({ key: pressed, status }) => [pressed, () => replaceQuery({ ...query, status })]))), [query]);

  const { rows, searchedTo } = list ?? {};
  const lines = linesOf(rows ?? [], opened);
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
      {fresh > 0 && !isAtRest ? (
        <button
          type="button"
          class="fresh"
          onClick={() => {
            setTurn((old) => old + 1);
            rest(true);
          }}
        >
          {t("runs.fresh", { n: fresh < MAX_FRESH ? fresh : `${MAX_FRESH}+` })}
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
          columns={columns({ opened, onToggle: toggleChildren, onMore: readChildren })}
          keyOf={keyOfLine}
          turn={turn}
          onEnd={() => (searchedTo === undefined ? void readNext() : undefined)}
          onRest={rest}
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

interface ColumnOptions {
  opened: ReadonlyMap<RunId, Opened>;
  onToggle: (id: RunId) => void;
  /** Reads the descendants of a run after one of them. */
  onMore: (id: RunId, after: RunId) => Promise<void>;
}

function columns({ opened, onToggle, onMore }: ColumnOptions): Column<Line>[] {
  const ofRun = (view: (run: RunSummary) => ComponentChildren) => (line: Line) => ("run" in line ? view(line.run) : "");
  return [
    { name: "status", title: t("run.status"), view: ofRun((run) => <Badge status={run.status} isHung={run.hung} />) },
    {
      name: "agent",
      title: t("run.agent"),
      view: (line) =>
        "run" in line ? (
          <AgentCell {...line} isOpen={opened.has(line.run.runId)} onToggle={onToggle} />
        ) : (
          <button type="button" class="quiet small over" data-entry="" onClick={() => void onMore(line.moreOf, line.next)}>
            {t("runs.children.more")}
          </button>
        ),
    },
    { name: "instance", title: "Node-RED", view: ofRun((run) => <Name text={run.agent.instance} />) },
    { name: "start", title: t("run.start"), view: ofRun((run) => <Age at={run.startedAt} />) },
    {
      name: "duration",
      title: t("run.duration"),
      isNumber: true,
      view: ofRun((run) => (run.endedAt === undefined ? "" : formatDuration(run.endedAt - run.startedAt))),
    },
    { name: "iterations", title: t("run.iterations"), isNumber: true, view: ofRun((run) => run.tally?.iterations ?? "") },
    {
      name: "tokens",
      title: t("run.tokens"),
      isNumber: true,
      view: ofRun((run) => (run.tally === undefined ? "" : formatShort(run.tally.inputTokens + run.tally.outputTokens))),
    },
    { name: "cost", title: t("run.cost"), isNumber: true, view: ofRun((run) => (run.tally === undefined ? "" : (formatKnownCost(run.tally) ?? ""))) },
    { name: "code", title: t("run.code"), view: ofRun((run) => (run.code === undefined ? "" : <code>{run.code}</code>)) },
  ];
}

interface AgentCellProps {
  run: RunSummary;
  depth: number;
  isOpen: boolean;
  onToggle: (id: RunId) => void;
}

/** The agent of a run, and the number of runs that it has started. */
function AgentCell({ run, depth, isOpen, onToggle }: AgentCellProps) {
  const { runId, name, agent, children = 0 } = run;
  return (
    <span class={`depth-${Math.min(depth, 4)}`}>
      <a href={formatPlace(["runs", runId])} data-entry="" class="row-link">
        <Name text={name} fallback={agent.nodeId} />
      </a>
      {children > 0 && depth === 0 ? (
        <button type="button" class="quiet small over" aria-expanded={isOpen} aria-label={t("runs.children", { n: children })} onClick={() => onToggle(runId)}>
          {isOpen ? "▾" : "▸"} {formatCount(children)}
        </button>
      ) : null}
    </span>
  );
}

function Filters({ query }: { query: Readonly<Record<string, string>> }) {
  const set = (name: string, value: string): void => replaceQuery({ ...query, [name]: value });
  const [isOpen] = useState(window.innerWidth > NARROW_PX || Object.keys(query).some((name) => name !== "status"));
  const field = (name: string, label: string, isFirst = false) => (
    <Field label={label} type="search" value={query[name] ?? ""} data-filter={isFirst ? "" : undefined} onDone={(text) => set(name, text)} />
  );
  const choice = (name: string, label: string, options: readonly Option[]) => (
    <Choice label={label} value={query[name] ?? ""} options={options} onChoose={(value) => set(name, value)} />
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
          {choice("status", t("run.status"), [["", t("filter.all")], [OPEN_STATUSES.join(","), t("filter.open")], ...STATUSES.map((name): Option => [name, tOf("status", name)])])}
          {choice("period", t("filter.period"), [["", t("filter.always")], ...Object.keys(PERIODS).map((name): Option => [name, tOf("period", name)])])}
          {field("prefix", t("filter.prefix"), true)}
          {field("agent", t("filter.agent"))}
          {field("instance", "Node-RED")}
          {field("code", t("run.code"))}
          <Tick label={t("filter.roots")} isOn={query["roots"] === "true"} onTick={(isOn) => set("roots", isOn ? "true" : "")} />
        </div>
      </details>
    </form>
  );
}

export const page: Page = { feature: "runs", route: "runs", title: "runs", view: Runs };
