// Builds dist/: node build.mjs [FOLDER]. The same sources give the same bytes.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });
await build({
  entryPoints: ["src/app.tsx", "src/app.css"],
  outdir: out,
  bundle: true,
  splitting: true,
  chunkNames: "[name]",
  minify: true,
  format: "esm",
  target: "es2021",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
});
copyFileSync("src/index.html", `${out}/index.html`);
const licences = ["preact", "@preact/signals", "@preact/signals-core", "uplot"].map(
  (name) => `${name}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8")}`);
writeFileSync(`${out}/LICENSES.txt`, licences.map((text) => text.trimEnd()).join("\n\n") + "\n");
const inputs = ["build.mjs", "package-lock.json", "tsconfig.json", ...readdirSync("src").sort().map((f) => `src/${f}`)];
const lines = inputs.map(
  (f) => `${createHash("sha256").update(readFileSync(f)).digest("hex")}  ${f}\n`);
writeFileSync(`${out}/inputs.sha256`, lines.join(""));
