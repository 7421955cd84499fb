// A page of the console in a browser context that is signed in. Its errors, its refused contents and its requests to other
// origins fail the test.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const AXE = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Opens a page of a console. `options` are those of the browser context. */
export async function openPage(t, browser, console, { token, path = "", ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  t.after(async () => {
    // A request that the page sends while it closes is no failure of the test.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await context.close();
  });
  const [problems, foreign] = [[], []];
  page.on("pageerror", (error) => problems.push(error.stack ?? error.message));
  page.on("console", (message) => {
    // The browser itself reports refused requests and sockets; they are a problem of the page only if it says so.
    if (message.type() === "error" && !/^(Failed to load resource|WebSocket connection to)/.test(message.text())) {
      problems.push(message.text());
    }
  });
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(console.url()).origin) {
      foreign.push(request.url());
    }
  });
  if (token === undefined) {
    await page.goto(console.url() + (await console.signInPath()) + path);
  } else {
    await page.goto(`${console.url()}/${path}`);
    await page.getByLabel(/token/i).fill(token);
    await page.keyboard.press("Enter");
  }
  await page.locator("nav#menu").waitFor({ state: "attached" });
  return {
    page,
    context,
    main: page.getByRole("main"),
    /** Goes to another place of the console. */
    go: async (hash) => {
      await page.evaluate((hash) => (location.hash = hash), hash);
      await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
    },
    /** Fails if the page had an error, or asked another origin. */
    check: () => {
      assert.deepEqual(problems, [], "errors of the page");
      assert.deepEqual(foreign, [], "requests to other origins");
    },
  };
}

/** Runs axe on a page. Gives one line for each finding. */
export async function findBarriers(page) {
  // Not as a script element, which the page's own rules would refuse.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate((tags) => window.axe.run(document, { runOnly: { type: "tag", values: tags } }), TAGS);
  return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target} ${failureSummary}`));
}

/** Fails if a text of others became markup, or turns the direction of text. */
export async function checkHostile(page, place) {
  assert.equal(await page.evaluate(() => window.hacked), undefined, place);
  const found = await page.evaluate(() => document.querySelectorAll('img, body script, a[href^="javascript"], [onerror]').length);
  assert.equal(found, 0, place);
  // A mark that turns the direction of text is shown as its number.
  const loose = await page.evaluate(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) {
      const { parentElement: parent, data } = walker.currentNode;
      if (data.includes("\u202E")) {
        texts.push(`${parent.tagName} ${data}`);
      }
    }
    return texts;
  });
  assert.deepEqual(loose, [], place);
}
