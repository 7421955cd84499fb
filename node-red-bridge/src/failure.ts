// What this module says when something goes wrong: a sentence and a code that `redflow explain` knows.

/** Characters of what an error says. */
const WORDS_LENGTH = 4_000;

/** A failure with a code, for Catch nodes, `done` and the log. */
export class Failure extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "Failure";
    // Catch nodes and the log would show where in this module it was made, which helps nobody.
    delete this.stack;
  }

  /** What Catch nodes get as `msg.error.message`: the code is beside it. */
  override toString(): string {
    return this.message;
  }

  /** What the log shows: there nothing is beside it. */
  [Symbol.toPrimitive](): string {
    return `${this.message} (${this.code})`;
  }
}

/** The beginning of a text, without half a character at its end. */
export function clipped(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text.toWellFormed();
}

/** What an error says, as one text that is never empty; `otherwise` if it says nothing. Never throws. */
export function wordsOf(error: unknown, otherwise: string): string {
  try {
    const said: unknown = typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
    const text = typeof said === "string" ? said : String(said ?? "");
    return text === "" ? otherwise : text.slice(0, WORDS_LENGTH).toWellFormed();
  } catch {
    return otherwise;
  }
}
