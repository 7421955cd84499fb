// What each scope may do. A button that is on works; one that is off names its scope, and the sidecar refuses the same request.

import assert from "node:assert/strict";

import { eventually } from "../kit/wait.mjs";
import { openPage } from "./page.mjs";

const SCOPES = ["read", "run", "deploy", "admin"];

/** Whether a token with one scope may do what needs another one. */
const allows = (scope, needed) => scope === needed || scope === "admin" || needed === "read";

const dialogButton = (name) => ({ page }) => page.getByRole("dialog").getByRole("button", { name }).click();
const sumsCard = (main) => main.locator("li.card", { has: main.page().locator("summary", { hasText: "Sums" }) });

const ask = { needs: "run", sends: () => ["POST", "/api/runs", { node: "sums", payload: "Hello" }] };
const cancel = { needs: "run", sends: ({ cancelled }) => ["POST", `/api/runs/${cancelled}/cancel`, {}] };
const resolve = {
  needs: "run",
  button: (main) => main.locator("form.redflow-resolve").first(),
  isForm: true,
  sends: ({ resolved }) => ["POST", `/api/runs/${resolved}/resolve`, { callId: "none", result: { success: true, output: null } }],
};

/** Answers the question of a form. */
async function answer({ main }) {
  const form = main.locator("form.redflow-resolve").first();
  await form.getByRole("radio").last().check();
  await form.getByRole("button").last().click();
}

/** Each action: its page, its button, the scope it needs, and what it sends. `before` opens what holds the button, `after` is what
 * follows its click. */
const ACTIONS = [
  {
    ...ask,
    name: "ask at home",
    page: () => "#/",
    before: async ({ main }) => {
      await sumsCard(main).locator("summary").first().click();
      await sumsCard(main).getByRole("textbox").fill("Hello");
    },
    button: (main) => sumsCard(main).getByRole("button", { name: "Ask" }),
  },
  { ...ask, name: "ask again", page: ({ run }) => `#/runs/${run}`, button: (main) => main.getByRole("button", { name: "Ask again" }), after: dialogButton("Ask") },
  {
    ...ask,
    name: "ask in the flow",
    page: () => "#/flow?node=sums",
    before: ({ main }) => main.locator("aside").getByRole("textbox").fill("Hello"),
    button: (main) => main.locator("aside").getByRole("button", { name: "Ask" }),
  },
  {
    name: "replay",
    needs: "read",
    page: ({ run }) => `#/runs/${run}`,
    button: (main) => main.getByRole("button", { name: "Replay" }),
    sends: ({ run }) => ["POST", `/api/runs/${run}/replay`],
  },
  {
    name: "check",
    needs: "read",
    page: () => "#/check",
    before: ({ main }) => main.getByRole("textbox").fill("[]"),
    button: (main) => main.getByRole("button", { name: "Check the flow" }),
    sends: () => ["POST", "/api/flows/check", { flows: [] }],
  },
  {
    name: "test a model",
    needs: "deploy",
    page: () => "#/models",
    button: (main) => main.getByRole("article").first().getByRole("button"),
    sends: () => ["POST", "/api/models/test", { type: "scripted-model", config: {} }],
  },
  { ...resolve, name: "resolve", page: ({ resolved }) => `#/runs/${resolved}`, after: answer },
  { ...cancel, name: "cancel", page: ({ cancelled }) => `#/runs/${cancelled}`, button: (main) => main.getByRole("button", { name: "Cancel this run" }), after: dialogButton("Yes, end it") },
  {
    ...cancel,
    name: "cancel what is filtered",
    page: ({ filtered }) => `#/runs?prefix=${filtered}`,
    button: (main) => main.getByRole("button", { name: "Cancel what is filtered" }),
    after: dialogButton("Yes, end 1"),
    sends: ({ filtered }) => ["POST", `/api/runs/${filtered}/cancel`, {}],
  },
  {
    name: "search",
    needs: "read",
    page: ({ base }) => `#/knowledge/${base}`,
    before: ({ main }) => main.getByLabel("Question or words").fill("pump"),
    button: (main) => main.getByRole("button", { name: "Search" }),
    sends: ({ base }) => ["POST", `/api/kb/${base}/search`, { text: "pump" }],
  },
  {
    name: "add documents",
    needs: "deploy",
    page: ({ base }) => `#/knowledge/${base}?add`,
    button: (main) => main.getByRole("button", { name: "Choose files" }),
    after: ({ main }) => main.locator("input[type=file]").setInputFiles({ name: "new.md", mimeType: "text/markdown", buffer: Buffer.from("New") }),
    sends: ({ base }) => ["POST", `/api/kb/${base}/documents?document=new.md`],
  },
  {
    name: "remove a document",
    needs: "deploy",
    page: ({ base }) => `#/knowledge/${base}?document=old.md`,
    button: (main) => main.getByRole("button", { name: "Remove the document" }),
    after: dialogButton("Remove"),
    sends: ({ base }) => ["DELETE", `/api/kb/${base}/documents?document=old.md`],
  },
  {
    name: "remove a knowledge base",
    needs: "deploy",
    page: ({ base }) => `#/knowledge/${base}?remove`,
    button: (main) => main.getByRole("button", { name: "Remove the knowledge base" }),
    after: dialogButton("Remove"),
    sends: ({ base }) => ["DELETE", `/api/kb/${base}`],
  },
  {
    name: "let a browser in",
    needs: "admin",
    page: () => "#/settings",
    button: (main) => main.getByRole("button", { name: "Let a browser in" }),
    after: dialogButton("Close"),
    sends: () => ["POST", "/api/sign-in-codes"],
  },
  {
    name: "make a token",
    needs: "admin",
    page: () => "#/settings?make",
    before: ({ main }) => main.getByLabel("Name", { exact: true }).fill("made"),
    button: (main) => main.getByRole("button", { name: "Make a token" }),
    after: dialogButton("Close"),
    sends: () => ["POST", "/api/tokens", { name: "refused", scopes: ["read"] }],
  },
  {
    name: "remove a token",
    needs: "admin",
    page: () => "#/settings?remove",
    // Without the scope the page does not even know the tokens.
    button: (main, isAllowed) => (isAllowed ? main.getByRole("button", { name: "Remove the token made" }) : main.locator("section", { hasText: "Tokens" }).getByRole("button", { name: "Let a browser in" })),
    after: dialogButton("Remove"),
    sends: () => ["DELETE", "/api/tokens/made"],
  },
  {
    name: "sign out",
    needs: "read",
    page: () => "#/settings?out",
    button: (main) => main.getByRole("button", { name: "Sign out" }),
    sends: () => ["POST", "/api/sign-out"],
  },
];

/** What a page reads, and the scope that needs. */
const READS = [
  ["/api/session", "read"],
  ["/api/runs", "read"],
  ["/api/tools", "read"],
  ["/api/stats?from=2026-01-01&to=2026-01-02&by=agent", "read"],
  ["/api/kb", "read"],
  ["/api/kb/scopes/documents", "read"],
  ["/api/kb/scopes/passages?document=old.md", "read"],
  ["/api/mcp", "read"],
  ["/api/memory", "read"],
  ["/api/tokens", "admin"],
  ["/api/config", "admin"],
];

async function tryScope(t, browser, console, scope) {
  const token = await console.tokenWith(`only-${scope}`, scope);
  const [resolved, cancelled, filtered] = [await console.ask("letters", "1"), await console.ask("letters", "2"), await console.ask("letters", "3")];
  for (const id of [resolved, cancelled, filtered]) {
    await console.untilStatus(id, "waiting");
  }
  const base = `for-${scope}`;
  await console.addDocument(base, "old.md", "An old pump");
  const ids = { run: await console.ask("sums", `For ${scope}`), resolved, cancelled, filtered, base };
  for (const [path, needs] of READS) {
    const { status } = await console.request("GET", path, undefined, token);
    assert.equal(status, allows(scope, needs) ? 200 : 403, `${scope} GET ${path}`);
  }
  const { page, main, go, check } = await openPage(t, browser, console, { token });
  for (const { name, needs, page: hashOf, before, button, isForm, after, sends } of ACTIONS) {
    const what = `${scope}: ${name}`;
    const isAllowed = allows(scope, needs);
    await go(hashOf(ids));
    await before?.({ page, main });
    const control = button(main, isAllowed);
    await control.waitFor();
    const [method, path, body] = sends(ids);
    if (isAllowed) {
      await eventually(`${what} is on`, () => control.isEnabled());
      const [pathOnly] = path.split("?");
      const answered = page.waitForResponse((response) => response.request().method() === method && new URL(response.url()).pathname === pathOnly);
      await (isForm ? undefined : control.click());
      await after?.({ page, main });
      const status = (await answered).status();
      assert.ok(status < 400, `${what} gets ${status}`);
    } else {
      const around = isForm ? control : control.locator("xpath=..");
      assert.match(await around.innerText(), new RegExp(`needs the scope ${needs}`), `${what} names its scope`);
      assert.equal(await around.getByRole("button").and(page.locator(":enabled")).count(), 0, `${what} is off`);
      const refused = await console.request(method, path, body, token);
      assert.deepEqual([refused.status, refused.json.code], [403, "FORBIDDEN"], what);
    }
  }
  check();
  for (const id of [resolved, cancelled, filtered]) {
    await console.request("POST", `/api/runs/${id}/cancel`, {});
  }
}

export async function scopes(t, browser, console) {
  await console.addDocument("scopes", "old.md", "An old pump");
  for (const pair of [SCOPES.slice(0, 2), SCOPES.slice(2)]) {
    await Promise.all(pair.map((scope) => tryScope(t, browser, console, scope)));
  }
}
