// Where the `redflow` program is, and what is said when it does not start. Owns the order of the places that are looked
// at; never starts the program, and fetches none.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, isAbsolute, join } from "node:path";
import { version, versionOf } from "./version";

/** What the packages with the program are called, up to the platform. */
const PACKAGE = "@redflow/runtime-";

/** What the program is called on the PATH. */
const NAME = "redflow";

/** What is looked at. */
export interface Surroundings {
  platform: string;
  arch: string;
  env: NodeJS.ProcessEnv;
  /** The file, from which packages are looked up as Node.js does. */
  from: string;
  /** The version that this module has: a package of another one has a program that may not go with it. */
  version: string;
}

const { platform, arch, env } = process;
const HERE: Surroundings = { platform, arch, env, from: __filename, version };

/**
 * The packages that can hold the program for this platform, the best one first. npm installs the one that fits the C
 * library; the one for musl is linked statically and runs with either, so it is right wherever it lies.
 */
export function packagesFor({ platform, arch }: Pick<Surroundings, "platform" | "arch"> = HERE): string[] {
  const plain = `${PACKAGE}${platform}-${arch}`;
  return platform === "linux" ? [`${plain}-musl`, plain] : [plain];
}

/**
 * The program: the one that is named, else of REDFLOW_BINARY, else of an installed package, else from the PATH. `say` is
 * told what was passed over on the way.
 */
export function findBinary(
  named: string,
  surroundings: Surroundings = HERE,
  say: (text: string) => void = () => undefined,
): string {
  const given = named || surroundings.env["REDFLOW_BINARY"]?.trim();
  if (given) {
    return onPath(given, surroundings);
  }
  const { program, others } = packaged(surroundings);
  others.forEach(say);
  return program ?? onPath(NAME, surroundings);
}

/** The program in the package for this platform, if that is installed; and what is said of packages of other versions. */
function packaged(surroundings: Surroundings): { program: string | undefined; others: string[] } {
  const require = createRequire(surroundings.from);
  const file = surroundings.platform === "win32" ? `${NAME}.exe` : NAME;
  const others: string[] = [];
  for (const name of packagesFor(surroundings)) {
    let manifest: string;
    try {
      manifest = require.resolve(`${name}/package.json`);
    } catch {
      // It is optional.
      continue;
    }
    const found = versionOf(manifest);
    if (found !== surroundings.version) {
      const wanted = surroundings.version;
      others.push(`${name} is of version ${found ?? "unknown"} and is not used; install ${name}@${wanted}, as this module is`);
      continue;
    }
    const program = join(dirname(manifest), "bin", file);
    if (existsSync(program)) {
      return { program, others };
    }
  }
  return { program: undefined, others };
}

/** Windows would look into the working directory before the PATH, where anybody may have put a program. So we look. */
function onPath(program: string, { platform, env }: Surroundings): string {
  if (platform !== "win32" || !isBare(program)) {
    return program;
  }
  const path = Object.entries(env).find(([name]) => name.toUpperCase() === "PATH")?.[1] ?? "";
  const file = /\.(exe|com)$/i.test(program) ? program : `${program}.exe`;
  const places = path.split(";").map((folder) => folder.trim().replace(/^"(.*)"$/, "$1"));
  const files = places.filter((folder) => isAbsolute(folder)).map((folder) => join(folder, file));
  return files.find((file) => existsSync(file)) ?? program;
}

function isBare(program: string): boolean {
  return !/[\\/]/.test(program);
}

/** Whether the system may look for a program. On Windows it looks where it must not; we have looked already. */
export function mayLookFor(program: string, { platform }: Pick<Surroundings, "platform"> = HERE): boolean {
  return platform !== "win32" || !isBare(program);
}

/** Why the program could not be started, and what to do. */
export function startProblem(
  binary: string,
  { code }: Pick<NodeJS.ErrnoException, "code">,
  surroundings: Surroundings = HERE,
): string {
  const mend = "Give its place in the redflow-runtime node or in REDFLOW_BINARY, or put it on the PATH.";
  // The system also says that "it" is not there when what it needs to run is not.
  const foreign = code === "ENOEXEC" || (code === "ENOENT" && isAbsolute(binary) && existsSync(binary));
  if (foreign) {
    return `${binary} is there but was not made for this system (${process.platform} ${process.arch}, or its C library). ${mend}`;
  }
  if (code === "ENOENT" && binary === NAME) {
    const packages = packagesFor(surroundings).reverse().join(" or ");
    const { others } = packaged(surroundings);
    const none = others.length > 0 ? others.join("; ") : `the package ${packages} is not installed`;
    return (
      `there is no program ${NAME}: none is named in the redflow-runtime node or in REDFLOW_BINARY, ${none}, ` +
      "and it is not on the PATH. One of the four is needed."
    );
  }
  if (code === "ENOENT") {
    return `there is no program ${binary}. ${mend}`;
  }
  if (code === "EACCES") {
    return `${binary} may not be run. ${mend}`;
  }
  return `${binary} could not be started (${code ?? "unknown"}). ${mend}`;
}
