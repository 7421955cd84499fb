// A fake of the parts of a page that the views of the editor use. It has text and children, and no layout.

class FakeNode {
  children = [];
  parent = null;
  append(...added) {
    added.forEach((one) => this.insertBefore(one, null));
  }
  insertBefore(added, next) {
    const nodes = added instanceof FakeFragment ? added.children.splice(0) : [typeof added === "string" ? new FakeText(added) : added];
    for (const node of nodes) {
      node.remove?.();
      node.parent = this;
      this.children.splice(next === null ? this.children.length : this.children.indexOf(next), 0, node);
    }
  }
  replaceChildren(...added) {
    this.children = [];
    this.append(...added);
  }
  get textContent() {
    return this.children.map((child) => child.textContent).join("");
  }
  set textContent(text) {
    this.replaceChildren(...(text === "" ? [] : [text]));
  }
  remove() {
    this.parent?.children.splice(this.parent.children.indexOf(this), 1);
    this.parent = null;
  }
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  get nextElementSibling() {
    return this.parent?.children[this.parent.children.indexOf(this) + 1] ?? null;
  }
}

class FakeFragment extends FakeNode {}

class FakeText {
  constructor(text) {
    this.textContent = text;
  }
}

class FakeElement extends FakeNode {
  [Symbol.for("listeners")] = new Map();
  classList = { add: () => undefined, toggle: () => undefined };
  hidden = false;
  constructor(tag) {
    super();
    this.tagName = tag.toUpperCase();
  }
  setAttribute(name, value) {
    this[name] = value;
  }
  addEventListener(name, listener) {
    this[Symbol.for("listeners")].set(name, listener);
  }
  dispatch(name) {
    this[Symbol.for("listeners")].get(name)?.();
  }
  /** All elements below it with this tag. */
  all(tag) {
    const below = this.children.filter((child) => child instanceof FakeElement);
    return below.flatMap((child) => [...(child.tagName === tag.toUpperCase() ? [child] : []), ...child.all(tag)]);
  }
}

/** Installs the page. `byId` has the elements that a dialog finds by their ids. */
export function installPage(byId = {}) {
  const document = { hidden: false, createElement, createDocumentFragment: () => new FakeFragment(), getElementById: (id) => byId[id] ?? null };
  document.addEventListener = () => undefined;
  Object.assign(globalThis, { Node: FakeNode, document });
}

export const createElement = (tag) => new FakeElement(tag);
