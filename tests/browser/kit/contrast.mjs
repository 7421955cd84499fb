// Measures the contrast of visible texts.

import assert from "node:assert/strict";

/** The contrast ratio of each visible text with its background, lowest first. */
export const measureContrasts = (locator) =>
  locator.evaluateAll((roots) => {
    const numbers = (colour) => colour.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    const luminance = ([red, green, blue]) => {
      const [r, g, b] = [red, green, blue].map((one) => {
        const part = one / 255;
        return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const backgroundOf = (element) => {
      for (let one = element; one; one = one.parentElement) {
        const [r, g, b, a = 1] = numbers(getComputedStyle(one).backgroundColor);
        if (a > 0.9) {
          return [r, g, b];
        }
      }
      return [255, 255, 255];
    };
    const found = [];
    for (const root of roots) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const { data, parentElement } = walker.currentNode;
        if (!data.trim() || parentElement.closest("svg, [disabled], option") || !parentElement.checkVisibility()) {
          continue;
        }
        const [one, other] = [luminance(numbers(getComputedStyle(parentElement).color)), luminance(backgroundOf(parentElement))];
        const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        found.push([Math.round(ratio * 10) / 10, data.trim().slice(0, 40), parentElement.className]);
      }
    }
    return found.sort(([one], [other]) => one - other);
  });

/** The lowest readable contrast ratio. */
export const MIN_CONTRAST = 3;

/** Asserts that all texts are readable. */
export function assertReadable(found, where) {
  assert.ok(found.length > 0, `${where}: no text`);
  const faint = found.filter(([ratio]) => ratio < MIN_CONTRAST);
  assert.deepEqual(faint, [], `${where}: hard to read`);
}
