// What all pages share: the sidecar, the session, the live connection and what the user has chosen.

import { effect, signal } from "@preact/signals";
import { RedflowClient, RedflowError } from "@redflow/bindings";
import type { Scope, Session } from "@redflow/bindings";
import { LIST_TYPES, Live } from "./live.js";
import { WaitingCount } from "./waiting.js";
import { LANGUAGES, chooseLanguage, setLanguage, t } from "./words.js";
import type { Language } from "./words.js";

export type Theme = "auto" | "light" | "dark";
export const THEMES: readonly Theme[] = ["auto", "light", "dark"];

/** How often ages are drawn again. Nothing is requested for that. */
const TICK_MS = 10_000;
/** How long a toast stays. */
const TOAST_MS = 8_000;
/** The most toasts at once. */
const MAX_TOASTS = 4;

/** Who is signed in. Undefined before that is known; null if no user is. */
export const session = signal<Session | null | undefined>(undefined);
const endSession = (): void => {
  session.value = null;
};

/** The sidecar that serves this page. The page's cookie authenticates; the address is relative, so any path before it works. */
export const api = new RedflowClient({
  url: ".",
  fetch: async (address, init) => {
    const response = await globalThis.fetch(address, init);
    if (response.status === 401) {
      endSession();
    }
    return response;
  },
});

/** Why the session cannot be read. */
export const sessionError = signal<unknown>(undefined);
/** The current time, for ages. */
export const now = signal(Date.now());
/** Whether all words of people and models are hidden, for shared screens. */
export const shade = signal(readChoice("shade") === "on");
export const theme = signal<Theme>(THEMES.find((name) => name === readChoice("theme")) ?? "auto");
/** Whether single letters are keyboard shortcuts of the console. */
export const letters = signal(readChoice("letters") !== "off");
/** Why the current page could not be read; undefined if it could. */
export const readFailure = signal<unknown>(undefined);
/** The runs that wait for a person. */
export const waiting = new WaitingCount((limit, stop) => api.runs({ status: "waiting", limit }, { signal: stop }));
/** Whether the sidecar is another version than the one that this page came from. */
export const isUpdated = signal(false);
let loadedVersion: string | undefined;

export interface Toast {
  id: number;
  text: string;
}
export const toasts = signal<readonly Toast[]>([]);

export const live = new Live({
  events: (options) => api.events(options),
  now: () => Date.now(),
  setTimeout: (call, ms) => window.setTimeout(call, ms),
  clearTimeout: (timer) => window.clearTimeout(timer),
  allTypes: LIST_TYPES,
  onItems: (items) => waiting.take(items),
  onOpen: (version) => {
    loadedVersion ??= version;
    isUpdated.value = version !== loadedVersion;
    void readSession();
    if (session.value?.features.includes("inbox") === true) {
      void waiting.read();
    }
  },
  onSignedOut: endSession,
  onFailure: (error) => {
    readFailure.value = error;
  },
});

/** Whether the session includes a scope. */
export function allows(scope: Scope): boolean {
  return session.value?.scopes.includes(scope) === true;
}

/** Whether the sidecar does not answer, so that nothing can be done. */
export function isOffline(): boolean {
  return live.state.value.kind === "offline";
}

/** Shows a text for a while. */
export function say(text: string): void {
  const id = (toasts.value.at(-1)?.id ?? 0) + 1;
  toasts.value = [...toasts.value, { id, text }].slice(-MAX_TOASTS);
  window.setTimeout(() => {
    toasts.value = toasts.value.filter((toast) => toast.id !== id);
  }, TOAST_MS);
}

/** Shows a failure of an action for a while. An ended session shows the sign-in instead. */
export function sayFailure(error: unknown): void {
  if (error instanceof RedflowError && error.code === "UNAUTHORIZED") {
    return;
  }
  say(error instanceof RedflowError ? `${error.code}: ${error.message}` : String(error));
}

/** Reads the session. */
export async function readSession(): Promise<void> {
  try {
    const read = await api.session();
    if (JSON.stringify(read) !== JSON.stringify(session.value)) {
      session.value = read;
    }
    sessionError.value = undefined;
  } catch (error) {
    sessionError.value = session.value === null ? undefined : error;
  }
}

/** Copies a text and says so. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(t("copy.done"));
  } catch {
    say(t("copy.failed"));
  }
}

/** Changes the language, and keeps the choice. */
export async function changeLanguage(wanted: Language): Promise<void> {
  try {
    await setLanguage(wanted, readFileBeside);
    keepChoice("language", wanted);
  } catch (error) {
    sayFailure(error);
  }
}

/** Reads a file that lies beside the script. */
async function readFileBeside(name: string): Promise<unknown> {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) {
    throw new RedflowError({ code: "NOT_FOUND", message: t("update") });
  }
  return response.json();
}

/** Starts what runs as long as the page is open. */
export async function startApp(): Promise<void> {
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
    keepChoice("theme", theme.value);
  });
  effect(() => keepChoice("shade", shade.value ? "on" : "off"));
  effect(() => keepChoice("letters", letters.value ? "on" : "off"));
  window.setInterval(() => {
    now.value = Date.now();
  }, TICK_MS);
  document.addEventListener("visibilitychange", () => live.setHidden(document.hidden));
  const wanted = chooseLanguage(readChoice("language"), navigator.languages);
  if (wanted !== "en" && LANGUAGES.includes(wanted)) {
    await setLanguage(wanted, readFileBeside).catch(() => undefined);
  }
  await readSession();
}

/** A choice of this browser. Browsers may forbid storage. */
function readChoice(name: string): string | null {
  try {
    return localStorage.getItem(`redflow.${name}`);
  } catch {
    return null;
  }
}

function keepChoice(name: string, value: string): void {
  try {
    localStorage.setItem(`redflow.${name}`, value);
  } catch {
    // It lasts until the page is closed.
  }
}
