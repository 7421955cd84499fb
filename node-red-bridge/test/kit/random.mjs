// Random values from a seed, so that a failure can be repeated.

export function random(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (most) => Math.floor(next() * most);
  const text = () =>
    String.fromCharCode(...Array.from({ length: below(6) }, () => [65, 34, 92, 10, 0xd83d, 0xde00, 0x20ac][below(7)]));
  const leaf = () =>
    [
      () => null,
      () => undefined,
      () => next() < 0.5,
      () => below(2 ** 31),
      () => -next() * 1e9,
      () => [NaN, Infinity, -Infinity, -0, 0][below(5)],
      text,
      () => BigInt(below(1e9)) ** 3n,
      () => new Date(below(2 ** 31) * 1000),
      () => new Date(NaN),
      () => Buffer.from(text()),
      () => /a[/"]+b/giu,
      () => new Float64Array([next(), NaN, below(9)]),
      () => new BigInt64Array([BigInt(below(9))]),
    ][below(14)]();
  const key = () => ["a", "b", "$redflow", "payload", "", "é", "constructor", text().toWellFormed()][below(8)];
  const value = (depth = 0) => {
    const kind = depth > 4 ? 0 : below(10);
    const many = Array.from({ length: below(4) });
    switch (kind) {
      case 6:
        return many.map(() => value(depth + 1));
      case 7:
        return Object.fromEntries(many.map(() => [key(), value(depth + 1)]));
      case 8:
        return new Map(many.map(() => [value(depth + 1), value(depth + 1)]));
      case 9:
        return new Set(many.map(() => value(depth + 1)));
      default:
        return leaf();
    }
  };
  return { next, below, value };
}
