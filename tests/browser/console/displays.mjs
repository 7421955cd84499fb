// Displays with forced colours, and users who want less motion.

import assert from "node:assert/strict";

import { assertReadable, measureContrasts } from "../kit/contrast.mjs";
import { addManuals } from "./knowledge.mjs";
import { openPage } from "./page.mjs";

/** The nodes of a drawing whose text cannot be told from its box. */
function faintNodes() {
  const luminance = (colour) => {
    const [r, g, b] = colour.match(/[\d.]+/g).map((part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll("main g.node")].flatMap((node) => {
    const [text, box] = [node.querySelector("text"), node.querySelector("rect")].map((part) => luminance(getComputedStyle(part).fill));
    const contrast = (Math.max(text, box) + 0.05) / (Math.min(text, box) + 0.05);
    return contrast < 4.5 ? [`${contrast.toFixed(1)}: ${node.getAttribute("aria-label")}`] : [];
  });
}

export async function forcedColours(t, browser, console) {
  const run = await console.ask("sums", "On other displays");
  await addManuals(console);
  for (const colorScheme of ["light", "dark"]) {
    const { page, main, go, check } = await openPage(t, browser, console, { forcedColors: "active", reducedMotion: "reduce", colorScheme });
    assert.ok(await page.evaluate(() => matchMedia("(forced-colors: active) and (prefers-reduced-motion: reduce)").matches));
    for (const [hash, selector] of [["#/", "summary"], ["#/runs", "[data-entry]"], [`#/runs/${run}`, "[role=treeitem]"], ["#/flow", "g.node"], ["#/usage", ".plot"], ["#/knowledge/manuals?document=pump.md", "aside article"], ["#/settings", "table"]]) {
      await go(hash);
      await main.locator(selector).first().waitFor();
      assertReadable(await measureContrasts(page.locator("body")), `${hash} ${colorScheme}`);
      assert.deepEqual(await page.evaluate(faintNodes), [], `${hash} ${colorScheme}`);
      const moving = await page.evaluate(() => document.getAnimations().length);
      assert.equal(moving, 0, `${hash} moves`);
    }
    // What is chosen can be told without backgrounds.
    await go(`#/runs/${run}`);
    const outlineOf = (row) => row.evaluate((element) => getComputedStyle(element).outlineStyle);
    assert.equal(await outlineOf(main.getByRole("treeitem", { selected: true })), "solid");
    assert.equal(await outlineOf(main.getByRole("treeitem", { selected: false }).first()), "none");
    check();
  }
}
