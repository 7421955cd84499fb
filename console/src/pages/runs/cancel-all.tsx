// The dialog that cancels the runs of a filter.

import { useEffect, useState } from "preact/hooks";
import type { RunId } from "@redflow/bindings";
import { api, say, sayFailure } from "../../app.js";
import { Act, Dialog, Reading } from "../../parts/controls.js";
import { formatCount, t } from "../../words.js";
import { OPEN_STATUSES, type requestOf } from "./list.js";

/** The most runs that one click cancels. */
export const MAX_CANCELLED = 1_000;
/** The cancellations that are sent at the same time. */
const CANCELS_AT_ONCE = 4;

/** Cancels all runs of the filter that have not ended, after the user has seen how many they are. Closing the dialog stops it. */
export function CancelAll({ filter, onClose }: { filter: ReturnType<typeof requestOf>; onClose: () => void }) {
  const [ids, setIds] = useState<readonly RunId[] | undefined>();
  const [hasMore, setMore] = useState(false);
  const [done, setDone] = useState<number | undefined>();
  const [{ signal, abort }] = useState(() => {
    const stop = new AbortController();
    return { signal: stop.signal, abort: () => stop.abort(new Error("The dialog is closed.")) };
  });
  const status = OPEN_STATUSES.filter((name) => filter.status?.includes(name) ?? true);
  useEffect(() => {
    const collect = async (): Promise<void> => {
      const found: RunId[] = [];
      let before: RunId | undefined;
      do {
        const page = status.length === 0 ? { runs: [] } : await api.runs({ ...filter, status, limit: 200, before }, { signal });
        found.push(...page.runs.map(({ runId }) => runId));
        before = "next" in page ? page.next : undefined;
      } while (before !== undefined && found.length < MAX_CANCELLED);
      setMore(before !== undefined || found.length > MAX_CANCELLED);
      setIds(found.slice(0, MAX_CANCELLED));
    };
    collect().catch((error: unknown) => {
      if (!signal.aborted) {
        sayFailure(error);
        onClose();
      }
    });
    return abort;
  }, []);
  const cancel = async (all: readonly RunId[]): Promise<void> => {
    const left = [...all];
    let cancelled = 0;
    setDone(0);
    const work = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined && !signal.aborted; id = left.pop()) {
        await api.cancel(id).then(
          () => (cancelled += 1),
          () => undefined,
        );
        setDone((old) => (old ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: CANCELS_AT_ONCE }, work));
    say(t("runs.cancelled", { n: cancelled, failed: all.length - cancelled }));
    if (!signal.aborted) {
      onClose();
    }
  };
  const close = (): void => {
    abort();
    onClose();
  };
  return (
    <Dialog title={t("runs.cancel")} onClose={close}>
      {ids === undefined ? (
        <Reading />
      ) : (
        <>
          <p>{t("runs.cancel.ask", { n: hasMore ? `${formatCount(ids.length)}+` : ids.length })}</p>
          {hasMore ? <p>{t("runs.cancel.more", { n: ids.length })}</p> : null}
          {done === undefined ? null : <progress max={ids.length} value={done} aria-label={t("runs.cancel")} />}
          <div class="buttons">
            <button type="button" onClick={close}>
              {done === undefined ? t("no") : t("runs.cancel.stop")}
            </button>
            <Act scope="run" kind="danger" isOff={ids.length === 0} isBusy={done !== undefined} onClick={() => void cancel(ids)}>
              {t("runs.cancel.yes", { n: ids.length })}
            </Act>
          </div>
        </>
      )}
    </Dialog>
  );
}
