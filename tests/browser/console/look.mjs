// What people see: no barriers on any page, untrusted texts, and the pictures of the documentation.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { findBarriers, openPage } from "./page.mjs";

const PICTURES = fileURLToPath(new URL("../dist/console/", import.meta.url));
const PAGES = ["#/", "#/runs", "#/inbox", "#/flow", "#/check", "#/usage", "#/models", "#/tools", "#/settings"];

export async function barriers(t, browser, console) {
  const run = await console.ask("sums", "For axe");
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

export async function hostile(t, browser, console) {
  const text = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202Egpj.exe javascript:alert(1)';
  const run = await console.ask("sums", text);
  const { page, main, check } = await openPage(t, browser, console, { path: `#/runs/${run}` });
  await main.getByRole("treeitem").nth(2).click();
  await main.getByRole("button", { name: "Show what was said" }).click();
  await main.getByText("onerror=").first().waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.doesNotMatch(await page.evaluate(() => document.documentElement.outerHTML), /\u202E/);
  assert.equal(await main.locator("img").count(), 0);
  assert.equal(await main.locator('a[href^="javascript"]').count(), 0);
  check();
}

export async function pictures(t, browser, console) {
  const run = await console.ask("sums", "What is 6 times 7, halved?");
  const letter = await console.ask("letters", "Write to Ada");
  await console.untilStatus(letter, "waiting");
  mkdirSync(PICTURES, { recursive: true });
  const { page, main, go, check } = await openPage(t, browser, console);
  for (const [name, hash] of [["home", "#/"], ["runs", "#/runs"], ["run", `#/runs/${run}`], ["flow", "#/flow"], ["usage", "#/usage"]]) {
    await go(hash);
    if (name === "run") {
      await main.getByRole("button", { name: "Replay" }).click();
      await main.getByText(/proved equal/i).waitFor();
    }
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(PICTURES, `${name}.png`) });
  }
  check();
}
