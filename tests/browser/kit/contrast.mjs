// Whether texts can be told from what is behind them.

import assert from "node:assert/strict";

/** How dark a colour is against what is behind it, for all texts of ours that can be seen. The smallest of all first. */
export const contrasts = (place) =>
  place.evaluateAll((roots) => {
    const numbers = (colour) => colour.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    const luminance = ([red, green, blue]) => {
      const [r, g, b] = [red, green, blue].map((one) => {
        const part = one / 255;
        return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
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
        const [one, other] = [luminance(numbers(getComputedStyle(parentElement).color)), luminance(behind(parentElement))];
        const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        found.push([Math.round(ratio * 10) / 10, data.trim().slice(0, 40), parentElement.className]);
      }
    }
    return found.sort(([one], [other]) => one - other);
  });

/** What has less is not read. */
export const READABLE = 3;

/** Holds that all of them can be read. */
export function readable(found, where) {
  assert.ok(found.length > 0, `${where}: there is something to read`);
  const faint = found.filter(([ratio]) => ratio < READABLE);
  assert.deepEqual(faint, [], `${where}: hard to read`);
}
