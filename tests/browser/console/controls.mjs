// Tab reaches every control of every page, its focus can be seen, and it is large enough for a finger.

import assert from "node:assert/strict";

import { addManuals } from "./knowledge.mjs";
import { openPage } from "./page.mjs";

const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex='0'], [role=button], [role=tab], [role=link]";
/** More Tabs than any page of the tests needs. */
const MAX_TABS = 400;
const TABS_AT_ONCE = 10;

/** The pages, each with what must be there before the check. */
const pagesWith = (run, waiting) => [
  ["#/", "summary"],
  ["#/runs", "[data-entry]"],
  [`#/runs/${run}`, "[role=tree]"],
  [`#/runs/${run}?tab=result`, "[role=tabpanel] button"],
  [`#/runs/${run}?tab=journal`, "details"],
  [`#/runs/${run}?tab=plan`, "details"],
  [`#/runs/${waiting}`, "form.redflow-resolve"],
  ["#/inbox", "form.redflow-resolve"],
  ["#/flow?node=sums", "aside pre, aside details"],
  ["#/check?from=active", "[role=tab]"],
  ["#/usage", ".plot"],
  ["#/models", "article"],
  ["#/tools", "[data-entry]"],
  ["#/mcp", ".empty"],
  ["#/knowledge", "[data-entry]"],
  ["#/knowledge/manuals?document=pump.md", "aside article"],
  ["#/memory", ".empty"],
  ["#/settings", "table"],
  ["#/nowhere", "h1"],
];

/** Records each focused element, and whether its focus can be seen. Opens what is folded. */
function watchFocus() {
  document.querySelectorAll("main details").forEach((details) => (details.open = true));
  window.reached = new Set();
  window.unseen = [];
  const describe = (element) => element.outerHTML.slice(0, 160);
  const hasOutline = (element, pseudo) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(element, pseudo);
    return outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2;
  };
  const hasRing = (element) =>
    hasOutline(element) ||
    hasOutline(element, "::after") ||
    (element.closest("label") !== null && hasOutline(element.closest("label"))) ||
    (element instanceof SVGElement && Number.parseFloat(getComputedStyle(element.querySelector("rect") ?? element).strokeWidth) >= 4);
  /** Whether something else lies on the whole of it. */
  const isCovered = (element) => {
    const { left, right, top, bottom } = (element.closest("label") ?? element).getBoundingClientRect();
    const places = [0.5, 0.1, 0.9].flatMap((x) => [0.5, 0.1, 0.9].map((y) => [left + (right - left) * x, top + (bottom - top) * y]));
    return places.every(([x, y]) => {
      const found = document.elementFromPoint(x, y);
      return found === null || !((element.closest("label") ?? element).contains(found) || found.contains(element));
    });
  };
  window.watcher?.abort();
  window.watcher = new AbortController();
  document.addEventListener(
    "focusin",
    ({ target }) => {
      if (target.matches("main")) {
        return;
      }
      window.reached.add(target);
      if (!hasRing(target)) {
        window.unseen.push(`no ring: ${describe(target)}`);
      }
      // The browser scrolls it into view after this event.
      requestAnimationFrame(() => {
        if (document.activeElement === target && isCovered(target)) {
          window.unseen.push(`covered: ${describe(target)}`);
        }
      });
    },
    { signal: window.watcher.signal },
  );
}

/** The controls that can be seen and used, but were not reached. */
function missedControls(selector) {
  const isReachedRadio = (element) => [...window.reached].some((one) => one.type === "radio" && one.name === element.name && one.form === element.form);
  return [...document.querySelectorAll(selector)]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }) && !element.matches(":disabled, [role=tab][tabindex='-1']"))
    .filter((element) => !window.reached.has(element) && !(element.type === "radio" && isReachedRadio(element)))
    .map((element) => `not reached: ${element.outerHTML.slice(0, 160)}`);
}

async function tabThrough(page, key) {
  await page.evaluate(watchFocus);
  let count = -1;
  for (let tabs = 0; tabs < MAX_TABS; tabs += TABS_AT_ONCE) {
    for (let tab = 0; tab < TABS_AT_ONCE; tab += 1) {
      await page.keyboard.press(key);
    }
    const reached = await page.evaluate(() => window.reached.size);
    if (reached === count) {
      return [...(await page.evaluate(missedControls, CONTROLS)), ...(await page.evaluate(() => [...new Set(window.unseen)]))];
    }
    count = reached;
  }
  return [`Tab does not come back to where it began after ${MAX_TABS}`];
}

export async function everyControl(t, browser, console) {
  await addManuals(console);
  const run = await console.ask("sums", "To tab through");
  const waiting = await console.ask("letters", "To tab through");
  await console.untilStatus(waiting, "waiting");
  const { page, main, go, check } = await openPage(t, browser, console);
  const found = [];
  for (const [hash, selector] of pagesWith(run, waiting)) {
    await go(hash);
    await main.locator(selector).first().waitFor();
    await page.waitForTimeout(150);
    found.push(...(await tabThrough(page, "Tab")).map((line) => `${hash} ${line}`));
    found.push(...(await page.evaluate(smallControls, { selector: CONTROLS, isNarrow: false })).map((line) => `${hash} ${line}`));
    if (hash.endsWith("tab=journal")) {
      found.push(...(await tabThrough(page, "Shift+Tab")).map((line) => `${hash} backwards ${line}`));
    }
  }
  // The sign-in, in another browser.
  const context = await browser.newContext();
  t.after(() => context.close());
  const stranger = await context.newPage();
  await stranger.goto(console.url());
  await stranger.getByLabel("Token").fill("a token");
  found.push(...(await tabThrough(stranger, "Tab")), ...(await stranger.evaluate(smallControls, { selector: CONTROLS, isNarrow: false })));
  assert.deepEqual(found, []);
  check();
  await console.request("POST", `/api/runs/${waiting}/cancel`, {});
}

/** The controls that are smaller than a finger needs: 44 pixels for buttons and menus on a narrow page, else 24. */
function smallControls({ selector, isNarrow }) {
  document.querySelectorAll("main details").forEach((details) => (details.open = true));
  return [...document.querySelectorAll(selector)]
    .filter((element) => element.checkVisibility({ visibilityProperty: true }) && !(element instanceof SVGElement) && !element.matches("pre, [role=tabpanel], .skip"))
    .flatMap((element) => {
      const target = element.closest("label") ?? element;
      const { width, height } = target.getBoundingClientRect();
      // A link within a sentence is as high as its line.
      const isInline = element.matches("a") && getComputedStyle(element).display === "inline";
      const least = isNarrow && element.matches("button, .button, input, select, summary, nav a") ? 44 : 24;
      return !isInline && (height < least - 0.5 || width < Math.min(least, 24) - 0.5) ? [`${Math.round(width)} × ${Math.round(height)}: ${element.outerHTML.slice(0, 140)}`] : [];
    });
}

export async function narrowTargets(t, browser, console) {
  await addManuals(console);
  const run = await console.ask("sums", "To touch");
  const waiting = await console.ask("letters", "To touch");
  await console.untilStatus(waiting, "waiting");
  const found = [];
  const { page, main, go, check } = await openPage(t, browser, console, { viewport: { width: 360, height: 800 } });
  for (const [hash, selector] of pagesWith(run, waiting)) {
    await go(hash);
    await main.locator(selector).first().waitFor({ state: "attached" });
    if (hash === "#/") {
      await page.getByRole("button", { name: "Menu" }).click();
      await page.getByRole("navigation").waitFor();
    }
    found.push(...(await page.evaluate(smallControls, { selector: CONTROLS, isNarrow: true })).map((line) => `${hash} ${line}`));
  }
  assert.deepEqual(found, []);
  check();
  await console.request("POST", `/api/runs/${waiting}/cancel`, {});
}
