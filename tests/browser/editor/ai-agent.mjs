// The AI Agent: its dialog with services by wires and by choice, and a run with parallel calls.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { TABS } from "./agent-dialog.mjs";
import { withRuntime } from "./dialogs.mjs";
import { mail, model } from "./flows.mjs";

/** The example, with an ordinary node as a tool and two more models that the agent may fall back to. */
function flow(fixture) {
  const spare = (id, name, y) => ({ id, type: "scripted-model", z: "rf07-tab", name, replies: ["ok"], delayMs: 0, x: 600, y, wires: [[]] });
  const code = { func: "return msg;", outputs: 1, timeout: 0, noerr: 0, initialize: "", finalize: "", libs: [] };
  const plain = { id: "plain", type: "function", name: "plain", z: "rf07-tab", x: 140, y: 460, wires: [["rf07-agent"]], ...code };
  const nodes = withRuntime(fixture, "07-ai-agent").map((node) => (node.id === "rf07-agent" ? { ...node, tools: ["rf07-weather", "plain"] } : node));
  return [...nodes, plain, spare("spare1", "First spare", 40), spare("spare2", "Second spare", 80)];
}

export async function dialog(fixture, t) {
  const editor = await fixture.deployAndOpen(t, flow(fixture));
  const tray = await editor.open("rf07-agent");
  for (const name of TABS) {
    await tray.getByRole("tab", { name }).click();
  }
  await editor.done();
  assert.equal(await editor.page.evaluate(() => RED.nodes.dirty()), false, "opening the tabs changes nothing");
  assert.deepEqual(await editor.value("rf07-agent", "validationErrors") ?? [], []);

  await editor.open("rf07-agent");
  await tray.getByRole("tab", { name: "General" }).click();
  const [model, memory] = [tray.locator("#node-input-model"), tray.locator("#node-input-memory")];
  const chosen = (select) => select.evaluate((field) => field.selectedOptions[0]?.text);
  assert.equal(await chosen(model), "by wire: Scripted model");
  assert.equal(await chosen(memory), "none");
  await editor.screenshot("ai-agent-general");
  await tray.getByText("More settings").click();
  const add = tray.getByRole("combobox", { name: "Add …" }).first();
  await add.selectOption({ label: "First spare" });
  await add.selectOption({ label: "Second spare" });
  const names = () => tray.locator(".redflow-service-name").allInnerTexts();
  assert.deepEqual(await names(), ["First spare", "Second spare"]);
  await tray.getByRole("button", { name: "Move up" }).nth(1).click();
  assert.deepEqual(await names(), ["Second spare", "First spare"]);
  await editor.screenshot("ai-agent-more");

  await tray.getByRole("tab", { name: "Tools" }).click();
  const row = (name) => tray.getByRole("tabpanel").getByRole("listitem").filter({ hasText: name });
  await editor.waitForText(row("calculator"), /by wire/);
  await editor.waitForText(row("temperature"), /changes nothing/i);
  await editor.waitForText(row("plain"), /assumed/);
  await editor.screenshot("ai-agent-tools");
  await row("temperature").getByRole("button", { name: "Remove" }).click();
  await editor.done();
  assert.deepEqual(await editor.value("rf07-agent", "fallbackModels"), ["spare2", "spare1"]);
  assert.deepEqual(await editor.value("rf07-agent", "tools"), ["plain"]);
  assert.equal(await editor.value("rf07-agent", "model"), "");

  await editor.open("rf07-agent");
  await tray.getByRole("tab", { name: "Tools" }).click();
  await tray.getByRole("tabpanel").getByRole("combobox", { name: "Add …" }).selectOption({ label: "temperature" });
  await editor.done();
  assert.deepEqual(await editor.value("rf07-agent", "tools"), ["plain", "rf07-weather"]);

  // It needs no tools.
  await editor.page.evaluate(() => {
    const agent = RED.nodes.node("rf07-agent");
    agent.tools = [];
    RED.nodes.getNodeLinks(agent, 1).filter(({ source }) => source.type.includes("tool")).forEach((link) => RED.nodes.removeLink(link));
    RED.nodes.dirty(true);
    RED.editor.validateNode(agent);
  });
  assert.deepEqual(await editor.value("rf07-agent", "validationErrors") ?? [], []);
  await editor.openById("rf07-agent");
  await tray.getByRole("tab", { name: "Tools" }).click();
  await editor.waitForText(tray.getByRole("tabpanel"), /also works without tools/);
  await editor.done();
  await editor.deploy();
  assert.equal(await editor.value("rf07-agent", "valid"), true);
}

export async function parallelCalls(fixture, t) {
  const editor = await fixture.deployAndOpen(t, flow(fixture));
  await editor.press("rf07-ask");
  await editor.page.evaluate(() => RED.sidebar.show("debug"));
  const answer = "It is 4 degrees in Oslo, and three nights cost 269.70.";
  await editor.page.locator(".red-ui-debug-msg", { hasText: answer }).first().waitFor();
  const tray = await editor.open("rf07-agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  const step = tray.locator(".redflow-step").first();
  await editor.waitForText(step, /temperature, calculator/);
  await editor.waitForText(step, /Tool calls: 2/);
  const calls = step.locator(".redflow-calls > *");
  await editor.waitForText(calls.nth(0), /temperature returned/);
  await editor.waitForText(calls.nth(1), /calculator returned/);
  const [first, second] = [await calls.nth(0).boundingBox(), await calls.nth(1).boundingBox()];
  assert.ok(first.y === second.y && first.x < second.x, "the calls stand side by side");
  // The texts and the tokens need no debug; the scripted model gives no tokens, so they are estimated.
  await editor.openText(step, "Answer of the model", /temperature\(.*Oslo.*\)\s+calculator\(/s);
  await editor.openText(calls.nth(0), "Input of the tool", "Oslo");
  await editor.openText(calls.nth(1), "Result of the tool", "269.7");
  await editor.openText(tray.getByRole("tabpanel"), "Answer of the agent", answer);
  await editor.waitForText(tray.getByRole("tabpanel"), /Tokens, estimated: \d+ read, \d+ written/);
  await editor.screenshot("ai-agent-run");
}

export async function streamedText(fixture, t) {
  const live = { ...model(fixture, "rf07-tab", 140, 100), wires: [["rf07-agent"]] };
  const editor = await fixture.deployAndOpen(t, [...withRuntime(fixture, "07-ai-agent").filter(({ id }) => id !== "rf07-model"), live]);
  const words = Array.from({ length: 2_000 }, (_, index) => `word${index}`);
  fixture.model.setAnswers(words.join(" "));
  fixture.model.holdWords();
  await editor.press("rf07-ask");
  const tray = await editor.open("rf07-agent");
  await tray.getByRole("tab", { name: "Runtime / Debug" }).click();
  const text = tray.locator(".redflow-live");
  // The text is known from the moment in which the editor shows the run.
  await eventually("the text appears word by word", async () => {
    fixture.model.releaseSome(1);
    return (await text.count()) === 1 && /word\d+ word\d+/.test(await text.innerText());
  });
  await editor.screenshot("ai-agent-live");
  fixture.model.release();
  await editor.waitForText(tray, /Answered/);
  assert.equal(await text.isVisible(), false);
}

export async function severalQuestions(fixture, t) {
  const letter = (to) => ({ name: "send_mail", arguments: { to, text: "Tea is ready." } });
  const replies = [{ toolCalls: [letter("kitchen"), letter("hall")] }, "Both know."];
  const nodes = withRuntime(fixture, "07-ai-agent").map((node) => {
    const changes = { "rf07-model": { replies, delayMs: 0 }, "rf07-agent": { tools: ["mail"] } };
    return { ...node, ...changes[node.id] };
  });
  const editor = await fixture.deployAndOpen(t, [...nodes, ...mail("rf07-tab", 140, 460)]);
  await editor.press("rf07-ask");
  const sidebar = await editor.openSidebar();
  await sidebar.getByRole("button", { name: "Waiting", exact: true }).click();
  const waiting = sidebar.getByRole("list", { name: "Runs" }).getByRole("button", { name: /Travel desk/ });
  // Until the list arrives, the sidebar shows ended runs too.
  await eventually("only one run waits", async () => (await waiting.count()) === 1);
  await waiting.click();
  const forms = sidebar.locator("form.redflow-resolve");
  await eventually("both calls ask", async () => (await forms.count()) === 2);
  await editor.waitForText(forms.nth(0), "kitchen");
  await editor.waitForText(forms.nth(1), "hall");
  await editor.screenshot("ai-agent-questions");
  const notice = editor.notices.filter({ hasText: "waits for your answer" });
  await notice.waitFor();
  const answer = (form) => form.getByRole("button", { name: "Answer and continue the run" }).click();
  // The input of one form does not change the other.
  await forms.nth(1).getByLabel("It did not happen").check();
  await forms.nth(0).getByLabel("It happened", { exact: true }).check();
  await answer(forms.nth(0));
  await eventually("one call asks", async () => (await forms.count()) === 1);
  await editor.waitForText(forms, "hall");
  assert.equal(await forms.getByLabel("It did not happen").isChecked(), true);
  await answer(forms);
  await editor.waitForText(sidebar, /Answered · iterations: 2/);
  assert.equal(await forms.count(), 0);
  // The run goes on, so its notice closes.
  await notice.waitFor({ state: "detached" });
}

/** Agents for one thing: only one of them has tools, and each result has its form. */
export async function oneThing(fixture, t) {
  const editor = await fixture.deployAndOpen(t, withRuntime(fixture, "14-agents-for-one-thing"));
  const results = {
    extract: /customer: "Mira Olsen"/,
    classify: /"order"[\s\S]*"complaint"/,
    summarise: /A worn seal stopped the pump/,
    objective: /total: 102\.6/,
  };
  await editor.page.evaluate(() => RED.sidebar.show("debug"));
  for (const [name, result] of Object.entries(results)) {
    const tray = await editor.openById(`rf14-agent-${name}`);
    const tabs = (await tray.getByRole("tab").allInnerTexts()).map((text) => text.trim());
    assert.deepEqual(tabs.filter((tab) => tab === "Tools"), name === "objective" ? ["Tools"] : [], name);
    await tray.getByRole("tab", { name: "General" }).click();
    assert.equal(await tray.locator("#node-input-model").evaluate((field) => field.selectedOptions[0]?.text), "by wire: Scripted model");
    await editor.screenshot(`one-thing-${name}`);
    await editor.done();
    await editor.press(`rf14-ask-${name}`);
    await editor.page.locator(".red-ui-debug-msg", { hasText: result }).first().waitFor();
  }
  assert.equal(await editor.page.evaluate(() => RED.nodes.dirty()), false, "opening the dialogs changes nothing");
}
