// The frame of every page: the menu, the banner of a sidecar that is offline, remarks, and the sign-in without a session.

import { useEffect, useRef, useState } from "preact/hooks";
import { isHelpOpen } from "./shortcuts.js";
import { isUpdated, live, now, readFailure, readSession, session, sessionError, shade, toasts, waiting } from "./app.js";
import type { Page } from "./page.js";
import { PAGES } from "./pages.js";
import { Dialog, Reading } from "./parts/controls.js";
import { Problem } from "./parts/problem.js";
import { Name, Words } from "./parts/text.js";
import { formatPlace, matchRoute, place } from "./router.js";
import { SignIn } from "./sign-in.js";
import { formatClock, formatCount, t, tOf } from "./words.js";

/** The page of a place among the pages that the session offers. */
export function findPage(pages: readonly Page[], features: readonly string[], path: readonly string[]) {
  for (const page of pages) {
    const params = features.includes(page.feature) ? matchRoute(page.route, path) : undefined;
    if (params !== undefined) {
      return { page, params };
    }
  }
  return undefined;
}

export function Shell() {
  if (session.value === null) {
    return <SignIn />;
  }
  if (session.value === undefined) {
    return (
      <main class="plain">{sessionError.value === undefined ? <Reading /> : <Problem error={sessionError.value} onRetry={() => void readSession()} />}</main>
    );
  }
  return <Frame features={session.value.features} name={session.value.name} version={session.value.version} />;
}

function Frame({ features, name, version }: { features: readonly string[]; name: string; version: string }) {
  const { path, query } = place.value;
  const found = findPage(PAGES, features, path);
  const [isMenuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const address = path.join("/");
  const title = found === undefined ? t("page.unknown") : t(found.page.title);
  useEffect(() => {
    document.title = `${title} · Redflow`;
  }, [title]);
  useEffect(() => {
    setMenuOpen(false);
    // A reader hears of the new page. The first one is announced by the browser.
    if (!isFirst.current) {
      main.current?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
    isFirst.current = false;
  }, [address]);
  const skip = (event: Event): void => {
    event.preventDefault();
    main.current?.focus();
  };
  useEffect(() => live.watch(), []);
  return (
    <div class={`frame${isMenuOpen ? " menu-open" : ""}`}>
      <header class="bar">
        <a class="skip" href={formatPlace(path, query)} onClick={skip}>
          {t("skip")}
        </a>
        <button type="button" class="menu-button" aria-expanded={isMenuOpen} aria-controls="menu" onClick={() => setMenuOpen(!isMenuOpen)}>
          {t("menu")}
        </button>
        <a class="brand" href="#/">
          Redflow
        </a>
        <span class="bar-end">
          <button type="button" class="quiet" aria-pressed={shade.value} onClick={() => (shade.value = !shade.value)}>
            {t("shade.toggle")}
          </button>
          <button type="button" class="quiet" aria-label={t("shortcut.title")} onClick={() => (isHelpOpen.value = true)}>
            ?
          </button>
        </span>
      </header>
      <nav id="menu" aria-label={t("menu")}>
        <ul>
          {PAGES.filter((page) => page.isHidden !== true && features.includes(page.feature)).map((page) => {
            const own = page.route.split("/")[0] ?? "";
            const isHere = own === (path[0] ?? "");
            return (
              <li key={page.feature}>
                <a href={own === "" ? "#/" : `#/${own}`} aria-current={isHere ? "page" : undefined} onClick={() => setMenuOpen(false)}>
                  {t(page.title)}
                  {page.feature === "inbox" ? <Waiting /> : null}
                </a>
              </li>
            );
          })}
        </ul>
        <p class="muted who">
          <Name text={name} />
          <br />
          Redflow {version}
        </p>
      </nav>
      <main ref={main} tabIndex={-1} aria-label={title}>
        <Offline />
        {isUpdated.value ? (
          <p class="offline" role="alert">
            {t("update")}
          </p>
        ) : null}
        <Problem error={readFailure.value} onRetry={() => live.retry()} />
        {found === undefined ? (
          <>
            <h1>{t("page.unknown")}</h1>
            <p>
              <a href="#/">{t("page.unknown.help")}</a>
            </p>
          </>
        ) : (
          <found.page.view key={address} params={found.params} query={query} />
        )}
      </main>
      <Toasts />
      {isHelpOpen.value ? <Help /> : null}
    </div>
  );
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text }) => (
        <p key={id} class="toast">
          <Words text={text} />
        </p>
      ))}
    </div>
  );
}

function Waiting() {
  const { count, hasMore } = waiting.value.value ?? { count: 0, hasMore: false };
  return count === 0 ? null : (
    <span class="count">
      {`${formatCount(count)}${hasMore ? "+" : ""}`}
      <span class="unseen"> {tOf("status", "waiting")}</span>
    </span>
  );
}

/** Says since when the sidecar is offline, and when it is tried again. */
function Offline() {
  const state = live.state.value;
  const [, setSecond] = useState(0);
  const isOffline = state.kind === "offline";
  useEffect(() => {
    if (!isOffline) {
      return undefined;
    }
    const timer = window.setInterval(() => setSecond((old) => old + 1), 1_000);
    return () => window.clearInterval(timer);
  }, [isOffline]);
  if (!isOffline) {
    return null;
  }
  const seconds = Math.max(0, Math.ceil((state.nextTryAt - Math.max(now.value, Date.now())) / 1_000));
  return (
    <div class="offline" role="alert">
      <p>
        <strong>{t("offline.since", { at: formatClock(state.since) })}</strong> <span aria-hidden="true">{t("offline.next", { n: seconds })}</span>{" "}
        {t("offline.old")}
      </p>
      <button type="button" onClick={() => live.retry()}>
        {t("offline.now")}
      </button>
    </div>
  );
}

const HELP = ["?", "/", "j", "k", "Enter", "Esc", "[", "]", "h", "g h", "g r", "g f", "g i", "g u", "g k", "g m"] as const;

function Help() {
  return (
    <Dialog title={t("shortcut.title")} onClose={() => (isHelpOpen.value = false)}>
      <dl class="shortcuts">
        {HELP.map((key) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{tOf("shortcut", key)}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">{t("shortcut.off")}</p>
    </Dialog>
  );
}
