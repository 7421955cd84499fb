// Waits for a condition, with a timeout.

/** Longer than any step takes, so that only a failure reaches it. */
export const TIMEOUT_MS = 30_000;

/** Calls `check` until it returns something else than false or nothing, and returns that. Reports its last error. */
export async function eventually(what, check, timeoutMs = TIMEOUT_MS) {
  const end = Date.now() + timeoutMs;
  let cause;
  while (Date.now() < end) {
    try {
      const result = await check();
      if (result !== false && result !== undefined && result !== null) {
        return result;
      }
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`not in time: ${what}`, { cause });
}
