// Builds the console into an empty dist/. The same sources give the same bytes. Names have no hashes, because the sidecar
// serves the files below a digest of all of them.

import { copyFileSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";

import { looseParts } from "./dagre.mjs";

/** The most bytes of all files together, after gzip. The page MCP with its words in three languages took 5 kB of it. */
const MAX_GZIP_BYTES = 136_000;

const folder = fileURLToPath(new URL("..", import.meta.url));
const source = join(folder, "src");
const result = process.argv[2] ?? join(folder, "dist");
// The result appears whole: what an interrupted build leaves does not count as a build.
const dist = `${result}.part`;

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const jsx = { jsx: "automatic", jsxImportSource: "preact" };

// Comments are removed, and names in libraries are shortened. Our own names and lines stay: a stack trace of a user can be read.
const scripts = {
  name: "scripts",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.(m?js|tsx?)$/ }, async ({ path }) => {
      const options = path.includes("node_modules") ? { minify: true } : { minifyWhitespace: true, minifySyntax: true };
      const text = readFileSync(path, "utf8");
      const { code } = await transform(path.endsWith("dagre.esm.js") ? looseParts(text) : text, { loader: path.endsWith("x") ? "tsx" : "ts", ...jsx, ...options });
      return { contents: code };
    }),
};

const bundle = await build({
  absWorkingDir: folder,
  entryPoints: [join(source, "main.tsx")],
  outfile: join(dist, "console.js"),
  write: false,
  bundle: true,
  format: "esm",
  target: "es2022",
  plugins: [scripts],
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
});

// A comment names the file of each part; the notices are made of these. Libraries need no lines.
const parts = bundle.outputFiles[0].text.split(/^(\/\/ node_modules\/\S+\n)([^]*?)(?=^\/\/ \S+$)/m);
const packed = parts.map(async (part, index) => (index % 3 === 2 ? (await transform(part, { minify: true })).code : part));
writeFileSync(join(dist, "console.js"), (await Promise.all(packed)).join(""));

await build({
  absWorkingDir: folder,
  entryPoints: [join(source, "console.css")],
  outfile: join(dist, "console.css"),
  bundle: true,
  minify: true,
  target: "es2022",
  logLevel: "warning",
});

for (const name of ["index.html", "icon.svg"]) {
  copyFileSync(join(source, name), join(dist, name));
}
const read = (...path) => JSON.parse(readFileSync(join(...path), "utf8"));
const catalogues = join(folder, "..", "node-red-bridge", "src", "editor", "locales");
// The English catalogue has the sidecar's phrases only.
const phrases = Object.keys(read(catalogues, "en-US", "phrases.json"));
// English is in the script. The other languages have their texts in its order, without keys: those are a quarter of a file.
const english = await build({ entryPoints: [join(source, "words", "en.ts")], write: false, bundle: true, format: "esm" });
const { EN } = await import(`data:text/javascript,${encodeURIComponent(english.outputFiles[0].text)}`);
for (const language of ["es", "de"]) {
  const [own, timeline] = ["words", "timeline/words"].map((path) => read(source, path, `${language}.json`));
  const words = { ...own, ...timeline };
  const translated = read(catalogues, language, "phrases.json");
  const sentences = Object.fromEntries(phrases.map((key) => [key, translated[key]]));
  writeFileSync(join(dist, `words.${language}.json`), `${JSON.stringify({ texts: Object.keys(EN).map((key) => words[key]), phrases: sentences })}\n`);
}

const sizes = readdirSync(dist).toSorted().map((name) => ({ name, bytes: gzipSync(readFileSync(join(dist, name)), { level: 9 }).length }));
const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
console.log(sizes.map(({ name, bytes }) => `${name} ${bytes}`).join(", "));
console.log(`console: ${total} bytes after gzip, at most ${MAX_GZIP_BYTES}`);
if (total > MAX_GZIP_BYTES) {
  console.error("console: too large. Remove a dependency or load less.");
  process.exitCode = 1;
} else {
  rmSync(result, { recursive: true, force: true });
  renameSync(dist, result);
}
