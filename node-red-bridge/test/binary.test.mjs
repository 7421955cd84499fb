// Where the program is found: with real packages, as npm lays them out.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { findBinary, mayLookFor, packagesFor, startProblem } from "../dist/binary.js";

/** A user directory with the bridge and these packages, each with its program. */
function user(t, packages, { file = "redflow", version = "0.1.0" } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "redflow-binary-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const scope = join(folder, "node_modules", "@redflow");
  const programs = packages.map((name) => {
    const bin = join(scope, name, "bin");
    mkdirSync(bin, { recursive: true });
    writeFileSync(join(scope, name, "package.json"), JSON.stringify({ name: `@redflow/${name}`, version }));
    writeFileSync(join(bin, file), "");
    return join(bin, file);
  });
  const from = join(scope, "node-red-bridge", "dist", "binary.js");
  return { programs, at: (platform, arch, env = {}) => ({ platform, arch, env, from, version: "0.1.0" }) };
}

test("what is named wins over the variable, that over the package, that over the PATH", (t) => {
  const { programs, at } = user(t, ["runtime-linux-x64"]);
  const env = { REDFLOW_BINARY: "/of/the/variable" };
  assert.equal(findBinary("/named", at("linux", "x64", env)), "/named");
  assert.equal(findBinary("", at("linux", "x64", env)), "/of/the/variable");
  assert.equal(findBinary("", at("linux", "x64", { REDFLOW_BINARY: " " })), programs[0]);
  assert.equal(findBinary("", at("linux", "x64")), programs[0]);
  assert.equal(findBinary("", user(t, []).at("linux", "x64")), "redflow");
});

test("each platform has the program of its own package", (t) => {
  const { programs, at } = user(t, ["runtime-linux-x64", "runtime-linux-arm64", "runtime-linux-arm"]);
  assert.deepEqual(["x64", "arm64", "arm"].map((arch) => findBinary("", at("linux", arch))), programs);
  assert.equal(findBinary("", at("linux", "riscv64")), "redflow");
  assert.equal(findBinary("", at("darwin", "arm64")), "redflow");
  const windows = user(t, ["runtime-win32-x64"], { file: "redflow.exe" });
  assert.equal(findBinary("", windows.at("win32", "x64")), windows.programs[0]);
});

test("where both are installed, the program that runs with either C library is taken", (t) => {
  const { programs, at } = user(t, ["runtime-linux-x64", "runtime-linux-x64-musl"]);
  assert.equal(findBinary("", at("linux", "x64")), programs[1]);
});

test("a package without its program is passed over", (t) => {
  const { programs, at } = user(t, ["runtime-linux-x64-musl", "runtime-linux-x64"]);
  rmSync(programs[0]);
  assert.equal(findBinary("", at("linux", "x64")), programs[1]);
  rmSync(programs[1]);
  assert.equal(findBinary("", at("linux", "x64")), "redflow");
});

test("a package of another version is passed over, and that is said", (t) => {
  const { programs, at } = user(t, ["runtime-linux-x64-musl", "runtime-linux-x64"]);
  const manifest = join(programs[0], "..", "..", "package.json");
  for (const [wrong, version] of [['{"version":"0.2.0"}', "0.2.0"], ["{}", "unknown"], ["nonsense", "unknown"]]) {
    writeFileSync(manifest, wrong);
    const said = [];
    assert.equal(findBinary("", at("linux", "x64"), (text) => said.push(text)), programs[1]);
    const name = "@redflow/runtime-linux-x64-musl";
    assert.deepEqual(said, [`${name} is of version ${version} and is not used; install ${name}@0.1.0, as this module is`]);
  }
  const old = user(t, ["runtime-linux-x64"], { version: "0.0.9" }).at("linux", "x64");
  assert.equal(findBinary("", old), "redflow");
  assert.match(startProblem("redflow", { code: "ENOENT" }, old), /linux-x64 is of version 0\.0\.9 .*PATH/);
  assert.equal(findBinary("/named", old, () => assert.fail("not asked for")), "/named");
});

test("on Windows only the PATH is looked at, never the working directory", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "redflow-binary-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "redflow.exe");
  writeFileSync(program, "");
  const at = (path) => user(t, []).at("win32", "x64", { Path: path });
  for (const [named, path, found] of [
    ["", `relative;;C;"${folder}"`, program],
    ["redflow", `${join(folder, "none")};${folder}`, program],
    ["redflow.exe", folder, program],
    ["other", folder, "other"],
    ["C:\\here\\redflow", folder, "C:\\here\\redflow"],
    ["", ".", "redflow"],
  ]) {
    assert.equal(findBinary(named, at(path)), found, `${named} ${path}`);
  }
  const windows = { platform: "win32" };
  const rows = ["redflow", "redflow.exe", "C:\\redflow.exe", "./redflow"].map((name) => mayLookFor(name, windows));
  assert.deepEqual([...rows, mayLookFor("redflow", { platform: "linux" })], [false, false, true, true, true]);
});

test("when there is no program, all places are named", () => {
  const said = startProblem("redflow", { code: "ENOENT" });
  for (const place of ["redflow-runtime node", "REDFLOW_BINARY", "PATH", ...packagesFor()]) {
    assert.ok(said.includes(place), `${place}: ${said}`);
  }
});

test("a program of another system is not said to be missing", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "redflow-binary-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "redflow");
  // As with another C library: the file is there, what loads it is not.
  writeFileSync(file, "#!/nowhere/loader\n");
  chmodSync(file, 0o755);
  const { error } = spawnSync(file);
  assert.equal(error.code, "ENOENT");
  assert.match(startProblem(file, error), /is there but was not made for this system/);
  assert.match(startProblem(join(folder, "other"), error), /there is no program/);
});
