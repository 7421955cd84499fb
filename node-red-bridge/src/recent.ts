// The newest texts that were seen, up to a number.

/** Texts that were seen; the oldest is forgotten for a new one. */
export class Recent {
  private readonly seen = new Set<string>();
  /** The same in order, as a ring: to look for the first of a set that much was deleted from is slow. */
  private readonly order: string[] = [];
  private at = 0;

  constructor(private readonly most: number) {}

  /** Whether a text is remembered. */
  has(text: string): boolean {
    return this.seen.has(text);
  }

  /** Remembers a text; `false` if it was known. */
  add(text: string): boolean {
    if (this.seen.has(text)) {
      return false;
    }
    const oldest = this.order[this.at];
    if (oldest !== undefined) {
      this.seen.delete(oldest);
    }
    this.order[this.at] = text;
    this.at = (this.at + 1) % this.most;
    this.seen.add(text);
    return true;
  }
}
