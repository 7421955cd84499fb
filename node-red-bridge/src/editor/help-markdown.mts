// Renders the help section of the sidecar's pages about codes. Parses the few Markdown forms that these pages use into
// elements; everything else stays text. Never creates HTML.

import { element } from "./dom.mjs";

/** The most rendered blocks. */
const MAX_BLOCKS = 50;

export type Block =
  | { is: "text"; text: string }
  | { is: "code"; text: string }
  | { is: "list"; ordered: boolean; items: string[] };

const ITEM = /^ {0,3}(?:[-*]|(\d+)\.) +(.*)$/;

/** Parses a text into blocks. */
export function parseBlocks(markdown: string): Block[] {
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
    } else if (isOpen && last?.is === "text") {
      last.text += ` ${line.trim()}`;
    } else {
      blocks.push({ is: "text", text: line.trim() });
      isOpen = true;
    }
  }
  if (fence !== undefined) {
    blocks.push({ is: "code", text: fence.join("\n") });
  }
  return blocks;
}

/** Renders a text as elements. */
export function renderHelp(markdown: string): HTMLElement {
  const root = element("div", { class: "redflow-fix" });
  for (const block of parseBlocks(markdown).slice(0, MAX_BLOCKS)) {
    if (block.is === "list") {
      const items = block.items.map((item) => appendText(element("li"), item));
      root.append(element(block.ordered ? "ol" : "ul", {}, ...items));
    } else {
      root.append(block.is === "code" ? element("pre", { text: block.text }) : appendText(element("p"), block.text));
    }
  }
  return root;
}

/** Appends a text, with the parts between backticks as code. */
function appendText(host: HTMLElement, text: string): HTMLElement {
  text.split("`").forEach((part, index) => {
    host.append(index % 2 === 1 ? element("code", { text: part }) : part);
  });
  return host;
}
