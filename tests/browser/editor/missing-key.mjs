// A newcomer deploys the example with live models without a key: the editor says which model needs one, and what to do.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const EXAMPLE = new URL("../../../node-red-bridge/examples/05-live-models.json", import.meta.url);
const [AGENT, MODEL, NAME] = ["rf05-agent-openai", "rf05-openai", "gpt-6-luna"];

/** What is wrong, what to do, and the label of the key, in each language. */
const WORDS = {
  "de-DE": ["hat keinen API-Schlüssel", "Geben Sie den API-Schlüssel im gemeinsamen Schlüssel", "OpenAI-Schlüssel"],
  "es-ES": ["no tiene clave de API", "Introduzca la clave de API en la clave compartida", "clave de OpenAI"],
  "en-US": ["has no API key", "Enter the API key in the shared key", "OpenAI key"],
};

export async function missingKey(fixture, t) {
  await fixture.nodeRed.deploy(JSON.parse(await readFile(EXAMPLE, "utf8")));
  let editor, expected;
  for (const [locale, [wrong, fix, key]] of Object.entries(WORDS)) {
    // The tooltip has the label in backticks, the tab in an element. No person sees an id.
    expected = new RegExp(`${NAME}\` ${wrong}[^]*${fix} \`?${key}[^]*OPENAI_API_KEY`);
    editor = await fixture.open(t, locale);
    await editor.waitForCheck("checked");
    await editor.waitForText(editor.node(AGENT).locator(".red-ui-flow-node-status-label"), `${NAME}\` ${wrong}`.slice(0, 20));
    await editor.triangle(AGENT).waitFor();
    assert.match(await editor.tooltip(editor.triangle(AGENT)), expected);
    assert.equal(await editor.triangle("rf05-agent-ollama").isVisible(), false);
    const sidebar = await editor.openSidebar();
    await editor.waitForText(sidebar, /: 3/);
    const tray = await editor.open(AGENT);
    await tray.getByRole("tab").nth(3).click();
    const row = tray.getByRole("tabpanel").getByRole("group").first();
    await editor.waitForText(row, "MODEL_KEY_MISSING");
    await editor.waitForText(row, expected);
    await editor.screenshot(`missing-key-${locale.slice(0, 2)}`);
    await editor.cancel();
  }
  // The English editor is still open. The model says the same, and a key that is not deployed yet counts.
  assert.match(await editor.tooltip(editor.triangle(MODEL)), expected);
  await editor.open(MODEL);
  await editor.type(editor.tray.locator("#node-input-apiKey"), "sk-of-a-newcomer");
  await editor.done();
  await editor.triangle(AGENT).waitFor({ state: "hidden" });
  await editor.triangle(MODEL).waitFor({ state: "hidden" });
  await editor.screenshot("missing-key-entered");
}
