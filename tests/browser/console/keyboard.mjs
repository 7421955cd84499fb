// Every action of every page by keyboard alone.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

import { eventually } from "../kit/wait.mjs";
import { nodes } from "./flow.mjs";
import { openByKeyboard } from "./keys.mjs";

/** The file that a key press downloads. */
async function download(page, press) {
  const [file] = await Promise.all([page.waitForEvent("download"), press()]);
  return { name: file.suggestedFilename(), text: await readFile(await file.path(), "utf8") };
}

const menuLink = (page, name) => page.getByRole("navigation").getByRole("link", { name, exact: true });

const clipboard = (page) => page.evaluate(() => navigator.clipboard.readText());

export async function lists(t, browser, console) {
  const waiting = await console.ask("letters", "By keyboard");
  await console.untilStatus(waiting, "waiting");
  await console.ask("prose", "Fails");
  const { page, main, tabTo, activate, press, type, holdsFocus, isFocused, check } = await openByKeyboard(t, browser, console);
  // Home: ask an agent.
  const agent = main.locator("li.card", { has: page.locator("summary", { hasText: "Sums" }) });
  await activate(agent.locator("summary").first());
  await tabTo(agent.getByLabel("A message to Sums"));
  await type("Asked by keyboard");
  await activate(agent.getByRole("button", { name: "Ask" }));
  await main.getByRole("heading", { level: 1, name: "Sums" }).waitFor();
  await isFocused(main);
  // Runs: the filter, and its shortcuts.
  await press("g");
  await press("r");
  await isFocused(main);
  await main.getByRole("link", { name: "Letters" }).first().waitFor();
  await press("/");
  await isFocused(main.getByLabel("Beginning of the run id"));
  await type(waiting);
  await press("Enter");
  await eventually("one run is shown", async () => (await main.locator("[data-entry]").count()) === 1);
  await press("Escape");
  await holdsFocus();
  await press("j");
  await isFocused(main.getByRole("link", { name: "Letters" }));
  await press("Enter");
  await page.waitForURL(`**/*#/runs/${waiting}`);
  await isFocused(main);
  await page.goBack();
  await main.locator("[data-entry]").first().waitFor();
  await page.evaluate(() => (location.hash = "#/runs"));
  await eventually("all runs are shown", async () => (await main.locator("[data-entry]").count()) > 2);
  await press("j");
  await press("j");
  await isFocused(main.locator("[data-entry]").nth(1));
  await press("k");
  await isFocused(main.locator("[data-entry]").nth(0));
  for (const [key, name] of [["4", "Failed"], ["2", "In flight"], ["1", "All"], ["3", "Waiting"]]) {
    await press(key);
    await main.getByRole("button", { name, exact: true, pressed: true }).waitFor();
  }
  // Bulk cancel: the dialog keeps the focus and gives it back.
  await main.getByRole("link", { name: "Letters" }).first().waitFor();
  const cancel = main.getByRole("button", { name: "Cancel what is filtered" });
  await activate(cancel);
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: /Yes, end/ }).waitFor();
  await holdsFocus("dialog");
  await press("Escape");
  await isFocused(cancel);
  await press("Enter");
  await activate(dialog.getByRole("button", { name: /Yes, end/ }));
  await console.untilStatus(waiting, "failed");
  await dialog.waitFor({ state: "detached" });
  await main.getByText("No run matches the filter.").waitFor();
  await holdsFocus();
  // Help.
  await press("?");
  await dialog.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  await press("Escape");
  await dialog.waitFor({ state: "detached" });
  await holdsFocus();
  await check();
}

export async function sheets(t, browser, console) {
  const start = () => console.request("POST", "/api/runs", { node: "prose", payload: "One of many" });
  for (const { json } of await Promise.all(Array.from({ length: 30 }, start))) {
    await console.untilStatus(json.runs[0].runId, "failed");
  }
  const { page, main, tabTo, activate, press, holdsFocus, isFocused, check } = await openByKeyboard(t, browser, console, {
    ...{ path: "#/runs", viewport: { width: 360, height: 400 } },
  });
  // A row that is scrolled out of sight keeps the focus, and the list stays where it is.
  const rows = main.getByRole("table", { name: "Runs" });
  await rows.getByRole("link").first().waitFor();
  await press("j");
  const link = rows.locator("[data-entry]:focus");
  const href = await link.getAttribute("href");
  const scrolled = () => rows.evaluate(({ scrollTop }) => scrollTop);
  await eventually("the list is scrolled", async () => {
    await press("PageDown");
    return (await scrolled()) > 700;
  });
  await page.waitForTimeout(200);
  assert.equal(await link.getAttribute("href"), href);
  assert.ok((await scrolled()) > 600, "the list stays");
  // The menu closes, also if the chosen page is the current one.
  for (const name of ["Runs", "Home"]) {
    await activate(page.getByRole("button", { name: "Menu" }));
    await activate(menuLink(page, name));
    await isFocused(main);
    assert.ok(!(await menuLink(page, name).isVisible()), "the menu is closed");
  }
  // The step is a sheet.
  const id = await console.ask("sums", "On a phone");
  await page.evaluate((id) => (location.hash = `#/runs/${id}`), id);
  const tree = main.getByRole("tree");
  const sheet = main.locator("aside");
  await tabTo(tree);
  for (const close of [() => press("Escape"), () => activate(sheet.getByRole("button", { name: "Close" }))]) {
    await press("ArrowUp");
    await sheet.getByRole("heading", { level: 2 }).waitFor();
    await close();
    await sheet.waitFor({ state: "hidden" });
    await holdsFocus("main [role=tree]");
  }
  await check();
}

export async function run(t, browser, console) {
  const id = await console.ask("sums", "Steps by keyboard");
  const { page, main, tabTo, activate, press, holdsFocus, isFocused, check } = await openByKeyboard(t, browser, console, { path: `#/runs/${id}` });
  const tree = main.getByRole("tree");
  const chosen = (name) => tree.getByRole("treeitem", { name, selected: true }).waitFor();
  await tabTo(tree);
  await press("Home");
  await chosen(/Run|Sums|answer/i);
  const all = await tree.getByRole("treeitem").count();
  await press("ArrowDown");
  await chosen(/1/);
  await press("ArrowLeft");
  await eventually("the iteration is folded", async () => (await tree.getByRole("treeitem").count()) < all);
  await press("ArrowRight");
  await eventually("the iteration is unfolded", async () => (await tree.getByRole("treeitem").count()) === all);
  // Two keys before the next paint: the second sees what the first chose.
  await page.evaluate(async () => {
    const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
    key("End");
    for (let turn = 0; turn < 10; turn += 1) {
      await Promise.resolve();
    }
    key("[");
  });
  await isFocused(tree);
  await main.getByRole("heading", { name: "Iteration 2" }).waitFor();
  await press("]");
  await main.getByRole("heading", { name: "Iteration 3" }).waitFor();
  await isFocused(tree);
  await activate(main.getByRole("button", { name: "Show what was said" }));
  await main.getByText("It is 21.").first().waitFor();
  await holdsFocus("aside");
  const replay = main.getByRole("button", { name: "Replay" });
  await activate(replay);
  await main.getByText(/proved equal/i).waitFor();
  await isFocused(replay);
  const tab = (name) => main.getByRole("tab", { name, exact: true });
  await tabTo(tab("Steps"));
  for (const name of ["Result", "Journal", "Plan"]) {
    await press("ArrowRight");
    await isFocused(tab(name));
    assert.equal(await tab(name).getAttribute("aria-selected"), "true");
  }
  await activate(main.locator("details summary").first());
  await main.locator("details[open] pre").first().waitFor();
  await activate(main.getByRole("button", { name: "Copy the link" }));
  await eventually("the link is copied", async () => (await clipboard(page)).includes(id));
  await tabTo(main.getByRole("link", { name: "Journal" }));
  const journal = await download(page, () => press("Enter"));
  assert.match(journal.text, /Steps by keyboard/);
  await tabTo(main.getByRole("link", { name: "Report" }));
  const report = await download(page, () => press("Enter"));
  assert.equal(report.name, `${id}.md`);
  // Ask again: the new run is the page, and has the focus.
  const again = main.getByRole("button", { name: "Ask again" });
  await activate(again);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/A message to/).waitFor();
  await holdsFocus("dialog");
  await press("Escape");
  await isFocused(again);
  await press("Enter");
  await activate(dialog.getByRole("button", { name: "Ask", exact: true }));
  await dialog.waitFor({ state: "detached" });
  await main.getByRole("heading", { level: 1, name: "Sums" }).waitFor();
  assert.ok(!page.url().includes(id), page.url());
  await isFocused(main);
  await check();
}

export async function waits(t, browser, console) {
  const [first, second, third] = [await console.ask("letters", "One"), await console.ask("letters", "Two"), await console.ask("letters", "Three")];
  for (const id of [first, second, third]) {
    await console.untilStatus(id, "waiting");
  }
  const { page, main, tabTo, activate, press, type, holdsFocus, check } = await openByKeyboard(t, browser, console, { path: `#/runs/${first}` });
  const answer = async (form) => {
    await tabTo(form.getByRole("radio").first());
    await press("ArrowDown");
    await form.getByRole("radio", { checked: true }).waitFor();
    await tabTo(form.getByRole("textbox"));
    await type("The post office is closed.");
    await activate(form.getByRole("button").last());
  };
  // On the page of the run.
  await answer(main.locator("form.redflow-resolve"));
  await console.untilStatus(first, "completed");
  await main.locator("form.redflow-resolve").waitFor({ state: "detached" });
  await holdsFocus();
  // In the inbox: the focus goes on to what still waits.
  await press("g");
  await press("i");
  const card = main.locator("li.card", { has: page.locator(`a[href*="${second}"]`) });
  await card.waitFor();
  await answer(card.locator("form").first());
  await console.untilStatus(second, "completed");
  await card.waitFor({ state: "detached" });
  await holdsFocus("main ul.inbox");
  // Cancel: the button is gone, its neighbour has the focus.
  await page.evaluate((id) => (location.hash = `#/runs/${id}`), third);
  await activate(main.getByRole("button", { name: "Cancel this run" }));
  const dialog = page.getByRole("dialog");
  await activate(dialog.getByRole("button", { name: "Yes, end it" }));
  await console.untilStatus(third, "failed");
  await dialog.waitFor({ state: "detached" });
  await main.getByRole("button", { name: "Cancel this run" }).waitFor({ state: "detached" });
  await holdsFocus("main .buttons");
  await check();
}

export async function flow(t, browser, console) {
  const { page, main, tabTo, activate, press, type, holdsFocus, isFocused, check } = await openByKeyboard(t, browser, console);
  await press("g");
  await press("f");
  const node = main.getByRole("button", { name: /^Agent, Sums/ });
  const larger = main.getByRole("button", { name: "Larger" });
  await activate(larger);
  await press("Enter");
  await press("Enter");
  assert.ok(await larger.isDisabled(), "it is as large as can be");
  await holdsFocus("main [role=toolbar]");
  const list = main.getByRole("button", { name: "List" });
  await activate(list);
  await main.getByRole("table", { name: "List" }).waitFor();
  await press(" ");
  await activate(node);
  // The panel has the focus; closed, the node has it again.
  await holdsFocus("aside");
  await press("Escape");
  await main.locator("aside").waitFor({ state: "detached" });
  await isFocused(node);
  await press("Enter");
  await tabTo(main.getByLabel("A message to Sums"));
  await type("Asked in the flow");
  await activate(main.getByRole("button", { name: "Ask" }));
  await main.getByRole("heading", { level: 1, name: "Sums" }).waitFor();
  await isFocused(main);
  // Check: paste, both profiles, the report, a file.
  await activate(menuLink(page, "Check"));
  await isFocused(main);
  await press("/");
  await isFocused(main.getByLabel("The flow as JSON"));
  await type(JSON.stringify(nodes("http://127.0.0.1:9")));
  await activate(main.getByRole("button", { name: "Check the flow" }));
  await tabTo(main.getByRole("tab", { name: /Strict/ }));
  await press("ArrowRight");
  await isFocused(main.getByRole("tab", { name: /Redflow UI/ }));
  const copy = main.getByRole("button", { name: "Copy the report" });
  await activate(copy);
  await eventually("the report is copied", async () => (await clipboard(page)).startsWith("profile redflow"));
  await isFocused(copy);
  const opened = page.waitForEvent("filechooser");
  await activate(main.getByLabel("Choose a file"), " ");
  const chooser = await opened;
  await chooser.setFiles({ name: "flow.json", mimeType: "application/json", buffer: Buffer.from("[]") });
  await main.getByText("No errors.").waitFor();
  await check();
}

export async function rest(t, browser, console) {
  await console.ask("sums", "For the sums");
  const { page, main, tabTo, activate, press, type, holdsFocus, isFocused, check } = await openByKeyboard(t, browser, console, { path: "#/usage" });
  // Usage.
  await tabTo(main.getByLabel("Grouped by"));
  await press("ArrowDown");
  await page.waitForURL(/by=model/);
  await activate(main.getByRole("button", { name: /^Table/ }).first());
  await main.getByRole("table").first().waitFor();
  await tabTo(main.getByRole("button", { name: "Download as CSV" }));
  const csv = await download(page, () => press("Enter"));
  assert.match(csv.name, /^redflow-model-.*\.csv$/);
  // Models.
  await activate(menuLink(page, "Models"));
  const card = main.getByRole("article").first();
  const test = card.getByRole("button");
  await activate(test);
  await card.getByRole("status").getByText(/./).first().waitFor();
  await isFocused(test);
  // Tools.
  await activate(menuLink(page, "Tools"));
  await main.locator("[data-entry]").first().waitFor();
  await press("/");
  await type("calcul");
  const tool = main.locator("[data-entry]", { hasText: /calculator/i }).first();
  await eventually("only the calculator is left", async () => (await main.locator("[data-entry]").count()) === (await main.locator("[data-entry]", { hasText: /calculator/i }).count()));
  await press("Escape");
  await press("j");
  await isFocused(tool);
  await press("Enter");
  await main.locator("aside").getByRole("heading", { level: 2 }).waitFor();
  await holdsFocus("aside");
  await press("Escape");
  await main.locator("aside").waitFor({ state: "detached" });
  await isFocused(tool);
  await check();
}

export async function settings(t, browser, console) {
  const { page, main, tabTo, activate, press, type, holdsFocus, isFocused, check } = await openByKeyboard(t, browser, console, { path: "#/settings" });
  await tabTo(main.getByLabel("Language"));
  await press("ArrowDown");
  await main.getByRole("heading", { level: 1, name: "Ajustes" }).waitFor();
  await press("ArrowUp");
  await main.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await tabTo(main.getByLabel("Colours"));
  await press("End");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  // Letters off: none does anything, on any page. Keys that are no letters still work.
  const letters = main.getByLabel("Single letters are keyboard shortcuts");
  await activate(letters, " ");
  const state = () => page.evaluate(() => [location.href, localStorage.getItem("redflow.shade"), document.querySelector("dialog") !== null, document.activeElement?.outerHTML.slice(0, 80)]);
  for (const name of ["Runs", "Tools"]) {
    await activate(menuLink(page, name));
    await main.locator("[data-entry]").first().waitFor();
    await isFocused(main);
    const before = await state();
    for (const key of ["?", "/", "j", "k", "h", "[", "]", "1", "2", "3", "4", "g", "r", "g", "i"]) {
      await press(key);
      assert.deepEqual(await state(), before, `${key} does nothing on ${name}`);
    }
  }
  await activate(main.locator("[data-entry]").first());
  await holdsFocus("aside");
  await press("Escape");
  await main.locator("aside").waitFor({ state: "detached" });
  await activate(menuLink(page, "Settings"));
  await activate(letters, " ");
  await press("h");
  await eventually("h hides the words again", () => page.evaluate(() => localStorage.getItem("redflow.shade") === "on"));
  await press("h");
  // A token: made, shown once, removed.
  await tabTo(main.getByRole("form", { name: "Make a token" }).getByLabel("Name"));
  await type("by-keyboard");
  await press("Tab");
  await press("ArrowDown");
  await activate(main.getByRole("button", { name: "Make a token" }));
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "The token by-keyboard" }).waitFor();
  await holdsFocus("dialog");
  await activate(dialog.getByRole("button", { name: "Copy" }));
  await eventually("the token is copied", async () => (await console.request("GET", "/api/session", undefined, await clipboard(page))).json?.scopes?.includes("run"));
  await press("Escape");
  await dialog.waitFor({ state: "detached" });
  await holdsFocus();
  const remove = main.getByRole("button", { name: "Remove the token by-keyboard" });
  await activate(remove);
  await holdsFocus("dialog");
  await press("Escape");
  await isFocused(remove);
  await press("Enter");
  await activate(dialog.getByRole("button", { name: "Remove" }));
  await remove.waitFor({ state: "detached" });
  await holdsFocus("main table, main section");
  const letIn = main.getByRole("button", { name: "Let a browser in" });
  await activate(letIn);
  await dialog.getByText(/sign-in\?code=/).waitFor();
  await holdsFocus("dialog");
  await press("Escape");
  await isFocused(letIn);
  // Out and in again: the page is where it was.
  await activate(main.getByRole("button", { name: "Sign out" }));
  await isFocused(page.getByLabel("Token"));
  await type("wrong");
  await press("Enter");
  await page.getByRole("alert").waitFor();
  await isFocused(page.getByLabel("Token"));
  await press("Control+a");
  await type(console.token);
  await press("Enter");
  await main.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await isFocused(main);
  await check();
}
