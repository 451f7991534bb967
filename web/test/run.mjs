// SPDX-License-Identifier: MIT
// node test/run.mjs [FOLDER]: runs the tests in Node, or those of a folder in a browser: browser, or
// first_hour, which needs a real model. They are TypeScript, which Node 18 can't read, so esbuild
// bundles them first. Run by ctest.
import { spawnSync } from "node:child_process";
import { accessSync, constants, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** The browser in CHROMIUM, or an installed one; undefined if there is none. */
function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const files = (process.env.PATH ?? "").split(delimiter).flatMap((dir) => names.map((name) => join(dir, name)));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const inBrowser = process.argv[2];
const chromium = inBrowser ? findChromium() : "";
if (chromium === undefined) {
  console.log("SKIPPED: no Chromium was found (Debian: apt-get install chromium), CHROMIUM=FILE names one");
  process.exit(77); // ctest: skipped
}
const here = dirname(fileURLToPath(import.meta.url));
const folder = inBrowser ? join(here, inBrowser) : here;
const tests = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
if (tests.length === 0) throw new Error(`${folder}: no tests`);
const out = mkdtempSync(join(tmpdir(), "snapkv-web-"));
let status = 1;
try {
  await build({
    entryPoints: tests.map((name) => join(folder, name)), outdir: out, bundle: true, format: "cjs",
    platform: "node", target: "node18", external: ["playwright-core"], outExtension: { ".js": ".cjs" },
    sourcemap: "inline", logLevel: "warning",
  });
  const files = tests.map((name) => join(out, name.replace(/\.ts$/, ".cjs")));
  const env = { ...process.env, CHROMIUM: chromium, NODE_PATH: join(here, "..", "node_modules") };
  status = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files],
    { stdio: "inherit", env }).status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
process.exit(status);
