// The opened test page (`page/ui.js`), and how a test drives it.

import assert from "node:assert/strict";

import { summarize } from "./frames.mjs";

/** Longer than any step takes, so that only a failure reaches it. */
const TIMEOUT_MS = 15_000;

/** Opens the test page of an origin, for the sidecar at `api`. */
export async function openPage(t, browser, origin, api) {
  const context = await browser.newContext({ viewport: { width: 1500, height: 900 } });
  t.after(() => context.close());
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  const uiPage = new UiPage(page, errors);
  await page.goto(`${origin}/?api=${encodeURIComponent(api)}`);
  await uiPage.isLoaded();
  return uiPage;
}

class UiPage {
  constructor(page, errors) {
    this.page = page;
    this.errors = errors;
  }

  isLoaded() {
    return this.page.waitForFunction(() => window.ui);
  }

  /** Loads the page again. */
  async reload() {
    await this.page.reload();
    await this.isLoaded();
  }

  /** Calls a function of `window.ui` in the page. */
  call(path, ...args) {
    const run = ([path, args]) => path.split(".").reduce((from, name) => from[name], window.ui)(...args);
    return this.page.evaluate(run, [path, args]);
  }

  /** A value of `window.ui`. */
  read(name) {
    return this.page.evaluate((name) => window.ui[name], name);
  }

  /** The lines of the chat window, once it waits no more. */
  async chatLines() {
    await this.page.waitForFunction(() => !window.ui.chatWindow.isWaiting, undefined, { timeout: TIMEOUT_MS });
    const { messages } = await this.read("chatWindow");
    return messages.map(({ type, content }) => `${type}: ${content}`);
  }

  /** The messages of the socket from this index on. */
  async events(from = 0) {
    return (await this.read("events")).slice(from);
  }

  /** Waits until `check(events, arg)` is true in the page for the messages from `from` on. Returns them. */
  async until(what, from, check, arg) {
    const run = `([from, arg]) => (${check})(window.ui.events.slice(from), arg)`;
    try {
      await this.page.waitForFunction(`(${run})(${JSON.stringify([from, arg])})`, undefined, {
        timeout: TIMEOUT_MS,
        polling: 10,
      });
    } catch (error) {
      throw new Error(`not in time: ${what}`, { cause: error });
    }
    return this.events(from);
  }

  /** Runs `work`, and adds the trace of the page to an error. */
  async withTrace(work) {
    try {
      await work();
      assert.deepEqual(this.errors, [], "errors of the page");
    } catch (error) {
      error.stack += `\n${await this.trace()}`;
      throw error;
    }
  }

  /** All calls and events of the page, one per line. */
  async trace() {
    const short = (value = "") => JSON.stringify(value).slice(0, 200);
    const calls = (await this.read("calls")).map(({ method, path, status, failed, body }) => {
      return `${method} ${path} ${failed ?? status} ${short(body)}`;
    });
    const events = (await this.events()).map((event) => {
      const { outputs, input, error } = event.data ?? {};
      const payload = (outputs?.[0] ?? input)?.payload.preview;
      return `${summarize(event)} ${short(error ?? payload)}`;
    });
    const lines = ["calls", ...calls, "events", ...events, ...this.errors];
    return lines.map((line) => `  | ${line}`).join("\n");
  }
}
