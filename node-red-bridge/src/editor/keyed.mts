// Keeps the elements of a list in step with what they show, each by its key: what stays is not made anew, so that focus,
// scroll and what a person has opened stay too. Knows nothing of what is shown.

export interface Part<T> {
  readonly root: HTMLElement;
  show(item: T): void;
}

export class KeyedList<T> {
  private readonly parts = new Map<string, Part<T>>();

  constructor(
    readonly root: HTMLElement,
    private readonly keyOf: (item: T) => string,
    private readonly make: (item: T) => Part<T>,
  ) {}

  part(key: string): Part<T> | undefined {
    return this.parts.get(key);
  }

  show(items: readonly T[]): void {
    const kept = new Set(items.map(this.keyOf));
    for (const [key, part] of this.parts) {
      if (!kept.has(key)) {
        part.root.remove();
        this.parts.delete(key);
      }
    }
    let next: Element | null = this.root.firstElementChild;
    for (const item of items) {
      const key = this.keyOf(item);
      let part = this.parts.get(key);
      if (part === undefined) {
        part = this.make(item);
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

/** An element whose children are made anew only when `key` is another. It is hidden while it has none. */
export class Kept {
  private key: string | undefined;

  constructor(readonly root: HTMLElement) {}

  set(key: unknown, ...made: (() => Node | undefined)[]): void {
    const fresh = JSON.stringify(key) ?? "";
    if (fresh !== this.key) {
      this.key = fresh;
      const nodes = made.map((make) => make()).filter((node) => node !== undefined);
      this.root.replaceChildren(...nodes);
      this.root.hidden = nodes.length === 0;
    }
  }
}
