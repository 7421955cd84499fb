// Every other dialog of the palette, in other languages than English and in the dark, and the window of a chat.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { contrasts, readable } from "../kit/contrast.mjs";
import { desk } from "./flows.mjs";
import { LEFT } from "./words.mjs";

/** The words are the same in both lines; the dark is where Node-RED has it. English is what the other scenes read. */
const LOOKS = { 4.1: ["es-ES", "light"], 5: ["de-DE", "dark"] };

/** By type: a field, and what it must not hold. */
const WRONG = {
  "redflow-runtime": ["queueSeconds", "0"],
  "openai-model": ["temperature", "9"],
  "anthropic-model": ["anthropicVersion", "today"],
  "model.azure.openai": ["endpoint", "nowhere"],
  "ollama-model": ["keepAlive", "y".repeat(41)],
  "scripted-model": ["redflow-replies", "{"],
  "buffer-memory": ["maxMessages", "0"],
  "window-memory": ["maxBytes", "x"],
  "redis-memory": ["port", "70000"],
  "calculator-tool": ["toolName", "two words"],
  "flow-tool": ["timeout", "0"],
  "flow-tool-return": undefined,
  "chat-node": ["maxHistory", "1001"],
};

const example = (name) => JSON.parse(readFileSync(new URL(`../../../node-red-bridge/examples/${name}.json`, import.meta.url), "utf8"));

/** These examples, beside the sidecar of the stage. */
function imported(stage, ...names) {
  const theirs = desk(stage).find(({ type }) => type === "redflow-runtime");
  const nodes = names.flatMap(example).filter(({ type }) => type !== "redflow-runtime");
  const bound = nodes.map((node) => (node.type === "agent-core" ? { ...node, runtime: theirs.id } : node));
  return [...bound, theirs];
}

const prefix = (type) => (type === "redflow-runtime" ? "node-config-input" : "node-input");

async function openType(editor, type) {
  await editor.page.evaluate((type) => {
    let found;
    RED.nodes.eachNode((node) => {
      found ??= node.type === type ? node : undefined;
    });
    if (found) {
      RED.editor.edit(found);
      return;
    }
    RED.nodes.eachConfig((node) => {
      found ??= node.type === type ? node : undefined;
    });
    RED.editor.editConfig("", type, found.id, "node-config-input");
  }, type);
  await editor.settled();
  await editor.page.evaluate(() => document.querySelectorAll(".red-ui-tray details").forEach((more) => (more.open = true)));
  return editor.tray.locator("form.redflow-form");
}

async function close(editor) {
  await editor.page.evaluate(() => RED.tray.close());
  await editor.trayGone();
}

const ALL = ["02-flow-tool", "03-http-agent", "04-chat", "05-live-models", "06-redis-memory"];

export async function everyDialog(stage, t) {
  const [language, theme] = LOOKS[stage.line];
  await stage.with(t, imported(stage, ...ALL));
  const editor = await stage.open(t, language);
  await editor.page.evaluate((theme) => RED.settings.setLocal("view-dark-theme", theme), theme);
  await editor.load();
  for (const [type, wrong] of Object.entries(WRONG)) {
    const where = `${type} in ${language}, ${theme}`;
    const form = await openType(editor, type);
    const empty = await form.locator("label, summary, option, button").evaluateAll((all) => all.filter((one) => !one.textContent.trim()).length);
    assert.equal(empty, 0, `${where}: something has no words`);
    assert.doesNotMatch(await form.innerText(), LEFT, where);
    // Those that Node-RED puts there against the browser's own filling in have none.
    const fields = form.locator("input, select, textarea").and(editor.page.locator(":visible:not([id^=red-ui-trap])"));
    const nameless = await fields.evaluateAll((all) => all.filter((one) => one.labels.length === 0).map((one) => one.id));
    assert.deepEqual(nameless, [], `${where}: fields without a label`);
    const help = await editor.page.evaluate((type) => document.querySelector(`script[data-help-name="${type}"]`).textContent, type);
    const ours = readFileSync(new URL(`../../../node-red-bridge/src/nodes/locales/${language.slice(0, 2)}/${type}.html`, import.meta.url), "utf8");
    assert.ok(ours.includes(help.trim()), `${where}: the help is in another language`);
    if (wrong) {
      const [field, value] = wrong;
      await editor.type(form.locator(`#${prefix(type)}-${field}`), value);
      await editor.until(`${where}: the refusal is said`, (id) => document.getElementById(id)?.textContent, `${prefix(type)}-${field}-problem`);
      assert.equal(await form.locator(`#${prefix(type)}-${field}`).getAttribute("aria-invalid"), "true", where);
    }
    readable(await contrasts(form), where);
    await editor.picture(`dialog-${type}`);
    await close(editor);
  }
}

export async function chat(stage, t) {
  const editor = await stage.with(t, imported(stage, "04-chat"));
  const window = editor.page.locator(".redflow-chat");
  // The first press finds it closed, the second one open.
  await editor.press("rf04-chat");
  await window.waitFor();
  await editor.press("rf04-chat");
  assert.equal(await window.count(), 1);
  const field = window.getByRole("textbox");
  await editor.until("one can write", () => document.activeElement?.closest(".redflow-chat"));
  await editor.page.keyboard.type("What is 17 times 3? <img src=x onerror=alert(1)>");
  await editor.page.keyboard.press("Enter");
  await editor.reads(window, "17 times 3 is 51.");
  await editor.reads(window, "<img src=x onerror=alert(1)>");
  assert.equal(await window.locator("img").count(), 0);
  await editor.picture("chat");
  // It is out of the way of a dialog.
  await editor.openById("rf04-agent");
  await window.waitFor({ state: "hidden" });
  await close(editor);
  await window.waitFor();
  // The sidecar goes: silence would say nothing.
  await stage.sidecar.kill();
  try {
    await field.fill("Are you there?");
    await field.press("Enter");
    await editor.reads(window, /sidecar away/);
    await editor.picture("chat-away");
  } finally {
    await stage.sidecar.come();
  }
  await editor.reads(window, /Are you there\?[\s\S]*17 times 3 is 51\./);
  await field.press("Escape");
  await window.waitFor({ state: "detached" });
  await editor.until("the canvas has the keys again", () => document.activeElement?.id === "red-ui-workspace-chart");
}
