// The page of the sidecar in a browser: the sign-in by a link and by a token, and the small page of a build without the console.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { serve } from "./kit/sidecar.mjs";
import { eventually } from "./kit/wait.mjs";

const LIMIT = { timeout: 60_000 };
const HOSTILE = "<img src=x onerror=alert(1)>";

/** A sidecar with the small page, and a page of its own browser profile with everything that it must not do. */
async function open(t, browser) {
  const folder = mkdtempSync(join(tmpdir(), "redflow-no-console-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const sidecar = await serve(t, { consoleFolder: folder });
  const context = await browser.newContext();
  t.after(() => context.close());
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.message));
  page.on("dialog", (dialog) => problems.push(dialog.message()));
  page.on("console", (message) => message.text().includes("Content Security Policy") && problems.push(message.text()));
  page.on("request", (request) => request.url().startsWith(sidecar.url) || problems.push(request.url()));
  const post = async (path, body) => {
    const headers = { authorization: `Bearer ${sidecar.token}`, "content-type": "application/json" };
    const response = await fetch(sidecar.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    assert.ok(response.ok, `${path} ${response.status}`);
    return response.json();
  };
  return { sidecar, page, problems, post };
}

export function testSignIn(browser) {
  test("the link signs in, keeps its fragment and works once", LIMIT, async (t) => {
    const { sidecar, page, problems, post } = await open(t, browser());
    const { path } = await post("/api/sign-in-codes");
    await page.goto(`${sidecar.url}${path}#/runs/some-run`);
    await page.getByText("You are signed in with the token main.").waitFor();
    assert.equal(page.url(), `${sidecar.url}/#/runs/some-run`);
    // The session is written after the answer.
    await eventually("a file of the sessions", () => existsSync(join(sidecar.data, "sessions.json")));
    await sidecar.kill();
    await sidecar.restart();
    await page.reload();
    await page.getByText("You are signed in with the token main.").waitFor();
    const again = await page.goto(sidecar.url + path);
    assert.equal(again.status(), 401);
    assert.deepEqual(problems, []);
  });

  test("the small page signs in with a token and shows foreign text as text", LIMIT, async (t) => {
    const { sidecar, page, problems, post } = await open(t, browser());
    const flow = await sidecar.get("/api/deployment");
    const flows = flow.flows.map((node) => (node.type === "agent-core" ? { ...node, name: HOSTILE } : node));
    const { id } = flows.find(({ type }) => type === "agent-core");
    await post("/api/deployment", { flows, revision: flow.revision });
    await post("/api/runs", { node: id, payload: "hello", wait: true });

    await page.goto(sidecar.url);
    await page.getByLabel("Token").fill("a-token-that-is-wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("The token is not accepted here").waitFor();
    await page.getByLabel("Token").fill(sidecar.token);
    await page.keyboard.press("Enter");
    await page.getByRole("cell", { name: HOSTILE }).waitFor();
    await page.getByText("cargo xtask console").waitFor();
    await page.reload();
    await page.getByRole("cell", { name: HOSTILE }).waitFor();
    await page.route("**/api/sign-out", (route) => route.fulfill({ status: 503 }), { times: 1 });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("The sidecar answered 503. You are still signed in.").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Sign in" }).waitFor();
    assert.deepEqual(problems, []);
  });
}
