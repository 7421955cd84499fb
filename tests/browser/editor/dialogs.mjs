// Every other dialog of the palette, in Spanish and German, light and dark; and the chat window.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";

import { measureContrasts, assertReadable } from "../kit/contrast.mjs";
import { desk } from "./flows.mjs";
import { UNTRANSLATED } from "./languages.mjs";

/** The language and theme for each version of Node-RED. Only version 5 has a dark theme; other scenarios use English. */
const LOOKS = { 4.1: ["es-ES", "light"], 5: ["de-DE", "dark"] };

/** The declared node types of the palette. */
const DECLARED = JSON.parse(readFileSync(new URL("../../../schemas/nodes.json", import.meta.url), "utf8"));

/** These agents have scenarios of their own. */
const OWN_SCENARIOS = ["agent-core", "ai-agent"];
const TYPES = DECLARED.map(({ type }) => type).filter((type) => !OWN_SCENARIOS.includes(type));

/** A field and an invalid value, for the types that have one. */
const INVALID_VALUES = {
  "redflow-runtime": ["queueSeconds", "0"],
  "openai-model": ["temperature", "9"],
  "anthropic-model": ["anthropicVersion", "today"],
  "google-model": ["topK", "-1"],
  "ai-simple-agent": ["maxTokenLimit", "999"],
  "ai-extractor": ["redflow-outputSchema", "[]"],
  "ai-classifier": ["redflow-categories", "[1]"],
  "ai-summarizer": ["maxIterations", "101"],
  "model.azure.openai": ["endpoint", "nowhere"],
  "ollama-model": ["keepAlive", "y".repeat(41)],
  "scripted-model": ["redflow-replies", "{"],
  "buffer-memory": ["maxMessages", "0"],
  "window-memory": ["maxBytes", "x"],
  "redis-memory": ["port", "70000"],
  "summary-memory": ["keepTurns", "0"],
  "long-memory": ["minScore", "1.5"],
  "calculator-tool": ["toolName", "two words"],
  "registry-tool": ["redflow-ids", "[\"two words\"]"],
  "http-request-tool": ["maxRedirects", "21"],
  "knowledge-base-tool": ["topK", "51"],
  "flow-tool": ["timeout", "0"],
  "chat-node": ["maxHistory", "1001"],
};

/** The nodes of an example of the palette. */
export const example = (name) => JSON.parse(readFileSync(new URL(`../../../node-red-bridge/examples/${name}.json`, import.meta.url), "utf8"));

/** These examples with the runtime of the fixture. */
export function withRuntime(fixture, ...names) {
  const runtime = desk(fixture).find(({ type }) => type === "redflow-runtime");
  const nodes = names.flatMap(example).filter(({ type }) => type !== "redflow-runtime");
  const bound = nodes.map((node) => ("runtime" in node ? { ...node, runtime: runtime.id } : node));
  return [...bound, runtime];
}

/** The config nodes of the palette. */
const CONFIGS = new Set(DECLARED.filter(({ config }) => config).map(({ type }) => type));

const prefix = (type) => (CONFIGS.has(type) ? "node-config-input" : "node-input");

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
  await editor.waitForDialog();
  await editor.page.evaluate(() => document.querySelectorAll(".red-ui-tray details").forEach((more) => (more.open = true)));
  return editor.tray.locator("form.redflow-form");
}

async function close(editor) {
  await editor.page.evaluate(() => RED.tray.close());
  await editor.waitForDialogClosed();
}

const ALL = readdirSync(new URL("../../../node-red-bridge/examples", import.meta.url)).map((name) => name.replace(/\.json$/, ""));

export async function everyDialog(fixture, t) {
  const [language, theme] = LOOKS[fixture.line];
  await fixture.deployAndOpen(t, withRuntime(fixture, ...ALL));
  const editor = await fixture.open(t, language);
  await editor.page.evaluate((theme) => RED.settings.setLocal("view-dark-theme", theme), theme);
  await editor.load();
  for (const type of TYPES) {
    const invalid = INVALID_VALUES[type];
    const where = `${type} in ${language}, ${theme}`;
    const form = await openType(editor, type);
    const empty = await form.locator("label, summary, option, button").evaluateAll((all) => all.filter((one) => !one.closest("[hidden]") && !(one.textContent.trim() || one.ariaLabel)).length);
    assert.equal(empty, 0, `${where}: an element has no text`);
    assert.doesNotMatch(await form.innerText(), UNTRANSLATED, where);
    // Except the fields that Node-RED adds against autofill.
    const fields = form.locator("input, select, textarea").and(editor.page.locator(":visible:not([id^=red-ui-trap])"));
    const unlabelled = await fields.evaluateAll((all) => all.filter((one) => one.labels.length === 0 && !one.ariaLabel).map((one) => one.id));
    assert.deepEqual(unlabelled, [], `${where}: fields without a label`);
    const help = await editor.page.evaluate((type) => document.querySelector(`script[data-help-name="${type}"]`).textContent, type);
    const translated = readFileSync(new URL(`../../../node-red-bridge/src/nodes/locales/${language.slice(0, 2)}/${type}.html`, import.meta.url), "utf8");
    assert.ok(translated.includes(help.trim()), `${where}: the help is in another language`);
    if (invalid) {
      const [field, value] = invalid;
      await editor.type(form.locator(`#${prefix(type)}-${field}`), value);
      await editor.until(`${where}: the problem is shown`, (id) => document.getElementById(id)?.textContent, `${prefix(type)}-${field}-problem`);
      assert.equal(await form.locator(`#${prefix(type)}-${field}`).getAttribute("aria-invalid"), "true", where);
    }
    assertReadable(await measureContrasts(form), where);
    await editor.screenshot(`dialog-${type}`);
    await close(editor);
  }
}

/** The dialog of the HTTP tool has only the fields of the chosen authentication. */
export async function partsByChoice(fixture, t) {
  const editor = await fixture.deployAndOpen(t, withRuntime(fixture, "08-http-tool"));
  await editor.openById("rf08-http");
  const row = (name) => editor.tray.locator(`#node-input-${name}`);
  const rows = { none: [], basic: ["user", "password"], header: ["headerName", "headerValue"], bearer: ["token"], apiKey: ["apiKeyIn", "apiKeyName", "apiKey"] };
  for (const choice of Object.keys(rows)) {
    await row("authentication").selectOption(choice);
    for (const [owner, names] of Object.entries(rows)) {
      for (const name of names) {
        assert.equal(await row(name).isVisible(), owner === choice, `${choice}: ${name}`);
      }
    }
  }
  await close(editor);
}

/** The dialog of an Azure model has the fields of its sign-in. An older flow has none, and signs in with a key. */
export async function azureSignIn(fixture, t) {
  const nodes = withRuntime(fixture, "05-live-models").map(({ authentication: _, ...node }) => node);
  const editor = await fixture.deployAndOpen(t, nodes);
  await editor.openById("rf05-azure");
  const row = (name) => editor.tray.locator(`#node-input-${name}`);
  await editor.page.evaluate(() => document.querySelectorAll(".red-ui-tray details").forEach((more) => (more.open = true)));
  const rows = { key: ["apiKey", "keyNode"], entra: ["tenantId", "clientId", "clientSecret", "authority"] };
  const check = async (chosen) => {
    for (const [owner, names] of Object.entries(rows)) {
      for (const name of names) {
        assert.equal(await row(name).isVisible(), owner === chosen, `${chosen}: ${name}`);
      }
    }
  };
  await check("key");
  await row("authentication").selectOption("entra");
  await check("entra");
  await editor.screenshot("azure-sign-in");
  await row("authentication").selectOption("key");
  await check("key");
  await editor.cancel();
  assert.equal(await editor.page.evaluate(() => RED.nodes.dirty()), false);
}

/** The table writes the schema, and a schema beyond the table is never lost. */
export async function parameters(fixture, t) {
  const editor = await fixture.deployAndOpen(t, withRuntime(fixture, "02-flow-tool"));
  const { page } = editor;
  const id = await page.evaluate(() => RED.nodes.filterNodes({ type: "flow-tool" })[0].id);
  const before = await editor.value(id, "inputSchema");
  const fields = (row) => editor.tray.locator(".redflow-parameter:not(.redflow-parameter-head)").nth(row).locator("input, select");
  await editor.openById(id);
  await editor.tray.getByRole("tab", { name: "Parameters" }).waitFor();
  const known = await editor.tray.locator(".redflow-parameter:not(.redflow-parameter-head)").count();
  assert.equal(known, Object.keys(before.properties).length);
  await editor.tray.getByRole("button", { name: "Add a parameter" }).click();
  await page.keyboard.type("digits");
  await fields(known).nth(1).selectOption("integer");
  await fields(known).nth(2).fill("Digits after the point");
  await editor.screenshot("parameters");
  await fields(known).nth(2).fill("Digits <b>");
  await editor.tray.getByRole("tab", { name: "JSON Schema" }).click();
  assert.match(await editor.tray.locator("#node-input-redflow-inputSchema").inputValue(), /"digits": \{/);
  await editor.screenshot("parameters-schema");
  await editor.done();
  const after = { ...before, properties: { ...before.properties, digits: { type: "integer", description: "Digits <b>" } }, required: [...(before.required ?? []), "digits"] };
  assert.deepEqual(await editor.value(id, "inputSchema"), after);
  // Opening and closing the dialog changes nothing.
  await editor.deploy();
  await editor.openById(id);
  await editor.tray.getByRole("tab", { name: "Parameters" }).click();
  await editor.done();
  assert.equal(await page.evaluate(() => RED.nodes.dirty()), false);
  // A nested schema opens as a schema, and the table says why it stays away.
  const nested = { type: "object", properties: { at: { type: "object", properties: { x: { type: "number" } } } } };
  await page.evaluate(([id, nested]) => (RED.nodes.node(id).inputSchema = nested), [id, nested]);
  await editor.openById(id);
  await editor.tray.locator("#node-input-redflow-inputSchema").waitFor();
  await editor.waitForText(editor.tray, /The table cannot show this schema/);
  await editor.tray.getByRole("tab", { name: "Parameters" }).click();
  await editor.tray.locator("#node-input-redflow-inputSchema").waitFor();
  await editor.done();
  assert.deepEqual(await editor.value(id, "inputSchema"), nested);
}

/** A config node has the key of several models. Node-RED keeps it, and the sidecar gets it. */
export async function sharedKey(fixture, t) {
  const editor = await fixture.deployAndOpen(t, withRuntime(fixture, "05-live-models"));
  const { page } = editor;
  for (const id of ["rf05-openai", "rf05-agent-openai"]) {
    await editor.triangle(id).waitFor();
  }
  await editor.openById("rf05-openai");
  await editor.waitForText(editor.tray, /shared key, but that has no key yet/);
  await editor.screenshot("shared-key");
  await editor.tray.locator("#node-input-keyNode").selectOption("_ADD_");
  await editor.waitForText(editor.tray, /OPENAI_API_KEY/);
  await editor.tray.locator("#node-input-keyNode").selectOption("rf05-openai-key");
  await editor.done();
  // A missing key node is a problem of the model.
  const problems = () => page.evaluate(() => RED.nodes.node("rf05-openai").validationErrors ?? []);
  await page.evaluate(() => {
    RED.nodes.node("rf05-openai").keyNode = "gone";
    RED.editor.validateNode(RED.nodes.node("rf05-openai"));
  });
  assert.match(JSON.stringify(await problems()), /Shared key: choose another one/);
  await page.evaluate(() => {
    RED.nodes.node("rf05-openai").keyNode = "rf05-openai-key";
    RED.editor.validateNode(RED.nodes.node("rf05-openai"));
    RED.editor.editConfig("", "openai-key", "rf05-openai-key", "node-config-input");
  });
  await editor.waitForDialog();
  await editor.type(editor.tray.locator("#node-config-input-apiKey"), "sk-shared-of-the-browser");
  await editor.screenshot("key-node");
  await page.locator("#node-config-dialog-ok").click();
  await editor.waitForDialogClosed();
  // The key counts for the model that names it, and for its agent.
  for (const id of ["rf05-openai", "rf05-agent-openai"]) {
    await editor.triangle(id).waitFor({ state: "hidden" });
  }
  await editor.deployWithProblems();
  await editor.openById("rf05-openai");
  await editor.waitForText(editor.tray, "Empty: the model uses the shared key.");
  await editor.cancel();
  // No browser gets the key back.
  assert.ok(!JSON.stringify(await fixture.nodeRed.flows()).includes("sk-shared-of-the-browser"));
  await page.evaluate(() => RED.editor.editConfig("", "openai-key", "rf05-openai-key", "node-config-input"));
  await editor.waitForDialog();
  assert.equal(await editor.tray.locator("#node-config-input-apiKey").inputValue(), "__PWRD__");
  await close(editor);
}

/** The buttons of a model use what the dialog has now, and a stored key only for the address that is deployed. */
export async function modelTest(fixture, t) {
  const flow = withRuntime(fixture, "05-live-models").map((node) => (node.id === "rf05-openai" ? { ...node, baseURL: fixture.model.url } : node));
  const key = { id: "rf05-openai-key", type: "openai-key", name: "", credentials: { apiKey: "sk-shared-of-the-test" } };
  const editor = await fixture.deployAndOpen(t, [...flow.filter(({ id }) => id !== key.id), key]);
  fixture.model.setAnswers({ action: "final", message: "ok", confidence: 1 });
  await editor.openById("rf05-openai");
  const { page, tray } = editor;
  const answer = tray.locator(".redflow-test-answer");
  const test = tray.getByRole("button", { name: "Test", exact: true });
  await test.focus();
  await page.keyboard.press("Enter");
  await editor.waitForText(answer, /The model answered in \d+\.\d s\./);
  // The button keeps the focus.
  assert.ok(await test.evaluate((button) => button === document.activeElement && button.getAttribute("aria-disabled") === "false"));
  await editor.waitForText(answer, /11 read, 7 written/);
  await editor.waitForText(answer, /JSON Schema: followed/);
  await editor.screenshot("model-test");
  await tray.getByRole("button", { name: "List the models" }).click();
  await tray.getByLabel("Models").selectOption("small <b>");
  assert.equal(await tray.locator("#node-input-model").inputValue(), "small <b>");
  assert.deepEqual(new Set(fixture.model.keys), new Set(["Bearer sk-shared-of-the-test"]));
  const suggested = await tray.locator("#node-input-model-names option").evaluateAll((all) => all.map(({ value }) => value));
  assert.ok(suggested.includes("small <b>"), "the names are suggestions of the field");
  await editor.screenshot("model-list");
  // A changed address does not carry the key away.
  await editor.type(tray.locator("#node-input-baseURL"), "http://127.0.0.1:9/v1");
  await tray.getByRole("button", { name: "Test", exact: true }).click();
  await editor.waitForText(answer, /KEY_NOT_SENT/);
  assert.ok(!(await answer.innerText()).includes("sk-shared"));
  // A key that the user types may go there.
  await editor.type(tray.locator("#node-input-apiKey"), "sk-typed");
  await tray.getByRole("button", { name: "Test", exact: true }).click();
  await editor.waitForText(answer, /PROVIDER_UNAVAILABLE/);
  await editor.cancel();
  assert.equal(await editor.page.evaluate(() => RED.nodes.dirty()), false);
}

export async function chat(fixture, t) {
  const editor = await fixture.deployAndOpen(t, withRuntime(fixture, "04-chat"));
  const window = editor.page.locator(".redflow-chat");
  // The second press focuses the open window.
  await editor.press("rf04-chat");
  await window.waitFor();
  await editor.press("rf04-chat");
  assert.equal(await window.count(), 1);
  const field = window.getByRole("textbox");
  await editor.until("the field has the focus", () => document.activeElement?.closest(".redflow-chat"));
  await editor.page.keyboard.type("What is 17 times 3? <img src=x onerror=alert(1)>");
  await editor.page.keyboard.press("Enter");
  await editor.waitForText(window, "17 times 3 is 51.");
  await editor.waitForText(window, "<img src=x onerror=alert(1)>");
  assert.equal(await window.locator("img").count(), 0);
  await editor.screenshot("chat");
  // A dialog hides the window.
  await editor.openById("rf04-agent");
  await window.waitFor({ state: "hidden" });
  await close(editor);
  await window.waitFor();
  // The window shows that the sidecar is offline.
  await fixture.sidecar.kill();
  try {
    await field.fill("Are you there?");
    await field.press("Enter");
    await editor.waitForText(window, /sidecar offline/);
    await editor.screenshot("chat-offline");
  } finally {
    await fixture.sidecar.start();
  }
  await editor.waitForText(window, /Are you there\?[\s\S]*17 times 3 is 51\./);
  await field.press("Escape");
  await window.waitFor({ state: "detached" });
  await editor.until("the canvas has the focus", () => document.activeElement?.id === "red-ui-workspace-chart");
}
