// Failures with a code that `redflow explain` knows, and texts of errors.

/** The most characters of an error's text. */
const TEXT_LENGTH = 4_000;

/** A failure with a code, for Catch nodes, `done` and the log. */
export class Failure extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "Failure";
    // Catch nodes and the log would show a stack of this module, which helps no user.
    delete this.stack;
  }

  /** For Catch nodes, as `msg.error.message`: they also have the code. */
  override toString(): string {
    return this.message;
  }

  /** For the log, which shows only this text. */
  [Symbol.toPrimitive](): string {
    return `${this.message} (${this.code})`;
  }
}

/** Cuts a text to this length, without half a character at its end. */
export function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1).toWellFormed()}…` : text.toWellFormed();
}

/** The text of an error, never empty; `fallback` if it has none. Never throws. */
export function errorText(error: unknown, fallback: string): string {
  try {
    const message: unknown =
      typeof error === "object" && error !== null ? (error as { message?: unknown }).message : error;
    const isPlain = ["string", "number", "boolean", "bigint"].includes(typeof message);
    const text = isPlain ? String(message) : "";
    return text === "" ? fallback : text.slice(0, TEXT_LENGTH).toWellFormed();
  } catch {
    return fallback;
  }
}
