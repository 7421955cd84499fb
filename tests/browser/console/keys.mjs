// A page that is used by keyboard alone. Any use of a pointer fails the test, and so does a lost focus.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { openPage } from "./page.mjs";

/** More Tabs than any page of the tests needs. */
const MAX_TABS = 250;

/** Opens a page as `openPage` does, and gives what a keyboard can do with it. */
export async function openByKeyboard(t, browser, console, options = {}) {
  const opened = await openPage(t, browser, console, { permissions: ["clipboard-read", "clipboard-write"], ...options });
  const { page } = opened;
  await page.evaluate(() => {
    window.pointers = 0;
    document.addEventListener("pointerdown", () => (window.pointers += 1), true);
  });
  const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);
  /** Describes the focused element. */
  const focus = () => page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200));
  /** Presses Tab, or Shift and Tab, until an element has the focus. */
  const tabTo = async (locator) => {
    await locator.waitFor({ state: "attached" });
    const element = await locator.elementHandle();
    const isBefore = await element.evaluate((one) => (one.compareDocumentPosition(document.activeElement) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0);
    for (let count = 0; count < MAX_TABS; count += 1) {
      if (await element.evaluate((one) => one === document.activeElement)) {
        return;
      }
      await page.keyboard.press(isBefore ? "Shift+Tab" : "Tab");
    }
    throw new Error(`Tab does not reach ${locator}; the focus is at ${await focus()}`);
  };
  const holds = async (selector) => {
    await eventually(`the focus is in ${selector}`, () => page.evaluate((selector) => document.activeElement?.closest(selector) !== null, selector)).catch(
      async (error) => assert.fail(`${error.message}, but at ${await focus()}`),
    );
  };
  return {
    ...opened,
    focus,
    tabTo,
    press: (key) => page.keyboard.press(key),
    type: (text) => page.keyboard.insertText(text),
    /** Goes to a control and presses it. */
    activate: async (locator, key = "Enter") => {
      await tabTo(locator);
      await page.keyboard.press(key);
    },
    /** Waits until the focus is in an element; in the page or a dialog if none is named. */
    holdsFocus: (selector = "main, dialog") => holds(selector),
    isFocused: (locator) => eventually(`${locator} has the focus`, () => isFocused(locator)).catch(async (error) => assert.fail(`${error.message}, but ${await focus()}`)),
    check: async () => {
      opened.check();
      assert.equal(await page.evaluate(() => window.pointers), 0, "no pointer was used");
    },
  };
}
