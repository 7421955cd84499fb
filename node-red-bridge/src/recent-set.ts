// A set of the newest texts, up to a number.

/** A set that drops its oldest text when it is full. */
export class RecentSet {
  private readonly texts = new Set<string>();
  /** The same texts in order, as a ring: finding the first entry of a set after many deletions is slow. */
  private readonly order: string[] = [];
  private next = 0;

  constructor(private readonly capacity: number) {}

  has(text: string): boolean {
    return this.texts.has(text);
  }

  /** Adds a text. False if it was there already. */
  add(text: string): boolean {
    if (this.texts.has(text)) {
      return false;
    }
    const oldest = this.order[this.next];
    if (oldest !== undefined) {
      this.texts.delete(oldest);
    }
    this.order[this.next] = text;
    this.next = (this.next + 1) % this.capacity;
    this.texts.add(text);
    return true;
  }
}
