// The languages of the palette, and its contrast in the light and the dark theme.

import assert from "node:assert/strict";

import { measureContrasts, assertReadable } from "../kit/contrast.mjs";
import { desk, finalAnswer } from "./flows.mjs";

const TABS = {
  "es-ES": {
    ...{ tab: "es", strategy: "Estrategia", failed: "INVALID_JSON tras 1 iteración", done: "listo tras 1 iteración" },
    wrongWire: "el puerto 2 (memory) es para una memoria, pero `Answer` es un nodo corriente",
    help: "Mueva el cable al puerto 3 (result), por donde sale la respuesta.",
  },
  "de-DE": {
    ...{ tab: "de", strategy: "Strategie", failed: "INVALID_JSON nach 1 Iteration", done: "fertig nach 1 Iteration" },
    wrongWire: "Ausgang 2 (memory) ist für ein Gedächtnis, aber `Answer` ist ein gewöhnlicher Node",
    help: "Verlegen Sie die Leitung an Ausgang 3 (result): Dort kommt die Antwort heraus.",
  },
};

/** Keys and placeholders that were not translated. */
export const UNTRANSLATED = /\b(runs|agent|checks|fields|nodes|phrases|timeline)\.[a-z]+(\.[a-zA-Z_]+)*\b|__[a-z]+__/;

export async function translations(fixture, t) {
  const english = await fixture.deployAndOpen(t, desk(fixture));
  await english.open("agent");
  const labels = async (editor) => editor.tray.getByRole("tab").allInnerTexts();
  const seen = new Set([String(await labels(english))]);
  await english.cancel();
  const waitForStatus = (editor, status) => editor.waitForText(editor.node("agent").locator(".red-ui-flow-node-status-label"), status);
  const ask = (editor, answer) => (fixture.model.setAnswers(answer), editor.press("ask"));
  await ask(english, "This is no JSON.");
  await waitForStatus(english, "INVALID_JSON after 1 iteration");
  for (const [locale, { tab, strategy, failed, done, wrongWire, help }] of Object.entries(TABS)) {
    const editor = await fixture.open(t, locale);
    // The status from before, and those of new runs.
    await waitForStatus(editor, failed);
    await ask(editor, finalAnswer("42"));
    await waitForStatus(editor, done);
    await ask(editor, "This is no JSON.");
    await waitForStatus(editor, failed);
    const tray = await editor.open("agent");
    seen.add(String(await labels(editor)));
    assert.equal((await labels(editor)).length, 4);
    await editor.waitForText(tray, strategy);
    for (const index of [0, 1, 2, 3]) {
      await tray.getByRole("tab").nth(index).click();
      assert.doesNotMatch(await tray.innerText(), UNTRANSLATED, locale);
    }
    await tray.getByRole("tab").nth(0).click();
    await editor.screenshot(`language-${tab}`);
    await editor.type(tray.locator("#node-input-maxIterations"), "21");
    await editor.until("the problem is shown", () => document.querySelector(".red-ui-tray .redflow-problem:not(:empty)"));
    await editor.cancel();
    const sidebar = await editor.openSidebar();
    await editor.until("the sidebar is filled", () => document.querySelector(".redflow-sidebar button"));
    assert.doesNotMatch(await sidebar.innerText(), UNTRANSLATED, locale);
    await editor.screenshot(`language-${tab}-sidebar`);
    await editor.wire("agent", 2, "answer");
    await editor.triangle("agent").waitFor();
    const refusal = [wrongWire, help].join(" ");
    const shown = [await editor.tooltip(editor.triangle("agent")), await editor.page.locator(".redflow-wire-refused > title").textContent()];
    shown.forEach((text) => assert.ok(text.replace(/\s+/g, " ").includes(refusal), text));
    await editor.screenshot(`language-${tab}-wrong-wire`);
    await (await editor.open("agent")).getByRole("tab").nth(3).click();
    await editor.waitForText(editor.tray, wrongWire);
    await editor.waitForText(editor.tray, help.split(" (")[0]);
    await editor.screenshot(`language-${tab}-errors`);
    await editor.cancel();
  }
  assert.equal(seen.size, 3, `three languages: ${[...seen].join(" | ")}`);
}

export async function lightAndDark(fixture, t) {
  const editor = await fixture.deployAndOpen(t, desk(fixture));
  fixture.model.setAnswers("This is no JSON.");
  await editor.press("ask");
  await editor.waitForText(editor.node("agent").locator(".red-ui-flow-node-status-label"), "INVALID_JSON");
  const themes = fixture.line === "5" ? ["light", "dark"] : ["light"];
  for (const theme of themes) {
    await editor.page.evaluate((theme) => RED.settings.setLocal("view-dark-theme", theme), theme);
    await editor.load();
    await editor.waitForCheck("checked");
    const dark = await editor.page.evaluate(() => document.documentElement.classList.contains("nr-theme-dark"));
    assert.equal(dark, theme === "dark");
    await editor.screenshot(`${theme}-canvas`);
    const sidebar = await editor.openSidebar();
    await editor.until("the sidebar is filled", () => document.querySelector(".redflow-sidebar li"));
    const measured = await measureContrasts(sidebar);
    const tray = await editor.open("agent");
    for (const [index, name] of ["general", "tools", "runtime", "errors"].entries()) {
      await tray.getByRole("tab").nth(index).click();
      if (index > 0) {
        await editor.until(`${name} is filled`, () => document.querySelector("[role=tabpanel]:not([hidden]) :is(li, details)"));
      }
      measured.push(...(await measureContrasts(tray.locator("[role=tabpanel], [role=tablist]"))));
      await editor.screenshot(`${theme}-${name}`);
    }
    assertReadable(measured, theme);
    const [faintest] = measured.sort(([one], [other]) => one - other);
    t.diagnostic(`${theme}: the faintest text is "${faintest[1]}", with a contrast of ${faintest[0]}`);
    await editor.cancel();
  }
}
