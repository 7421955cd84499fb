// Lists and elements that are updated in place. An unchanged element is not created again, so that it keeps its focus, its
// scroll position and its opened details.

/** The view of one item. */
export interface ListPart<T> {
  readonly root: HTMLElement;
  show(item: T): void;
}

/** A list of views, one for each key. */
export class KeyedList<T> {
  private readonly parts = new Map<string, ListPart<T>>();

  constructor(
    readonly root: HTMLElement,
    private readonly keyOf: (item: T) => string,
    private readonly createPart: (item: T) => ListPart<T>,
  ) {}

  part(key: string): ListPart<T> | undefined {
    return this.parts.get(key);
  }

  show(items: readonly T[]): void {
    const keys = new Set(items.map((item) => this.keyOf(item)));
    for (const [key, part] of this.parts) {
      if (!keys.has(key)) {
        part.root.remove();
        this.parts.delete(key);
      }
    }
    let next: Element | null = this.root.firstElementChild;
    for (const item of items) {
      const key = this.keyOf(item);
      let part = this.parts.get(key);
      if (part === undefined) {
        part = this.createPart(item);
        this.parts.set(key, part);
      }
      if (part.root === next) {
        next = next.nextElementSibling;
      } else {
        this.root.insertBefore(part.root, next);
      }
      part.show(item);
    }
  }
}

/** An element that creates its children again only when `key` changes. Hidden while it has none. */
export class CachedElement {
  private key: string | undefined;

  constructor(readonly root: HTMLElement) {}

  set(key: unknown, ...create: (() => Node | undefined)[]): void {
    const newKey = JSON.stringify(key) ?? "";
    if (newKey !== this.key) {
      this.key = newKey;
      const nodes = create.map((createChild) => createChild()).filter((node) => node !== undefined);
      this.root.replaceChildren(...nodes);
      this.root.hidden = nodes.length === 0;
    }
  }
}
