// The languages of the palette, and its colours in the light and in the dark.

import assert from "node:assert/strict";

import { contrasts, readable } from "../kit/contrast.mjs";
import { desk } from "./flows.mjs";

const TABS = {
  "es-ES": { tab: "es", strategy: "Estrategia" },
  "de-DE": { tab: "de", strategy: "Strategie" },
};

/** Words that stand in the page as they are called: a key that was not found. */
export const LEFT = /\b(runs|agent|checks|fields|nodes)\.[a-z]+(\.[a-zA-Z_]+)*\b|__[a-z]+__/;

export async function languages(stage, t) {
  const english = await stage.with(t, desk(stage));
  await english.open("agent");
  const labels = async (editor) => editor.tray.getByRole("tab").allInnerTexts();
  const said = new Set([String(await labels(english))]);
  for (const [locale, { tab, strategy }] of Object.entries(TABS)) {
    const editor = await stage.open(t, locale);
    const tray = await editor.open("agent");
    said.add(String(await labels(editor)));
    assert.equal((await labels(editor)).length, 4);
    await editor.reads(tray, strategy);
    for (const place of [0, 1, 2, 3]) {
      await tray.getByRole("tab").nth(place).click();
      assert.doesNotMatch(await tray.innerText(), LEFT, locale);
    }
    await tray.getByRole("tab").nth(0).click();
    await editor.picture(`words-${tab}`);
    await editor.type(tray.locator("#node-input-maxIterations"), "21");
    await editor.until("the refusal is said", () => document.querySelector(".red-ui-tray .redflow-problem:not(:empty)"));
    await editor.cancel();
    const sidebar = await editor.sidebar();
    await editor.until("the sidebar is filled", () => document.querySelector(".redflow-sidebar button"));
    assert.doesNotMatch(await sidebar.innerText(), LEFT, locale);
    await editor.picture(`words-${tab}-sidebar`);
  }
  assert.equal(said.size, 3, `three languages: ${[...said].join(" | ")}`);
}

export async function lightAndDark(stage, t) {
  const editor = await stage.with(t, desk(stage));
  stage.model.says("This is no JSON.");
  await editor.press("ask");
  await editor.reads(editor.node("agent").locator(".red-ui-flow-node-status-label"), "INVALID_JSON");
  const themes = stage.line === "5" ? ["light", "dark"] : ["light"];
  for (const theme of themes) {
    await editor.page.evaluate((theme) => RED.settings.setLocal("view-dark-theme", theme), theme);
    await editor.load();
    await editor.checked();
    const dark = await editor.page.evaluate(() => document.documentElement.classList.contains("nr-theme-dark"));
    assert.equal(dark, theme === "dark");
    await editor.picture(`${theme}-canvas`);
    const sidebar = await editor.sidebar();
    await editor.until("the sidebar is filled", () => document.querySelector(".redflow-sidebar li"));
    const seen = await contrasts(sidebar);
    const tray = await editor.open("agent");
    for (const [place, name] of ["general", "tools", "runtime", "errors"].entries()) {
      await tray.getByRole("tab").nth(place).click();
      if (place > 0) {
        await editor.until(`${name} is filled`, () => document.querySelector("[role=tabpanel]:not([hidden]) :is(li, details)"));
      }
      seen.push(...(await contrasts(tray.locator("[role=tabpanel], [role=tablist]"))));
      await editor.picture(`${theme}-${name}`);
    }
    readable(seen, theme);
    const [faintest] = seen.sort(([one], [other]) => one - other);
    t.diagnostic(`${theme}: the faintest text is "${faintest[1]}", with a contrast of ${faintest[0]}`);
    await editor.cancel();
  }
}
