// A page that was opened, and how a test looks at it.

import assert from "node:assert/strict";

import { brief } from "./frames.mjs";

/** Longer than anything here takes; reached only by what never comes. */
const PATIENCE_MS = 15_000;

/** Opens the page of an origin, for the sidecar at `api`. */
export async function visit(t, browser, origin, api) {
  const context = await browser.newContext({ viewport: { width: 1500, height: 900 } });
  t.after(() => context.close());
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${origin}/?api=${encodeURIComponent(api)}`);
  await page.waitForFunction(() => window.ui);
  return new Visit(page, errors);
}

class Visit {
  constructor(page, errors) {
    this.page = page;
    this.errors = errors;
  }

  /** Lets the page do one of the things it can. */
  does(what, ...args) {
    const run = ([what, args]) => what.split(".").reduce((from, name) => from[name], window.ui)(...args);
    return this.page.evaluate(run, [what, args]);
  }

  /** What the page remembers under this name. */
  has(name) {
    return this.page.evaluate((name) => window.ui[name], name);
  }

  /** What the socket told, from this message on. */
  async events(from = 0) {
    return (await this.has("events")).slice(from);
  }

  /** Waits until `check(events, arg)` is so in the page, of the messages from `from` on; answers with them. */
  async until(what, from, check, arg) {
    const run = `([from, arg]) => (${check})(window.ui.events.slice(from), arg)`;
    try {
      await this.page.waitForFunction(`(${run})(${JSON.stringify([from, arg])})`, undefined, {
        timeout: PATIENCE_MS,
        polling: 10,
      });
    } catch (error) {
      throw new Error(`not in time: ${what}`, { cause: error });
    }
    return this.events(from);
  }

  /** Does the work; if that fails, says what the page has seen. */
  async told(work) {
    try {
      await work();
      assert.deepEqual(this.errors, [], "the page threw");
    } catch (error) {
      error.stack += `\n${await this.story()}`;
      throw error;
    }
  }

  /** All it has seen, a line each. */
  async story() {
    const short = (value = "") => JSON.stringify(value).slice(0, 200);
    const calls = (await this.has("calls")).map(({ method, path, status, failed, body }) => {
      return `${method} ${path} ${failed ?? status} ${short(body)}`;
    });
    const events = (await this.events()).map((event) => {
      const { outputs, input, error } = event.data ?? {};
      const payload = (outputs?.[0] ?? input)?.payload.preview;
      return `${brief(event)} ${short(error ?? payload)}`;
    });
    const lines = ["it called", ...calls, "it heard", ...events, ...this.errors];
    return lines.map((line) => `  | ${line}`).join("\n");
  }
}
