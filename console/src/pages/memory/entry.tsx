// One entry of a long memory: its text, what is known about it, its former versions, and what a user can change.

import { signal } from "@preact/signals";
import { useId, useState } from "preact/hooks";
import { type Entry, type EntryKind, type EntrySource, type MemoryPut, RedflowError } from "@redflow/bindings";
import { api, sayFailure, shade } from "../../app.js";
import { Act, Age, Fact, Sheet } from "../../parts/controls.js";
import { Choice, Field, valueOf } from "../../parts/fields.js";
import { useLoad } from "../../parts/load.js";
import { Loaded, Problem } from "../../parts/problem.js";
import { Remove } from "../../parts/search.js";
import { Name, Quote, showName } from "../../parts/text.js";
import { formatPlace } from "../../router.js";
import { formatShare, formatTime, t, tOf } from "../../words.js";
import { tagsOf } from "../knowledge/add-files.js";

export const KINDS: readonly EntryKind[] = ["fact", "preference", "decision", "summary", "episode", "span", "chunk", "log"];
/** The most characters of an entry's text that the sidecar takes. */
const MAX_TEXT = 64 * 1024;

/** Changes when entries were changed here, so that they must be read again. */
export const changes = signal(0);

/** The state of an entry in a word and a colour. */
export function State({ entry: { state } }: { entry: Entry }) {
  const colour = state === "quarantined" ? "waiting" : state === "live" ? "completed" : state === "pinned" ? "running" : "";
  return <span class={`badge status-${colour}`}>{tOf("entry.state", state)}</span>;
}

/** Where an entry comes from. A conversation is a link to its run. */
function From({ source: { kind, ref } }: { source: EntrySource }) {
  return kind === "memory" && /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(ref) ? <a href={formatPlace(["runs", ref])}>{t("run")}</a> : <Name text={ref} />;
}

/** What is known about an entry. */
export function Facts({ entry }: { entry: Entry }) {
  const { kind, trust, user, session, tags, validFrom, validTo, createdAt, expiresAt, importance, source } = entry;
  const names: readonly (readonly [string, string | undefined])[] = [
    [t("entry.user"), user],
    [t("entry.session"), session],
    [t("kb.tags"), tags.join(", ")],
  ];
  return (
    <dl class="facts">
      <Fact name={t("run.status")}>
        <State entry={entry} />
      </Fact>
      <Fact name={t("entry.kind")}>{tOf("entry.kind", kind)}</Fact>
      <Fact name={t("entry.trust")}>{tOf("entry.trust", trust)}</Fact>
      {names.map(([name, value]) =>
        value ? (
          <Fact key={name} name={name}>
            <Name text={value} />
          </Fact>
        ) : null,
      )}
      <Fact name={t("entry.since")}>{formatTime(validFrom)}</Fact>
      {validTo === undefined ? null : <Fact name={t("entry.until")}>{formatTime(validTo)}</Fact>}
      <Fact name={t("kb.added")}>
        <Age at={createdAt} />
      </Fact>
      {expiresAt === undefined ? null : <Fact name={t("entry.expires")}>{formatTime(expiresAt)}</Fact>}
      <Fact name={t("entry.importance")}>{formatShare(importance)}</Fact>
      {source === undefined ? null : (
        <Fact name={t("tool.origin")}>
          <From source={source} />
        </Fact>
      )}
    </dl>
  );
}

interface ChosenProps {
  memory: string;
  /** The key of the entry. */
  chosen: string;
  /** The address of another entry. */
  hrefOf: (key: string) => string;
  onClose: () => void;
}

/** The chosen entry, beside the list. */
export function Chosen({ memory, chosen, hrefOf, onClose }: ChosenProps) {
  const [isEdited, setEdited] = useState(false);
  const load = useLoad((stop) => api.memoryEntry(memory, chosen, { signal: stop }), [memory, chosen, changes.value]);
  const put = async (change: MemoryPut, version: number): Promise<void> => {
    await api.putMemoryEntry(memory, chosen, change, { version });
    changes.value += 1;
  };
  const remove = async (isHere: () => boolean): Promise<void> => {
    await api.removeMemoryEntry(memory, chosen);
    if (isHere()) {
      onClose();
    }
    changes.value += 1;
  };
  return (
    <Sheet label={showName(chosen)} onClose={onClose}>
      <h2>
        <Name text={chosen} />
      </h2>
      <Loaded load={load}>
        {({ entry, history }) => {
          const { state, text, version, supersedes } = entry;
          return (
            <>
              <Quote text={text} label={t("entry.version", { n: version })} />
              <Facts entry={entry} />
              {supersedes === undefined ? null : (
                <p>
                  {t("entry.supersedes")}{" "}
                  <a href={hrefOf(supersedes)}>
                    <Name text={supersedes} />
                  </a>
                </p>
              )}
              <div class="buttons">
                <Act scope="deploy" isOff={isEdited} onClick={() => setEdited(true)}>
                  {t("entry.edit")}
                </Act>
                {state === "live" || state === "pinned" ? (
                  <Act scope="deploy" onClick={() => void put({ text, state: state === "live" ? "pinned" : "live" }, version).catch(sayFailure)}>
                    {state === "live" ? t("entry.pin") : t("entry.unpin")}
                  </Act>
                ) : null}
                <Remove title={t("entry.remove")} act={remove}>
                  {t("entry.remove.ask")}
                </Remove>
              </div>
              {isEdited ? <Edit {...{ memory, entry, put }} onClose={() => setEdited(false)} /> : null}
              {history.length === 0 ? null : <h3>{t("entry.history")}</h3>}
              {history.map((former) => (
                <details key={former.version}>
                  <summary>
                    {t("entry.version", { n: former.version })}, <Age at={former.createdAt} />
                  </summary>
                  <Quote text={former.text} label={t("entry.version", { n: former.version })} />
                  <Facts entry={former} />
                </details>
              ))}
            </>
          );
        }}
      </Loaded>
    </Sheet>
  );
}

interface EditProps {
  memory: string;
  /** The entry as it was when the form was opened, or as it is now. */
  entry: Entry;
  put: (change: MemoryPut, version: number) => Promise<void>;
  onClose: () => void;
}

/** The form that changes an entry. It replaces only the version that the user has seen. */
function Edit({ memory, entry, put, onClose }: EditProps) {
  const id = useId();
  const [text, setText] = useState(entry.text);
  const [kind, setKind] = useState(entry.kind);
  const [tags, setTags] = useState(entry.tags.join(", "));
  const [seen, setSeen] = useState(entry.version);
  const [newer, setNewer] = useState<Entry | undefined>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const save = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await put({ text, kind, tags: tagsOf(tags) }, seen);
      onClose();
    } catch (failure) {
      setError(failure);
      if (failure instanceof RedflowError && failure.code === "MEMORY_CONFLICT") {
        // What was typed stays. The user sees the newer version before it is replaced.
        try {
          const { entry: read } = await api.memoryEntry(memory, entry.key);
          setNewer(read);
          setSeen(read.version);
          changes.value += 1;
        } catch (gone) {
          setError(gone);
        }
      }
    }
    setBusy(false);
  };
  if (shade.value) {
    return <p class="muted">{t("shade.hidden")}</p>;
  }
  return (
    <form
      class="ask"
      aria-label={t("entry.edit")}
      onSubmit={(event: Event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Problem error={error} />
      {newer === undefined ? null : (
        <>
          <p>{t("entry.conflict")}</p>
          <Quote text={newer.text} label={t("entry.version", { n: newer.version })} />
        </>
      )}
      <label for={id}>{t("entry.text")}</label>
      <textarea id={id} rows={5} dir="auto" required maxLength={MAX_TEXT} value={text} onInput={(event: Event) => setText(valueOf(event))} />
      <Choice label={t("entry.kind")} value={kind} options={KINDS.map((name) => [name, tOf("entry.kind", name)])} onChoose={setKind} />
      <Field label={t("kb.add.tags")} dir="auto" value={tags} onText={setTags} />
      <div class="buttons">
        <Act scope="deploy" kind="primary" type="submit" isBusy={isBusy} isOff={text.trim() === ""}>
          {t("entry.save")}
        </Act>
        <button type="button" onClick={onClose}>
          {t("close")}
        </button>
      </div>
    </form>
  );
}

/** The beginning of an entry's text, as a link to it. The shade hides it: its key is there then. */
export function Beginning({ entry: { key, text }, href }: { entry: Entry; href: string }) {
  return (
    <a href={href} data-entry="">
      <Name text={shade.value ? key : text} fallback={key} />
    </a>
  );
}
