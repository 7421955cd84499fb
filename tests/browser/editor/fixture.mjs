// The shared fixture of all scenarios of one version of Node-RED: Node-RED, a sidecar and a fake model.

import { test } from "node:test";

import { launch } from "../kit/chromium.mjs";
import { newContext, openEditor } from "../kit/editor.mjs";
import { fakeModel } from "../kit/model.mjs";
import { nodeRed } from "../kit/node-red.mjs";
import { restartableSidecar } from "../kit/restartable-sidecar.mjs";
import { binary } from "../kit/sidecar.mjs";

/** Starts the fixture. */
async function startFixture(line, browser) {
  // The program of a managed runtime.
  const red = await nodeRed(line, { REDFLOW_BINARY: binary() });
  try {
    return new Fixture(line, browser, red, await restartableSidecar(), await fakeModel());
  } catch (error) {
    await red.stop();
    throw error;
  }
}

class Fixture {
  /** A browser context for each language. */
  contexts = new Map();

  constructor(line, browser, red, sidecar, model) {
    Object.assign(this, { line, browser, nodeRed: red, sidecar, model });
  }

  async stop() {
    for (const context of this.contexts.values()) {
      await context.close();
    }
    await this.nodeRed.stop();
    await this.sidecar.stop();
    this.model.stop();
  }

  /** Opens an editor, which closes with the test. */
  async open(t, locale = "en-US") {
    if (!this.contexts.has(locale)) {
      this.contexts.set(locale, await newContext(this.browser, locale));
    }
    const opened = await openEditor(this.contexts.get(locale), this.nodeRed);
    t.after(() => opened.close());
    return opened;
  }

  /** Deploys these flows and opens an editor. */
  async deployAndOpen(t, flows) {
    this.model.release();
    await this.nodeRed.deploy(flows);
    return this.open(t);
  }

  /** Runs one scenario. A failure includes the errors of the page, the log of Node-RED and a screenshot. */
  runScenario(t, name, scenario) {
    return t.test(name, async (t) => {
      const opened = [];
      const recording = Object.create(this, {
        open: {
          value: async (t, locale) => {
            const one = await Fixture.prototype.open.call(this, t, locale);
            opened.push(one);
            return one;
          },
        },
      });
      try {
        await scenario(recording, t);
        for (const one of opened) {
          one.assertNoErrors();
        }
      } catch (error) {
        for (const [index, one] of opened.entries()) {
          await one.screenshot(`FAILED-${name.replaceAll(/\W+/g, "-")}-${index}`).catch(() => undefined);
          error.message += `\n${one.errors.join("\n")}`;
        }
        error.message += `\n--- log of Node-RED\n${this.nodeRed.log()}`;
        throw error;
      }
    });
  }
}

/** A test for each version with these scenarios. The versions share nothing and mostly wait, so they run at once. */
export function testVersions(lines, scenarios) {
  test("the editors", { concurrency: lines.length }, async (t) => {
    const all = lines.map((line) => t.test(`Node-RED ${line}`, (t) => testVersion(t, line, scenarios)));
    await Promise.all(all);
  });
}

async function testVersion(t, line, scenarios) {
  // Its own browser, because Chromium draws a page in the background only once a second.
  const browser = await launch();
  t.after(() => browser.close());
  const fixture = await startFixture(line, browser);
  t.after(() => fixture.stop());
  for (const [name, scenario] of Object.entries(scenarios)) {
    await fixture.runScenario(t, name, scenario);
  }
}
