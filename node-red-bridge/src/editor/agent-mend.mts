// What to do about a code, as the sidecar's page on it says: the little Markdown those pages use, made into elements. What is
// no Markdown of that kind stays text. Owns the reading and the drawing; never makes HTML.

import { element } from "./dom.mjs";

/** Blocks drawn at most. */
const MAX_BLOCKS = 50;

export type Block =
  | { is: "words"; text: string }
  | { is: "code"; text: string }
  | { is: "list"; ordered: boolean; items: string[] };

const ITEM = /^ {0,3}(?:[-*]|(\d+)\.) +(.*)$/;

/** The blocks of a text. */
export function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  let fence: string[] | undefined;
  let isOpen = false;
  for (const line of markdown.split("\n")) {
    const last = blocks.at(-1);
    const item = ITEM.exec(line);
    if (line.trimStart().startsWith("```")) {
      if (fence !== undefined) {
        blocks.push({ is: "code", text: fence.join("\n") });
      }
      fence = fence === undefined ? [] : undefined;
      isOpen = false;
    } else if (fence !== undefined) {
      fence.push(line);
    } else if (line.trim() === "") {
      isOpen = false;
    } else if (item !== null) {
      const ordered = item[1] !== undefined;
      if (last?.is === "list" && last.ordered === ordered) {
        last.items.push(item[2] ?? "");
      } else {
        blocks.push({ is: "list", ordered, items: [item[2] ?? ""] });
      }
      isOpen = true;
    } else if (isOpen && last?.is === "list") {
      last.items.push(`${last.items.pop() ?? ""} ${line.trim()}`);
    } else if (isOpen && last?.is === "words") {
      last.text += ` ${line.trim()}`;
    } else {
      blocks.push({ is: "words", text: line.trim() });
      isOpen = true;
    }
  }
  if (fence !== undefined) {
    blocks.push({ is: "code", text: fence.join("\n") });
  }
  return blocks;
}

/** The same as elements. */
export function drawMend(markdown: string): HTMLElement {
  const root = element("div", { class: "redflow-mend" });
  for (const block of blocksOf(markdown).slice(0, MAX_BLOCKS)) {
    if (block.is === "list") {
      const items = block.items.map((item) => withCode(element("li"), item));
      root.append(element(block.ordered ? "ol" : "ul", {}, ...items));
    } else {
      root.append(block.is === "code" ? element("pre", { text: block.text }) : withCode(element("p"), block.text));
    }
  }
  return root;
}

/** Words, with what stands between backticks as code. */
function withCode(host: HTMLElement, words: string): HTMLElement {
  words.split("`").forEach((part, place) => {
    host.append(place % 2 === 1 ? element("code", { text: part }) : part);
  });
  return host;
}
