// What people read in each language: the test of a model, a sidecar that is offline, the notice of a waiting run, and the texts of a
// timeline.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { LANGUAGES, NAMESPACE, catalogue } from "./kit/texts.mjs";

/** The keys of the texts on each screen. */
const KEYS = {
  busy: ["fields.test.test", "fields.test.list", "fields.test.busy"],
  tested: ["ok", "answer", "tokens", "perSecond", "windowTokens", "schema.honoured", ...rows("server", "address", "model", "tokens", "speed", "schema", "window")].map(inTest),
  ignored: ["fields.test.schema.ignored"],
  notSent: ["fields.test.schema.not_sent"],
  failed: ["fields.test.failed"],
  forbidden: ["fields.test.forbidden"],
  noNodeRed: ["fields.test.noNodeRed"],
  noRuntime: ["fields.test.noRuntime"],
  noModels: ["fields.test.noModels"],
  models: ["fields.test.models", "fields.test.choose", "fields.test.windowTokens"],
  refused: ["runs.runtime.refused", "phrases.token_refused"],
  offline: ["runs.runtime.offline", "phrases.offline_nothing_listens"],
  notChecked: ["phrases.token_refused"],
  notice: ["runs.notice.waits", "runs.notice.answer", "runs.notice.close"],
  reading: ["texts.asking", "last.final", "model.tool", "tool.worked", "model.final", "end.answered", "used.tokens"].map(inTimeline),
  none: ["timeline.texts.none"],
  summaries: ["prompt", "answer", "input", "result", "output"].map((name) => `timeline.texts.${name}`),
  unread: ["timeline.texts.failed"],
};

/** Words that languages share. */
const SHARED = new Set(["windowTokens", ...rows("server", "tokens", "schema")].map(inTest));

function rows(...names) {
  return names.map((name) => `row.${name}`);
}

function inTest(name) {
  return `fields.test.${name}`;
}

function inTimeline(name) {
  return `timeline.${name}`;
}

async function screensIn(language) {
  const program = fileURLToPath(new URL("./kit/screens.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [program, language]);
  return JSON.parse(stdout);
}

test("tests of models, sidecars, notices and timelines are in the user's language", { timeout: 60_000 }, async () => {
  const shown = new Map(await Promise.all(LANGUAGES.map(async (language) => [language, await screensIn(language)])));
  for (const [screen, keys] of Object.entries(KEYS)) {
    for (const language of LANGUAGES) {
      const [text, texts] = [shown.get(language)[screen], catalogue(language)];
      assert.ok(!text.includes(NAMESPACE), `${language} ${screen}: a key without a text in ${text}`);
      assert.doesNotMatch(text, /__\w+__/, `${language} ${screen}: a place without a value`);
      for (const key of keys) {
        for (const part of texts.get(key).split(/__\w+?__/)) {
          assert.ok(text.includes(part), `${language} ${screen}: ${key} is not in ${text}`);
        }
      }
    }
    for (const key of keys.filter((key) => !SHARED.has(key))) {
      assert.equal(new Set(LANGUAGES.map((language) => catalogue(language).get(key))).size, LANGUAGES.length, `${key} is not translated`);
    }
  }
  assert.deepEqual(Object.keys(shown.get("de")).sort(), Object.keys(KEYS).sort());
});
