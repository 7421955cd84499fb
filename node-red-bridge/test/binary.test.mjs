// Finds the program, with packages in the layout of npm.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { canSearchPath, findBinary, packagesFor, startProblem } from "../dist/binary.js";

/** Creates a user directory with the bridge and these packages, each with its program. */
function userDirectory(t, packages, { file = "redflow", version = "0.1.0" } = {}) {
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

test("searches the setting, then the variable, then the package, then the PATH", (t) => {
  const { programs, at } = userDirectory(t, ["runtime-linux-x64"]);
  const env = { REDFLOW_BINARY: "/of/the/variable" };
  assert.equal(findBinary("/named", at("linux", "x64", env)), "/named");
  assert.equal(findBinary("", at("linux", "x64", env)), "/of/the/variable");
  assert.equal(findBinary("", at("linux", "x64", { REDFLOW_BINARY: " " })), programs[0]);
  assert.equal(findBinary("", at("linux", "x64")), programs[0]);
  assert.equal(findBinary("", userDirectory(t, []).at("linux", "x64")), "redflow");
});

test("uses the package of the platform", (t) => {
  const { programs, at } = userDirectory(t, ["runtime-linux-x64", "runtime-linux-arm64", "runtime-linux-arm"]);
  assert.deepEqual(["x64", "arm64", "arm"].map((arch) => findBinary("", at("linux", arch))), programs);
  assert.equal(findBinary("", at("linux", "riscv64")), "redflow");
  assert.equal(findBinary("", at("darwin", "arm64")), "redflow");
  const windows = userDirectory(t, ["runtime-win32-x64"], { file: "redflow.exe" });
  assert.equal(findBinary("", windows.at("win32", "x64")), windows.programs[0]);
});

test("prefers the program that runs with every C library", (t) => {
  const { programs, at } = userDirectory(t, ["runtime-linux-x64", "runtime-linux-x64-musl"]);
  assert.equal(findBinary("", at("linux", "x64")), programs[1]);
});

test("ignores a package without its program", (t) => {
  const { programs, at } = userDirectory(t, ["runtime-linux-x64-musl", "runtime-linux-x64"]);
  rmSync(programs[0]);
  assert.equal(findBinary("", at("linux", "x64")), programs[1]);
  rmSync(programs[1]);
  assert.equal(findBinary("", at("linux", "x64")), "redflow");
});

test("ignores a package of another version with a warning", (t) => {
  const { programs, at } = userDirectory(t, ["runtime-linux-x64-musl", "runtime-linux-x64"]);
  const manifest = join(programs[0], "..", "..", "package.json");
  for (const [wrong, version] of [['{"version":"0.2.0"}', "0.2.0"], ["{}", "unknown"], ["nonsense", "unknown"]]) {
    writeFileSync(manifest, wrong);
    const warnings = [];
    assert.equal(findBinary("", at("linux", "x64"), (text) => warnings.push(text)), programs[1]);
    const name = "@redflow/runtime-linux-x64-musl";
    assert.deepEqual(warnings, [`${name} has version ${version} and is not used; install ${name}@0.1.0, as this module is`]);
  }
  const old = userDirectory(t, ["runtime-linux-x64"], { version: "0.0.9" }).at("linux", "x64");
  assert.equal(findBinary("", old), "redflow");
  assert.match(startProblem("redflow", { code: "ENOENT" }, old).text, /linux-x64 has version 0\.0\.9 .*PATH/);
  assert.equal(findBinary("/named", old, () => assert.fail("no warning expected")), "/named");
});

test("searches only the PATH on Windows, never the working directory", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "redflow-binary-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = join(folder, "redflow.exe");
  writeFileSync(program, "");
  const at = (path) => userDirectory(t, []).at("win32", "x64", { Path: path });
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
  const rows = ["redflow", "redflow.exe", "C:\\redflow.exe", "./redflow"].map((name) => canSearchPath(name, windows));
  assert.deepEqual([...rows, canSearchPath("redflow", { platform: "linux" })], [false, false, true, true, true]);
});

test("names every search place when there is no program", () => {
  const { text: problem } = startProblem("redflow", { code: "ENOENT" });
  for (const place of ["redflow-runtime node", "REDFLOW_BINARY", "PATH", ...packagesFor()]) {
    assert.ok(problem.includes(place), `${place}: ${problem}`);
  }
});

test("distinguishes a program of another system from a missing one", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "redflow-binary-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "redflow");
  // As with another C library: the file exists, its loader does not.
  writeFileSync(file, "#!/nowhere/loader\n");
  chmodSync(file, 0o755);
  const { error } = spawnSync(file);
  assert.equal(error.code, "ENOENT");
  assert.match(startProblem(file, error).text, /exists but was not built for this system/);
  assert.match(startProblem(join(folder, "other"), error).text, /there is no program/);
});
