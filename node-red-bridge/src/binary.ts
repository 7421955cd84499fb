// Finds the `redflow` program, and explains why it did not start. Owns the search order. Never starts or downloads the
// program.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, isAbsolute, join } from "node:path";
import { version, versionOf } from "./version";
import { type Sentence, sentence } from "./sentence";

/** The name of the packages with the program, up to the platform. */
const PACKAGE_PREFIX = "@redflow/runtime-";

/** The name of the program on the PATH. */
const PROGRAM = "redflow";

/** The environment of the search. */
export interface SearchEnvironment {
  platform: string;
  arch: string;
  env: NodeJS.ProcessEnv;
  /** The file from which Node.js resolves packages. */
  from: string;
  /** The version of this module. The program of a package with another version may not fit. */
  version: string;
}

const { platform, arch, env } = process;
const THIS_PROCESS: SearchEnvironment = { platform, arch, env, from: __filename, version };

/**
 * The packages that may contain the program for this platform, best first. npm installs the one that fits the C library.
 * The one for musl is linked statically and runs with every C library, so it comes first.
 */
export function packagesFor({ platform, arch }: Pick<SearchEnvironment, "platform" | "arch"> = THIS_PROCESS): string[] {
  const name = `${PACKAGE_PREFIX}${platform}-${arch}`;
  return platform === "linux" ? [`${name}-musl`, name] : [name];
}

/**
 * The program: `named`, else REDFLOW_BINARY, else that of an installed package, else the one on the PATH. `warn` receives
 * a sentence about each package of another version.
 */
export function findBinary(
  named: string,
  environment: SearchEnvironment = THIS_PROCESS,
  warn: (text: string) => void = () => undefined,
): string {
  const given = named || environment.env["REDFLOW_BINARY"]?.trim();
  if (given) {
    return onPath(given, environment);
  }
  const { program, warnings } = findPackaged(environment);
  warnings.forEach((text) => warn(text));
  return program ?? onPath(PROGRAM, environment);
}

/** The program of an installed package for this platform, and warnings about packages of other versions. */
function findPackaged(environment: SearchEnvironment): { program: string | undefined; warnings: string[] } {
  const require = createRequire(environment.from);
  const file = environment.platform === "win32" ? `${PROGRAM}.exe` : PROGRAM;
  const warnings: string[] = [];
  for (const name of packagesFor(environment)) {
    let manifest: string;
    try {
      manifest = require.resolve(`${name}/package.json`);
    } catch {
      // The package is optional.
      continue;
    }
    const installed = versionOf(manifest);
    if (installed !== environment.version) {
      const expected = `${name}@${environment.version}`;
      warnings.push(`${name} has version ${installed ?? "unknown"} and is not used; install ${expected}, as this module is`);
      continue;
    }
    const program = join(dirname(manifest), "bin", file);
    if (existsSync(program)) {
      return { program, warnings };
    }
  }
  return { program: undefined, warnings };
}

/** The program on the PATH. Windows itself would first search the working directory, where others may put a program. */
function onPath(program: string, { platform, env }: SearchEnvironment): string {
  if (platform !== "win32" || !isBare(program)) {
    return program;
  }
  const path = Object.entries(env).find(([name]) => name.toUpperCase() === "PATH")?.[1] ?? "";
  const file = /\.(exe|com)$/i.test(program) ? program : `${program}.exe`;
  const folders = path.split(";").map((folder) => folder.trim().replace(/^"(.*)"$/, "$1"));
  const files = folders.filter((folder) => isAbsolute(folder)).map((folder) => join(folder, file));
  return files.find((file) => existsSync(file)) ?? program;
}

function isBare(program: string): boolean {
  return !/[\\/]/.test(program);
}

/** Whether the system may search for a bare name. Not on Windows, which would search the working directory. */
export function canSearchPath(program: string, { platform }: Pick<SearchEnvironment, "platform"> = THIS_PROCESS): boolean {
  return platform !== "win32" || !isBare(program);
}

/** The reason why the program did not start, and how to fix it. */
export function startProblem(
  binary: string,
  { code }: Pick<NodeJS.ErrnoException, "code">,
  environment: SearchEnvironment = THIS_PROCESS,
): Sentence {
  const help = sentence("program_help");
  const program = { text: binary };
  // The system reports ENOENT also for an existing program whose loader is missing.
  const isForeign = code === "ENOEXEC" || (code === "ENOENT" && isAbsolute(binary) && existsSync(binary));
  if (isForeign) {
    return sentence("program_foreign", { program, system: { text: `${process.platform} ${process.arch}` }, help });
  }
  if (code === "ENOENT" && binary === PROGRAM) {
    const packages = packagesFor(environment).toReversed().join(" or ");
    const { warnings } = findPackaged(environment);
    const none = sentence("package_missing", { packages: { text: packages } });
    const missing = warnings.length > 0 ? { text: warnings.join("; ") } : none;
    return sentence("program_nowhere", { program, missing });
  }
  if (code === "ENOENT") {
    return sentence("program_missing", { program, help });
  }
  if (code === "EACCES") {
    return sentence("program_not_executable", { program, help });
  }
  return sentence("program_failed", { program, code: { text: code ?? "unknown" }, help });
}
