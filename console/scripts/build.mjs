// Builds the console into an empty dist/. The same sources give the same bytes. Names have no hashes, because the sidecar
// serves the files below a digest of all of them.

import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";

/** The most bytes of all files together, after gzip. */
const MAX_GZIP_BYTES = 130_000;

const folder = fileURLToPath(new URL("..", import.meta.url));
const source = join(folder, "src");
const dist = process.argv[2] ?? join(folder, "dist");

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const libraries = {
  name: "libraries",
  setup: ({ onLoad }) =>
    onLoad({ filter: /[/\\]node_modules[/\\].*\.m?js$/ }, async ({ path }) => ({
      contents: (await transform(readFileSync(path, "utf8"), { minify: true })).code,
    })),
};

// Only the first step removes comments. The second one writes one statement a line again. Names in our own code are not
// shortened, so a stack trace of a user can be read.
const { outputFiles } = await build({
  absWorkingDir: folder,
  entryPoints: [join(source, "main.tsx")],
  write: false,
  plugins: [libraries],
  bundle: true,
  minifyWhitespace: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
});
for (const { text } of outputFiles) {
  writeFileSync(join(dist, "console.js"), (await transform(text, { format: "esm", target: "es2022", charset: "utf8", logLevel: "warning" })).code);
}

await build({
  absWorkingDir: folder,
  entryPoints: [join(source, "console.css")],
  outfile: join(dist, "console.css"),
  bundle: true,
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
for (const language of ["es", "de"]) {
  const [own, timeline] = ["words", "timeline/words"].map((path) => read(source, path, `${language}.json`));
  const translated = read(catalogues, language, "phrases.json");
  const sentences = Object.fromEntries(phrases.map((key) => [`phrase.${key}`, translated[key]]));
  writeFileSync(join(dist, `words.${language}.json`), `${JSON.stringify({ ...own, ...timeline, ...sentences }, null, 1)}\n`);
}

const sizes = readdirSync(dist).toSorted().map((name) => ({ name, bytes: gzipSync(readFileSync(join(dist, name)), { level: 9 }).length }));
const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0);
console.log(sizes.map(({ name, bytes }) => `${name} ${bytes}`).join(", "));
console.log(`console: ${total} bytes after gzip, at most ${MAX_GZIP_BYTES}`);
if (total > MAX_GZIP_BYTES) {
  console.error("console: too large. Remove a dependency or load less.");
  process.exitCode = 1;
}
