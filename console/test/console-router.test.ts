// The address of a page.

import "./console-kit.js";
import assert from "node:assert/strict";
import test from "node:test";
import { PAGES } from "../src/pages.js";
import { formatPlace, go, matchRoute, parsePlace, place, replaceQuery, startRouter } from "../src/router.js";
import { findPage } from "../src/shell.js";
import { until } from "./console-kit.js";

test("reads a fragment into a path and parameters", () => {
  const check = (fragment: string, path: string[], query: Record<string, string> = {}): void => assert.deepEqual(parsePlace(fragment), { path, query }, fragment);
  check("", []);
  check("#/", []);
  check("#/runs", ["runs"]);
  check("#/runs/a%2Fb", ["runs", "a/b"]);
  check("#/runs?status=failed,waiting&code=A+B", ["runs"], { status: "failed,waiting", code: "A B" });
  check("#/runs?flag", ["runs"], { flag: "" });
  check("#/runs/%E0%A4%A", ["runs", "%E0%A4%A"]);
  assert.ok(JSON.stringify(parsePlace(`#/${"x".repeat(100_000)}`)).length < 5_000);
});

test("writes an address that reads the same again", () => {
  const query = { node: "a b/c?d&e#f", empty: "", none: undefined };
  const address = formatPlace(["flow", "täb/1"], query);
  assert.deepEqual(parsePlace(address), { path: ["flow", "täb/1"], query: { node: "a b/c?d&e#f" } });
});

test("matches routes with names, and an optional end", () => {
  const check = (route: string, path: string[], expected: Record<string, string> | undefined): void => assert.deepEqual(matchRoute(route, path), expected, `${route} ${path.join("/")}`);
  check("", [], {});
  check("", ["runs"], undefined);
  check("runs/:id", ["runs", "1"], { id: "1" });
  check("runs/:id", ["runs"], undefined);
  check("runs/:id", ["runs", "1", "2"], undefined);
  check("flow/:tab?", ["flow"], {});
  check("flow/:tab?", ["flow", "t"], { tab: "t" });
});

test("a page exists if the session names its feature", () => {
  const all = PAGES.map(({ feature }) => feature);
  assert.equal(findPage(PAGES, all, ["tools"])?.page.feature, "tools");
  assert.equal(findPage(PAGES, all.filter((name) => name !== "tools"), ["tools"]), undefined);
  assert.equal(findPage(PAGES, all, ["nowhere"]), undefined);
  assert.deepEqual(findPage(PAGES, all, ["runs", "r1"])?.params, { id: "r1" });
});

test("follows the address of the window; filters make no entry in the history", async () => {
  startRouter(window);
  go(["runs"], { status: "failed" });
  await until("the place follows", () => place.value.path[0] === "runs");
  const before = window.history.length;
  replaceQuery({ status: "waiting" });
  assert.deepEqual(place.value.query, { status: "waiting" });
  assert.equal(window.location.hash, "#/runs?status=waiting");
  assert.equal(window.history.length, before);
});
