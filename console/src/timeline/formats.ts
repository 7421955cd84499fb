// Formats times, durations and numbers in one language.

export interface Formats {
  /** A number with this many decimals. */
  decimal: (value: number, digits: number) => string;
  /** A whole number, in groups of thousands. */
  count: (value: number) => string;
  /** A cost. Small ones have three digits that are not zero. */
  cost: (value: number) => string;
  /** A duration, such as `1.5 s`. */
  duration: (ms: number) => string;
  /** The time since a start, in whole seconds, for a clock that ticks. */
  clock: (ms: number) => string;
  /** A date with its time; empty for an invalid time. */
  time: (at: number) => string;
}

/** The number formats so far, by language and options. To make one takes much longer than to use it. */
const numberFormats = new Map<string, Intl.NumberFormat>();

function numberFormat(language: string | undefined, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `${language} ${JSON.stringify(options)}`;
  const made = numberFormats.get(key) ?? newNumberFormat(language, options);
  numberFormats.set(key, made);
  return made;
}

function newNumberFormat(language: string | undefined, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  try {
    return new Intl.NumberFormat(language, options);
  } catch {
    // The browser does not know the language.
    return new Intl.NumberFormat("en-US", options);
  }
}

/** The formats of a language. `timeLocale` gives that of dates; undefined is the browser's own. */
export function formatsIn(language: () => string | undefined, timeLocale: () => string | undefined = () => undefined): Formats {
  const format = (value: number, options: Intl.NumberFormatOptions): string => numberFormat(language(), options).format(value);
  const decimal = (value: number, digits: number): string =>
    format(value, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false });
  const duration = (ms: number): string => {
    const whole = Math.max(0, Math.round(ms));
    if (whole < 1_000) {
      return `${whole} ms`;
    }
    if (whole < 59_950) {
      return `${decimal(whole / 1_000, 1)} s`;
    }
    const seconds = Math.round(whole / 1_000);
    const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)];
    return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min ${seconds % 60} s`;
  };
  return {
    decimal,
    duration,
    count: (value) => format(value, { maximumFractionDigits: 0 }),
    cost: (value) => format(value, value < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 }),
    clock: (ms) => (ms < 60_000 ? `${Math.max(0, Math.floor(ms / 1_000))} s` : duration(ms)),
    time(at) {
      const date = new Date(at);
      return Number.isNaN(date.getTime()) ? "" : date.toLocaleString(timeLocale());
    },
  };
}
