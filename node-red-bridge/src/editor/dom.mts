// Elements of a page, made without HTML. Owns how a stranger's text is shown: as text, cut, and turned in no direction but
// its own. Knows nothing of what is shown.

/** Characters of a stranger's text that are shown where there is room for several lines. */
export const SHOWN_CHARS = 2_000;

/** The same, in a row of one line. */
export const SHOWN_IN_ROW = 200;

/** A text with an end: what is too long ends in "…", and no character is cut in half. */
export function cut(text: string, most: number = SHOWN_CHARS): string {
  if (text.length <= most) {
    return text;
  }
  return `${text.slice(0, most).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** What an element may have. `text` is set as text. */
export interface Parts {
  class?: string;
  text?: string;
  title?: string;
  attributes?: Record<string, string>;
}

/** A new element with its children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  parts: Parts = {},
  ...children: (Node | null | undefined)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (parts.class !== undefined) {
    made.className = parts.class;
  }
  if (parts.text !== undefined) {
    made.textContent = parts.text;
  }
  if (parts.title !== undefined) {
    made.title = parts.title;
  }
  for (const [name, value] of Object.entries(parts.attributes ?? {})) {
    made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A stranger's text: a name, an answer, an error. */
export function foreign<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text: string,
  parts: Omit<Parts, "text"> & { most?: number } = {},
): HTMLElementTagNameMap[K] {
  const { most, ...rest } = parts;
  const made = element(tag, { ...rest, text: cut(text, most) });
  made.dir = "auto";
  made.classList.add("redflow-foreign");
  return made;
}

/** A button that sends no form. */
export function button(label: string, press: () => void, parts: Omit<Parts, "text"> = {}): HTMLButtonElement {
  const made = element("button", { class: "red-ui-button red-ui-button-small", ...parts, text: label });
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}
