// Knowledge bases: an empty sidecar, files that are added, a search with its reasons, passages, and removal.

import assert from "node:assert/strict";

import { HOSTILE } from "./large-flow.mjs";
import { openByKeyboard } from "./keys.mjs";
import { checkHostile, findBarriers, openPage } from "./page.mjs";

const PUMP = "# Pump\n\nThe pump needs oil once a month.\n\n## Reset\n\nPress the red button for five seconds.\n";

/** Makes the knowledge base `manuals`, unless it is there. */
export async function addManuals(console) {
  await console.addDocument("manuals", "pump.md", PUMP);
  await console.addDocument("manuals", "parts.csv", "part,price\nvalve,12\nseal,3\n");
}

const file = (name, text) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });
const rowOf = (main, name) => main.locator(".newest li", { hasText: name });

export async function empty(t, browser, console) {
  const { page, main, go, check } = await openPage(t, browser, console);
  await page.getByRole("navigation").getByRole("link", { name: "Knowledge" }).click();
  await main.getByText("There are no knowledge bases yet.").waitFor();
  await main.getByText("redflow kb add NAME PATH").waitFor();
  await main.getByRole("form", { name: "Add documents" }).waitFor();
  await go("#/knowledge/none");
  await main.getByText("There is no knowledge base with this name.").waitFor();
  check();
}

export async function documents(t, browser, console) {
  const { page, main, check } = await openPage(t, browser, console, { path: "#/knowledge" });
  const choose = main.getByRole("button", { name: "Choose files" });
  await main.getByLabel("Name of the knowledge base").fill("uploads");
  await main.getByLabel("Tags, with commas between them").fill("pumps, line 1");
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), choose.click()]);
  assert.ok(chooser.isMultiple());
  await chooser.setFiles([
    file("pump.md", PUMP),
    file("note.txt", "The valve is closed by hand."),
    file("page.html", "<h1>Filter</h1><p>Clean the filter with water.</p><script>var secret</script>"),
    file("broken.pdf", "%PDF-1.4\nThis is no PDF."),
    file("music.mp3", "ID3"),
  ]);
  await rowOf(main, "pump.md").getByText("Passages: 2").waitFor();
  await rowOf(main, "note.txt").getByText("added", { exact: true }).waitFor();
  await rowOf(main, "page.html").getByText("added", { exact: true }).waitFor();
  await rowOf(main, "broken.pdf").getByText("DOCUMENT_UNREADABLE").waitFor();
  await rowOf(main, "broken.pdf").getByText("How to fix it").click();
  await rowOf(main, "broken.pdf").locator(".advice").waitFor();
  await rowOf(main, "music.mp3").getByText("not added").waitFor();
  const row = main.getByRole("row").filter({ hasText: "uploads" });
  assert.deepEqual((await row.locator("th, td").allInnerTexts()).slice(1), ["3", "4", "hash", "words only"]);
  await row.getByRole("link").click();
  // The same bytes again change nothing.
  await main.getByLabel("Tags, with commas between them").fill("pumps,line 1");
  await main.locator("input[type=file]").setInputFiles(file("pump.md", PUMP));
  await rowOf(main, "pump.md").getByText("unchanged").waitFor();
  await main.getByRole("row").filter({ hasText: "pump.md" }).getByText("pumps, line 1").waitFor();
  // The search says why, as the sidecar does.
  await main.getByLabel("Question or words").fill("which button do I press to reset the pump?");
  await main.getByLabel("Compare").selectOption("by both");
  await main.getByRole("button", { name: "Search" }).click();
  const first = main.locator(".hits li").first();
  await first.getByText("Press the red button for five seconds.").waitFor();
  const answer = await console.request("POST", "/api/kb/uploads/search", { text: "which button do I press to reset the pump?", mode: "hybrid" });
  const [{ score, reason }] = answer.json.results;
  const facts = Object.fromEntries(await first.locator(".fact").evaluateAll((all) => all.map((one) => [...one.children].map(({ textContent }) => textContent))));
  const { Added: age, ...numbers } = facts;
  assert.deepEqual(numbers, { Score: score.toFixed(2), "Rank by vector": `${reason.vectorRank}`, Cosine: reason.cosine.toFixed(2), "Rank by words": `${reason.textRank}` });
  assert.match(age, /ago|now/);
  assert.match(await first.locator("h3").innerText(), /^1\. Pump Pump › Reset$/);
  assert.deepEqual(await findBarriers(page), []);
  await main.getByLabel("Compare").selectOption("by words");
  await main.getByLabel("Question or words").fill("zebra");
  await main.getByRole("button", { name: "Search" }).click();
  await main.getByText("Nothing was found.").waitFor();
  // A document, its passages, and its end.
  await main.getByRole("link", { name: "Filter" }).click();
  const sheet = main.locator("aside");
  await sheet.getByText("Clean the filter with water.").waitFor();
  assert.ok(!(await sheet.innerText()).includes("secret"), "scripts are left out");
  await sheet.getByRole("button", { name: "Remove the document" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Agents no longer find its passages.").waitFor();
  assert.deepEqual(await findBarriers(page), []);
  await dialog.getByRole("button", { name: "Remove" }).click();
  await sheet.waitFor({ state: "detached" });
  await main.getByRole("link", { name: "Filter" }).waitFor({ state: "detached" });
  assert.deepEqual((await console.request("GET", "/api/kb/uploads/documents")).json.documents.map(({ name }) => name), ["note.txt", "pump.md"]);
  await main.getByRole("button", { name: "Remove the knowledge base" }).click();
  await dialog.getByText("All its documents are removed: 2.").waitFor();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await main.getByRole("heading", { level: 1, name: "Knowledge" }).waitFor();
  assert.ok((await console.request("GET", "/api/kb")).json.knowledgeBases.every(({ name }) => name !== "uploads"));
  check();
}

/** Names, titles, headings and texts of documents stay text. */
export async function hostile(t, browser, console) {
  const remove = () => console.request("DELETE", "/api/kb/hostile");
  t.after(remove);
  await console.addDocument("hostile", `${HOSTILE}.md`, `# Title ${HOSTILE}\n\n## Heading ${HOSTILE}\n\nText ${HOSTILE}\n`, HOSTILE.slice(0, 40));
  const { page, main, check } = await openPage(t, browser, console, { path: "#/knowledge/hostile" });
  await main.locator("tbody a").getByText("<img src=x onerror=").click();
  await main.locator("aside").getByText("Text <img src=x onerror=").first().waitFor();
  await main.getByLabel("Question or words").fill(`text ${HOSTILE}`);
  await page.keyboard.press("Enter");
  await main.locator(".hits").getByText("Text <img src=x onerror=").first().waitFor();
  await checkHostile(page, "#/knowledge");
  check();
}

export async function byKeyboard(t, browser, console) {
  await addManuals(console);
  const { page, main, tabTo, activate, press, type, holdsFocus, isFocused, check } = await openByKeyboard(t, browser, console);
  await press("g");
  await press("k");
  await main.locator("[data-entry]").first().waitFor();
  await isFocused(main);
  await press("j");
  await isFocused(main.locator("[data-entry]").first());
  await press("g");
  await press("k");
  await activate(main.getByRole("link", { name: "manuals", exact: true }));
  await main.getByRole("heading", { level: 1, name: "manuals" }).waitFor();
  await main.locator("tbody [data-entry]").first().waitFor();
  await press("/");
  await isFocused(main.getByLabel("Question or words"));
  await type("red button");
  await press("Enter");
  const hit = main.locator(".hits [data-entry]").first();
  await hit.waitFor();
  await press("Escape");
  await press("j");
  await isFocused(hit);
  await press("Enter");
  await main.locator("aside").getByText("Press the red button").waitFor();
  await holdsFocus("aside");
  await press("Escape");
  await main.locator("aside").waitFor({ state: "detached" });
  await isFocused(hit);
  const opened = page.waitForEvent("filechooser");
  await tabTo(main.getByLabel("Tags, with commas between them"));
  await activate(main.getByRole("button", { name: "Choose files" }));
  await (await opened).setFiles(file("by-keyboard.txt", "Typed, not clicked."));
  await activate(rowOf(main, "by-keyboard.txt").getByRole("link"));
  const remove = main.getByRole("button", { name: "Remove the document" });
  await activate(remove);
  await holdsFocus("dialog");
  await press("Escape");
  await isFocused(remove);
  await press("Enter");
  await activate(page.getByRole("dialog").getByRole("button", { name: "Remove" }));
  await main.locator("aside").waitFor({ state: "detached" });
  await holdsFocus("main");
  await check();
}
