// Cost and structure without the words: folded until asked, hidden on a shared screen, and absent from reports.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { eventually } from "../kit/wait.mjs";
import { KEY } from "./large-flow.mjs";
import { openPage } from "./page.mjs";

const QUESTION = "The patient has a broken heart";
/** What only the words of a run contain: of the person, of a tool's input, and of the model. */
const WORDS = [QUESTION, "6 * 7", "It is 21."];

export async function folded(t, browser, console) {
  const run = await console.ask("sums", QUESTION);
  const { page, main, go, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  const checkWords = async (place) => {
    const text = await main.innerText();
    assert.deepEqual(WORDS.filter((word) => text.includes(word)), [], place);
  };
  await main.getByRole("treeitem", { name: /calculator/ }).first().click();
  await main.getByRole("button", { name: "Show what was said" }).waitFor();
  // Structure and cost are there, words are not.
  await main.getByRole("treeitem", { name: /Model gives its answer/ }).waitFor();
  await main.locator(".facts").first().getByText("Tokens").waitFor();
  await checkWords("steps");
  await main.getByRole("tab", { name: "Result" }).click();
  await main.getByRole("button", { name: "Show what was said" }).waitFor();
  await checkWords("result");
  await main.getByRole("tab", { name: "Journal" }).click();
  await main.locator("ol.journal summary strong", { hasText: /^fact / }).first().waitFor();
  await main.locator("ol.journal summary").nth(2).click();
  await checkWords("journal");
  // Asked once, all of this run is shown.
  await main.getByRole("button", { name: "Show what was said" }).click();
  await main.getByText(QUESTION).first().waitFor();
  await main.getByRole("tab", { name: "Result" }).click();
  await main.getByText("It is 21.").first().waitFor();
  await main.getByRole("tab", { name: "Steps" }).click();
  await main.getByRole("treeitem", { name: /Tool calculator/ }).first().click();
  await main.getByText("6 * 7").first().waitFor();
  // Another run is folded again.
  const other = await console.ask("sums", QUESTION);
  await page.evaluate((id) => (location.hash = `#/runs/${id}`), other);
  await main.getByText(other).first().waitFor();
  await main.getByRole("button", { name: "Show what was said" }).waitFor();
  await checkWords("another run");
  await go("#/");
  check();
}

export async function shade(t, browser, console) {
  const run = await console.ask("sums", QUESTION);
  const failed = await console.ask("prose", QUESTION);
  const letter = await console.ask("letters", QUESTION);
  await console.untilStatus(letter, "waiting");
  await console.addDocument("private", "patient.md", `# ${QUESTION}\n\n## ${QUESTION}\n\n${QUESTION}.\n`);
  const words = [...WORDS, "Dear Ada", "I post it.", "I will not answer in JSON", "You write letters."];
  const { page, main, go, check } = await openPage(t, browser, console, { path: `#/runs/${run}?step=1` });
  await main.getByRole("button", { name: "Show what was said" }).click();
  await main.getByText(QUESTION).first().waitFor();
  await main.getByRole("heading", { level: 1 }).click();
  await page.keyboard.press("h");
  await eventually("the words are hidden", async () => !(await main.innerText()).includes(QUESTION));
  await page.getByText("Hidden. Press h to show all words.").first().waitFor();
  const checkWords = async (place) => {
    const text = await page.evaluate(() => document.body.innerText + [...document.querySelectorAll("textarea, input")].map((field) => field.value).join(" "));
    assert.deepEqual(words.filter((word) => text.includes(word)), [], place);
  };
  const places = [
    ...["#/", "#/runs", "#/inbox", "#/flow?node=letters", "#/usage", "#/models", "#/tools", "#/mcp", "#/settings", "#/check", "#/memory", "#/knowledge", "#/knowledge/private?document=patient.md"],
    ...[run, failed, letter].flatMap((id) => [`#/runs/${id}`, `#/runs/${id}?tab=result`, `#/runs/${id}?tab=journal`, `#/runs/${id}?tab=plan`]),
  ];
  for (const place of places) {
    await go(place);
    await page.getByRole("status").getByText("Reading…").first().waitFor({ state: "detached" });
    // All that can be opened is opened.
    await page.evaluate(() => document.querySelectorAll("main details").forEach((box) => (box.open = true)));
    const unfold = main.getByRole("button", { name: "Show what was said" });
    if (await unfold.isVisible()) {
      await unfold.click();
    }
    await page.waitForTimeout(150);
    await checkWords(place);
  }
  // What a search finds is hidden, and so is what was searched for.
  await go("#/knowledge/private");
  await main.getByLabel("Question or words").fill(QUESTION);
  await page.keyboard.press("Enter");
  await main.locator(".hits").getByText("Hidden. Press h to show all words.").first().waitFor();
  await checkWords("a search");
  // The question can be asked again, and stays hidden.
  await go(`#/runs/${run}?step=1`);
  await main.getByRole("button", { name: "Ask again" }).click();
  await page.getByRole("dialog").getByText("Hidden. Press h to show all words.").waitFor();
  assert.equal(await page.getByRole("dialog").getByRole("textbox").count(), 0);
  await page.keyboard.press("Escape");
  // It lasts, until the same key shows the words again.
  await page.reload();
  await main.getByRole("heading", { level: 1, name: "Sums" }).waitFor();
  await main.getByRole("button", { name: "Show what was said" }).click();
  await main.getByText("Hidden. Press h to show all words.").first().waitFor();
  await page.keyboard.press("h");
  await main.getByText(QUESTION).first().waitFor();
  check();
}

export async function report(t, browser, console) {
  console.model.setAnswers(`The key is ${KEY}.`);
  const said = ["Never repeat this", "The key is"];
  const run = await console.ask("book", `Never repeat this: ${KEY}`);
  const { page, main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  const link = main.getByRole("link", { name: "Report", exact: true });
  assert.equal(await link.getAttribute("title"), "The report is redacted and cannot be replayed.");
  const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
  assert.equal(download.suggestedFilename(), `${run}.md`);
  const text = readFileSync(await download.path(), "utf8");
  assert.match(text, /It cannot be replayed: only the\njournal proves a run\./);
  assert.ok(text.includes(run) && text.includes("model_answered") && text.includes("`Book` `book`"), text);
  assert.deepEqual([...said, KEY].filter((word) => text.includes(word)), []);
  check();
}
