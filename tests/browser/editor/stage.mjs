// What the scenes of one line of Node-RED share: Node-RED, a sidecar beside it, and a model that says what it is told.

import { test } from "node:test";

import { launch } from "../kit/chromium.mjs";
import { editor, person } from "../kit/editor.mjs";
import { killable } from "../kit/killable.mjs";
import { model } from "../kit/model.mjs";
import { nodeRed } from "../kit/node-red.mjs";
import { binary } from "../kit/sidecar.mjs";

/** Starts all of it. */
export async function stage(line, browser) {
  // A runtime that is managed finds its program so.
  const red = await nodeRed(line, { REDFLOW_BINARY: binary() });
  try {
    return new Stage(line, browser, red, await killable(), await model());
  } catch (error) {
    await red.stop();
    throw error;
  }
}

class Stage {
  /** A browser for each language. */
  people = new Map();

  constructor(line, browser, red, sidecar, told) {
    [this.line, this.browser, this.red, this.sidecar, this.model] = [line, browser, red, sidecar, told];
  }

  async stop() {
    for (const context of this.people.values()) {
      await context.close();
    }
    await this.red.stop();
    await this.sidecar.stop();
    this.model.stop();
  }

  /** Opens an editor that is closed with the test. */
  async open(t, locale = "en-US") {
    if (!this.people.has(locale)) {
      this.people.set(locale, await person(this.browser, locale));
    }
    const opened = await editor(this.people.get(locale), this.red);
    t.after(() => opened.close());
    return opened;
  }

  /** Puts these flows in force, and opens an editor. */
  async with(t, flows) {
    this.model.release();
    await this.red.deploy(flows);
    return this.open(t);
  }

  /** One scene. If it fails, what the page threw and Node-RED said is told, and how it looked is kept. */
  scene(t, name, play) {
    return t.test(name, async (t) => {
      const opened = [];
      const watched = Object.create(this, {
        open: {
          value: async (t, locale) => {
            const one = await Stage.prototype.open.call(this, t, locale);
            opened.push(one);
            return one;
          },
        },
      });
      try {
        await play(watched, t);
        for (const one of opened) {
          one.holds();
        }
      } catch (error) {
        for (const [index, one] of opened.entries()) {
          await one.picture(`FAILED-${name.replaceAll(/\W+/g, "-")}-${index}`).catch(() => undefined);
          error.message += `\n${one.errors.join("\n")}`;
        }
        error.message += `\n--- Node-RED said\n${this.red.log()}`;
        throw error;
      }
    });
  }
}

/** A test for each line, with these scenes in it. The lines have nothing in common, and mostly wait: they go on at once. */
export function onLines(lines, scenes) {
  test("the editors", { concurrency: lines.length }, async (t) => {
    const all = lines.map((line) => t.test(`Node-RED ${line}`, (t) => onLine(t, line, scenes)));
    await Promise.all(all);
  });
}

async function onLine(t, line, scenes) {
  // Its own: a page behind another one is drawn once a second.
  const browser = await launch();
  t.after(() => browser.close());
  const set = await stage(line, browser);
  t.after(() => set.stop());
  for (const [name, play] of Object.entries(scenes)) {
    await set.scene(t, name, play);
  }
}
