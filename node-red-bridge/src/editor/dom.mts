// Creates DOM elements without HTML. Shows untrusted text as text: cut, and isolated in its writing direction.

import { MAX_ROW_CHARS, cutText as cut } from "@redflow/bindings";

export { MAX_ROW_CHARS, cut };

/** The properties of a new element. `text` is never parsed as HTML. */
export interface ElementOptions {
  class?: string;
  text?: string;
  title?: string;
  attributes?: Record<string, string>;
}

/** Creates an element with its children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  options: ElementOptions = {},
  ...children: (Node | null | undefined)[]
): HTMLElementTagNameMap[K] {
  const created = document.createElement(tag);
  if (options.class !== undefined) {
    created.className = options.class;
  }
  if (options.text !== undefined) {
    created.textContent = options.text;
  }
  if (options.title !== undefined) {
    created.title = options.title;
  }
  for (const [name, value] of Object.entries(options.attributes ?? {})) {
    created.setAttribute(name, value);
  }
  created.append(...children.filter((child) => child !== null && child !== undefined));
  return created;
}

/** Creates an element with untrusted text, such as a name, an answer or an error. */
export function untrusted<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  text: string,
  options: Omit<ElementOptions, "text"> & { maxChars?: number } = {},
): HTMLElementTagNameMap[K] {
  const { maxChars, ...rest } = options;
  const created = element(tag, { ...rest, text: cut(text, maxChars) });
  created.dir = "auto";
  created.classList.add("redflow-foreign");
  return created;
}

/** Creates a button that submits no form. */
export function button(label: string, onClick: () => void, options: Omit<ElementOptions, "text"> = {}): HTMLButtonElement {
  const created = element("button", { class: "red-ui-button red-ui-button-small", ...options, text: label });
  created.type = "button";
  created.addEventListener("click", onClick);
  return created;
}
