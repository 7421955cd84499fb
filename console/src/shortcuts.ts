// The keyboard shortcuts of the console. Single letters can be switched off, because speech input and some readers type them.

import { signal } from "@preact/signals";
import { letters, shade } from "./app.js";
import { go } from "./router.js";

/** Whether the list of shortcuts is shown. */
export const isHelpOpen = signal(false);

/** Shortcuts of the current page, such as `[` and `]`. */
const pageShortcuts = new Map<string, () => void>();

/** The pages that a letter after `g` opens. */
const PLACES: Readonly<Record<string, string>> = { h: "", r: "runs", f: "flow", i: "inbox", u: "usage", k: "knowledge", m: "memory" };

/** How long `g` waits for the second letter. */
const SECOND_MS = 1_500;
let firstAt = Number.NEGATIVE_INFINITY;

/** Adds shortcuts of a page. Returns how to remove them. */
export function addShortcuts(shortcuts: Readonly<Record<string, () => void>>): () => void {
  for (const [key, act] of Object.entries(shortcuts)) {
    pageShortcuts.set(key, act);
  }
  return () => {
    for (const key of Object.keys(shortcuts)) {
      pageShortcuts.delete(key);
    }
  };
}

export function startShortcuts(document: Document): void {
  document.addEventListener("keydown", (event) => {
    if (pressKey(event, document)) {
      event.preventDefault();
    }
  });
}

/** Does what a key means. False if it means nothing here. */
export function pressKey(event: KeyboardEvent, document: Document): boolean {
  const target = event.target as HTMLElement | null;
  const isWithin = (selector: string): boolean => (target?.closest?.(selector) ?? null) !== null;
  const isTyping = isWithin("input:not([type=checkbox], [type=radio], [type=file]), textarea, select, [contenteditable]");
  const isInDialog = document.querySelector("dialog[open]") !== null;
  if (event.key === "Escape" && !isInDialog) {
    return isTyping ? leaveField(target) : closeSheet(document);
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping || isInDialog || !letters.value) {
    return false;
  }
  if (event.timeStamp - firstAt < SECOND_MS) {
    firstAt = Number.NEGATIVE_INFINITY;
    const path = PLACES[event.key];
    if (path !== undefined) {
      go(path === "" ? [] : [path]);
      return true;
    }
  }
  switch (event.key) {
    case "g":
      firstAt = event.timeStamp;
      return true;
    case "?":
      isHelpOpen.value = true;
      return true;
    case "h":
      shade.value = !shade.value;
      return true;
    case "/": {
      const field = document.querySelector<HTMLElement>("[data-filter]");
      field?.closest("details")?.setAttribute("open", "");
      field?.focus();
      return field !== null;
    }
    case "j":
      return moveFocus(document, 1);
    case "k":
      return moveFocus(document, -1);
    default: {
      const act = pageShortcuts.get(event.key);
      act?.();
      return act !== undefined;
    }
  }
}

/** Moves the focus from a field to what contains it. */
function leaveField(field: HTMLElement | null): boolean {
  field?.blur();
  field?.closest<HTMLElement>("[tabindex='-1']")?.focus({ preventScroll: true });
  return true;
}

/** Closes what is shown beside a list, or above it. */
function closeSheet(document: Document): boolean {
  const button = [...document.querySelectorAll<HTMLElement>(".sheet-close")].find((one) => one.getClientRects().length > 0);
  button?.click();
  return button !== undefined;
}

/** Moves the focus to the next or the previous entry of the list on the page. */
function moveFocus(document: Document, step: 1 | -1): boolean {
  const entries = [...document.querySelectorAll<HTMLElement>("main [data-entry]")];
  const index = entries.findIndex((entry) => entry === document.activeElement);
  const next = entries[index < 0 ? 0 : index + step];
  next?.focus();
  return entries.length > 0;
}
