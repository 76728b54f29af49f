// Bundles each src/<page>/main.js and src/css/<page>.css (what pages share is in src/lib and src/css/parts) into dist/
// under names that carry a content hash, and writes dist/manifest.json, {"home.js": "home-4F2A.js", ...}, which the
// server's `asset("home.js")` reads. What an exported trace carries in itself (export.js, export-worker.js, export.css) is
// there too, each whole: no modules to fetch, no fonts.
import { existsSync } from "node:fs";
import { readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = import.meta.dirname;
const source = path.join(root, "src");
const dist = path.join(root, "dist");

const shared = {
  absWorkingDir: root,
  outdir: dist,
  bundle: true,
  minify: true,
  metafile: true,
  sourcemap: false,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  entryNames: "[name]-[hash]",
  chunkNames: "shared-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".woff2": "file", ".svg": "file" },
  logLevel: "warning",
};

/** Pages are the folders of src/ that have a main.js. */
async function pages() {
  const entries = await readdir(source, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return names.filter((name) => existsSync(path.join(source, name, "main.js"))).sort();
}

// What is no module: a worker, and what an exported trace carries.
const classic = { "src/trace/worker.js": "trace-worker.js", "src/export/entry.js": "export.js", "src/export/worker.js": "export-worker.js" };

/** Maps each entry's plain name, and each copied asset's, to its file in dist/. */
function names(metafile) {
  const found = {};
  for (const [output, { entryPoint, inputs }] of Object.entries(metafile.outputs)) {
    const file = path.basename(output);
    const from = entryPoint ?? (/\.(js|css)$/.test(file) ? null : Object.keys(inputs)[0]);
    if (!from) continue;
    const parts = from.split("/");
    const base = parts.at(-1) === "main.js" ? `${parts.at(-2)}.js` : (classic[from] ?? parts.at(-1));
    found[base] = file;
  }
  return found;
}

/** A page from disk takes the system's fonts. */
const withoutFonts = {
  name: "without-fonts",
  setup({ onLoad }) {
    onLoad({ filter: /\/parts\/fonts\.css$/ }, () => ({ contents: "", loader: "css" }));
  },
};

const results = await Promise.all([
  build({
    ...shared,
    entryPoints: Object.fromEntries((await pages()).map((name) => [name, `src/${name}/main.js`])),
    format: "esm",
    splitting: true,
  }),
  // Runs before the first paint, so it is a classic script of its own.
  build({ ...shared, entryPoints: ["src/lib/theme-early.js"], format: "iife" }),
  build({ ...shared, entryPoints: ["src/css/*.css"] }),
  build({ ...shared, entryPoints: Object.keys(classic), format: "iife" }),
  build({ ...shared, entryPoints: ["src/export/export.css"], plugins: [withoutFonts] }),
  build({ ...shared, entryPoints: ["src/favicon.svg"], loader: { ".svg": "copy" } }),
]);
// Compressed once here, at the best level, instead of at every request.
const texts = results.flatMap((result) => Object.keys(result.metafile.outputs)).filter((file) => /\.(js|css|svg)$/.test(file));
const zipped = texts.map((file) => `${path.basename(file)}.gz`);
await Promise.all(texts.map(async (file) => writeFile(path.join(root, `${file}.gz`), gzipSync(await readFile(path.join(root, file)), { level: 9 }))));
const manifest = Object.assign({}, ...results.map((result) => names(result.metafile)));
const sorted = Object.fromEntries(Object.entries(manifest).sort(([a], [b]) => (a < b ? -1 : 1)));
await writeFile(path.join(dist, ".manifest"), `${JSON.stringify(sorted, null, 1)}\n`);
await rename(path.join(dist, ".manifest"), path.join(dist, "manifest.json"));

// Stale files go last, so that a running server never points at nothing.
const fresh = new Set([...zipped, ...results.flatMap((result) => Object.keys(result.metafile.outputs).map((output) => path.basename(output)))]);
for (const file of await readdir(dist)) {
  if (!fresh.has(file) && file !== "manifest.json" && !file.startsWith(".")) await rm(path.join(dist, file));
}
