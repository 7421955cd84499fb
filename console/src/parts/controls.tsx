// Small controls that pages share.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RunStatus, Scope } from "@redflow/bindings";
import { allows, copy, isOffline, now, sayFailure } from "../app.js";
import { formatAge, formatTime, t, tOf } from "../words.js";

interface ActProps {
  /** The scope that the action needs. */
  scope?: Scope;
  onClick?: () => void;
  kind?: "primary" | "danger" | "quiet";
  type?: "button" | "submit";
  isBusy?: boolean;
  isOff?: boolean;
  label?: string;
  children: ComponentChildren;
}

/** A button for an action. It is off while the sidecar is offline, and names the scope that the session lacks. While it is busy it
 * keeps the focus and does nothing. */
export function Act({ scope, onClick, kind, type = "button", isBusy, isOff, label, children }: ActProps) {
  const hint = useId();
  const isForbidden = scope !== undefined && !allows(scope);
  const reason = isForbidden ? t("act.scope", { scope }) : isOffline() ? t("act.offline") : undefined;
  return (
    <span class="act">
      <button
        type={type}
        class={kind}
        disabled={reason !== undefined || isOff === true}
        aria-disabled={isBusy === true ? "true" : undefined}
        aria-busy={isBusy === true}
        aria-label={label}
        aria-describedby={reason === undefined ? undefined : hint}
        title={reason}
        onClick={(event: Event) => {
          if (isBusy === true) {
            event.preventDefault();
          } else {
            onClick?.();
          }
        }}
      >
        {children}
      </button>
      {reason === undefined ? null : (
        <small id={hint} class={isForbidden ? "muted" : "unseen"}>
          {reason}
        </small>
      )}
    </span>
  );
}

export function CopyButton({ text, name }: { text: string; name: string }) {
  return (
    <button type="button" class="quiet small" aria-label={t("copy.of", { name })} onClick={() => void copy(text)}>
      {t("copy")}
    </button>
  );
}

/** The state of a run in a word and a colour. */
export function Badge({ status, isHung }: { status: RunStatus; isHung?: boolean | undefined }) {
  return <span class={`badge status-${isHung ? "failed" : status}`}>{isHung ? t("status.hung") : tOf("status", status)}</span>;
}

export function Age({ at }: { at: number }) {
  return (
    <time dateTime={isoTime(at)} title={formatTime(at)}>
      {formatAge(now.value - at)}
    </time>
  );
}

function isoTime(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** An empty view, with what to do next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

/** A wait that a reader hears of. */
export function Reading() {
  return (
    <p class="muted" role="status">
      {t("reading")}
    </p>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** A dialog of the browser, which keeps and returns the focus. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) {
        before.focus();
      }
    };
  }, []);
  return (
    <dialog
      ref={box}
      aria-labelledby={heading}
      onCancel={(event: Event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={heading}>{title}</h2>
        <button type="button" class="quiet" aria-label={t("close")} onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What the button that acts says. */
  yes: string;
  scope: Scope;
  /** What is done. A failure is shown for a while. `isHere` says whether the user is still on the page. */
  act: (isHere: () => boolean) => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}

/** Asks before something is done that cannot be undone. */
export function Confirm({ title, yes, scope, act, onClose, children }: ConfirmProps) {
  const [isBusy, setBusy] = useState(false);
  const confirm = async (): Promise<void> => {
    const from = window.location.hash;
    setBusy(true);
    await act(() => window.location.hash === from).catch(sayFailure);
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{children}</p>
      <div class="buttons">
        <button type="button" onClick={onClose}>
          {t("no")}
        </button>
        <Act scope={scope} kind="danger" isBusy={isBusy} onClick={() => void confirm()}>
          {yes}
        </Act>
      </div>
    </Dialog>
  );
}

interface TabsProps<Name extends string> {
  label: string;
  tabs: readonly { name: Name; title: string }[];
  chosen: Name;
  onChoose: (name: Name) => void;
  children: ComponentChildren;
}

/** Tabs with arrow keys. The children are the chosen panel. */
export function Tabs<Name extends string>({ label, tabs, chosen, onChoose, children }: TabsProps<Name>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) {
      return;
    }
    event.preventDefault();
    const index = tabs.findIndex(({ name }) => name === chosen);
    const next = tabs[(index + step + tabs.length) % tabs.length];
    if (next !== undefined) {
      onChoose(next.name);
      list.current?.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
    }
  };
  return (
    <div class="tabs">
      <div role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            role="tab"
            data-tab={name}
            id={`${id}-${name}`}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} tabIndex={0}>
        {children}
      </div>
    </div>
  );
}

interface SheetProps {
  label: string;
  /** Whether a narrow page shows it. A wide page always does. Without this, it appears when something is chosen and takes the
   * focus until it is closed. */
  isOpen?: boolean;
  onClose: () => void;
  children: ComponentChildren;
}

/** What is chosen, beside the list; on a narrow page a sheet above it. */
export function Sheet({ label, isOpen, onClose, children }: SheetProps) {
  const box = useRef<HTMLElement>(null);
  // An effect would be cleaned up too late: the focus would be elsewhere by then.
  useLayoutEffect(() => {
    const before = document.activeElement;
    if (isOpen !== undefined || !(before instanceof HTMLElement || before instanceof SVGElement) || before === document.body) {
      return undefined;
    }
    const sheet = box.current;
    sheet?.focus({ preventScroll: true });
    return () => {
      // The browser drops the focus of what is removed.
      if (document.activeElement === document.body || sheet?.contains(document.activeElement) === true) {
        before.focus();
      }
    };
  }, []);
  return (
    <aside class={`sheet${isOpen === false ? " closed" : ""}`} aria-label={label} ref={box} tabIndex={-1}>
      <button type="button" class="quiet sheet-close" aria-label={t("close")} onClick={onClose}>
        ×
      </button>
      {children}
    </aside>
  );
}

/** A name and its value. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
