// Waiting for what will be, and no longer than that.

/** Longer than anything here takes; reached only by what never comes. */
export const PATIENCE_MS = 30_000;

/** Asks until the answer is neither false nor nothing; that answer. An error that was thrown last is told with it. */
export async function eventually(what, ask, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  let cause;
  while (Date.now() < end) {
    try {
      const answer = await ask();
      if (answer !== false && answer !== undefined && answer !== null) {
        return answer;
      }
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`not in time: ${what}`, { cause });
}
