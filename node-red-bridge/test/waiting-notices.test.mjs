// Which notices of waiting runs are open.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.RED = { _: (key) => key };
const { MAX_CLOSED, MAX_NOTICES, WaitingNotices } = await import("../editor-build/editor/waiting-notices.mjs");

const waiting = (...ids) => ids.map((runId) => ({ runId, status: "waiting", waiting: { tool: "mail" } }));

function createEnvironment() {
  const env = {
    open: new Map(),
    opened: 0,
    stored: [],
    page: {
      open(runtime, { runId }, onClose) {
        assert.equal(runtime, "rt");
        env.opened += 1;
        env.open.set(runId, onClose);
        return { close: () => env.open.delete(runId) };
      },
      loadClosed: () => env.stored,
      saveClosed: (runs) => (env.stored = runs),
    },
    notices: () => new WaitingNotices("rt", env.page),
    closeByUser(run) {
      const onClose = env.open.get(run);
      env.open.delete(run);
      onClose();
    },
  };
  return env;
}

test("opens one notice for each waiting run, and closes it when the run goes on", () => {
  const env = createEnvironment();
  const notices = env.notices();
  notices.show(waiting("a"));
  notices.show(waiting("a"));
  assert.deepEqual([[...env.open.keys()], env.opened], [["a"], 1]);
  notices.show([...waiting("b"), { runId: "a", status: "running" }]);
  assert.deepEqual([...env.open.keys()], ["b"]);
  notices.show([]);
  assert.deepEqual([...env.open.keys()], []);
});

test("a notice that the user closed does not come back, also after a reload", () => {
  const env = createEnvironment();
  const notices = env.notices();
  notices.show(waiting("a", "b"));
  env.closeByUser("a");
  notices.show(waiting("a", "b"));
  assert.deepEqual([[...env.open.keys()], env.opened], [["b"], 2]);
  env.open.clear();
  env.notices().show(waiting("a", "b"));
  assert.deepEqual([...env.open.keys()], ["b"], "an open one is shown again by the new page");
});

test("limits the open notices and the closed ones that it remembers", () => {
  const env = createEnvironment();
  const notices = env.notices();
  const ids = Array.from({ length: MAX_CLOSED + 5 }, (_, index) => `r${index}`);
  notices.show(waiting(...ids));
  assert.equal(env.open.size, MAX_NOTICES);
  for (const id of ids) {
    env.closeByUser(id);
    notices.show(waiting(...ids.slice(ids.indexOf(id) + 1)));
  }
  assert.deepEqual([env.stored.length, env.stored.at(-1), env.open.size], [MAX_CLOSED, ids.at(-1), 0]);
});
