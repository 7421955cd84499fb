// What people see: no barriers on any page, untrusted texts, and the screenshots of the documentation.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { addManuals } from "./knowledge.mjs";
import { HOSTILE } from "./large-flow.mjs";
import { checkHostile, findBarriers, openPage } from "./page.mjs";

const SCREENSHOTS = fileURLToPath(new URL("../dist/console/", import.meta.url));
const PAGES = ["#/", "#/runs", "#/inbox", "#/flow", "#/check", "#/usage", "#/models", "#/tools", "#/mcp", "#/knowledge", "#/knowledge/manuals?document=pump.md", "#/memory", "#/settings"];

export async function barriers(t, browser, console) {
  const run = await console.ask("sums", "For axe");
  await addManuals(console);
  const settings = [
    // Each language has both schemes and both widths.
    ...["en-US", "es-ES", "de-DE"].flatMap((locale) => [
      { locale, colorScheme: "light", width: 1280 },
      { locale, colorScheme: "dark", width: 360 },
    ]),
    { locale: "en-US", colorScheme: "light", width: 360 },
    { locale: "en-US", colorScheme: "dark", width: 1280 },
  ];
  const find = async ({ locale, colorScheme, width }) => {
    const found = [];
    const { page, go, check } = await openPage(t, browser, console, { locale, colorScheme, viewport: { width, height: 800 } });
    for (const hash of [...PAGES, `#/runs/${run}`]) {
      await go(hash);
      await page.waitForTimeout(150);
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
      const lines = [...(await findBarriers(page)), ...(isWide ? ["wider than the window"] : [])];
      found.push(...lines.map((line) => `${hash} ${locale} ${colorScheme} ${width}: ${line}`));
    }
    check();
    return found;
  };
  const found = (await Promise.all(settings.map(find))).flat();
  assert.deepEqual(found, []);
}

/** Hostile texts of a person, a model and a tool, hostile names and descriptions in the flow, and hostile errors. */
export async function hostile(t, browser, console) {
  const [run, failed] = [await console.ask("hostile", `Question ${HOSTILE}`), await console.ask("broken", HOSTILE)];
  const { page, main, go, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  const checkPage = (place) => checkHostile(page, place);
  const contains = (text) => main.getByText(text).filter({ visible: true }).first().waitFor();
  // The name of the agent, the question, the answer of the model, the tool's input and its error.
  await main.getByRole("heading", { level: 1, name: "<img src=x" }).waitFor();
  await go(`#/runs/${run}?step=1`);
  await main.getByRole("button", { name: "Show what was said" }).click();
  await contains("Question <img src=x onerror=");
  await main.getByRole("region", { name: "Input of the tool" }).getByText("onerror=").waitFor();
  await main.getByRole("region", { name: "Answer of the model" }).getByText("onerror=").waitFor();
  await main.getByRole("article", { name: "Call of calculator" }).getByRole("region", { name: "Why the call failed" }).waitFor();
  await checkPage("steps");
  for (const tab of ["Result", "Journal", "Plan"]) {
    await main.getByRole("tab", { name: tab }).click();
    await page.evaluate(() => document.querySelectorAll("main details").forEach((box) => (box.open = true)));
    await contains("onerror=");
    await checkPage(tab);
  }
  // A refused answer.
  await go(`#/runs/${failed}?tab=result`);
  await main.getByText(failed).first().waitFor();
  await main.getByRole("button", { name: "Show what was said" }).click();
  await contains("Refused <img");
  await checkPage("a failed run");
  // Lists, labels of the flow and its nodes, and descriptions of tools.
  for (const [place, text] of [["#/", "<img"], ["#/runs?agent=hostile", "<img"], ["#/tools", "onerror="], ["#/usage", "<img"]]) {
    await go(place);
    await contains(text);
    await checkPage(place);
  }
  await go("#/flow/desk?node=post");
  await main.locator("svg text", { hasText: "<img" }).first().waitFor();
  assert.match(await main.getByLabel("Tab").locator("option").first().textContent(), /Desk <img .*⟨202E⟩/);
  await checkPage("#/flow");
  check();
}

export async function screenshots(t, browser, console) {
  const run = await console.ask("sums", "What is 6 times 7, halved?");
  const letter = await console.ask("letters", "Write to Ada");
  await console.untilStatus(letter, "waiting");
  await addManuals(console);
  mkdirSync(SCREENSHOTS, { recursive: true });
  const { page, main, go, check } = await openPage(t, browser, console);
  for (const [name, hash] of [["home", "#/"], ["runs", "#/runs"], ["run", `#/runs/${run}`], ["flow", "#/flow"], ["usage", "#/usage"], ["knowledge", "#/knowledge/manuals"]]) {
    await go(hash);
    if (name === "run") {
      await main.getByRole("button", { name: "Replay" }).click();
      await main.getByText(/proved equal/i).waitFor();
    }
    if (name === "knowledge") {
      await main.getByLabel("Question or words").fill("which button do I press to reset the pump?");
      await main.getByRole("button", { name: "Search" }).click();
      await main.locator(".hits li").first().waitFor();
    }
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
  }
  check();
}
