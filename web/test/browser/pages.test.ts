// SPDX-License-Identifier: MIT
// The pages that the real program writes, in headless Chromium without a network: their data, their
// charts, choices and saved files, light and dark, wide and narrow. Run by ctest with
//   SNAPKV_BINARY, SNAPKV_MODEL (models/needle.gguf), CHROMIUM; SCREENSHOTS: a folder to keep them in.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { accessibilityProblems, coloursIn, required } from "./support";

const binary = required("SNAPKV_BINARY");
const model = required("SNAPKV_MODEL");
const folder = mkdtempSync(join(tmpdir(), "snapkv-pages-"));
let browser: Browser;

/** Runs the program and returns its stdout. */
function snapkv(...args: string[]): string {
  const env = { ...process.env, OMP_WAIT_POLICY: "passive" };
  const run = spawnSync(binary, [...args, "--no-progress"], { encoding: "utf8", cwd: folder, env });
  assert.equal(run.status, 0, `snapkv ${args.join(" ")}\n${run.stderr}`);
  return run.stdout;
}

const lines = (text: string) => text.trim().split("\n").map((line) => JSON.parse(line));

interface Opened {
  page: Page;
  close(): Promise<void>;
}

/** Opens a page; `close` fails if it logged an error or requested anything but itself. */
async function open(file: string, scheme: "light" | "dark" = "light", width = 1280): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme,
    offline: true, acceptDownloads: true });
  const page = await context.newPage();
  const url = pathToFileURL(file).href;
  const problems: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== url && !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector("footer, .failure") !== null);
  return { page, close: async () => {
    await context.close();
    assert.deepEqual(problems, []);
  } };
}

const dataOf = (page: Page) => page.$eval("#data", (e) => JSON.parse(e.textContent ?? ""));

/** Checks that every chart of the list exists, is drawn and shows more than one colour. */
async function checkCharts(page: Page, expected: string[]): Promise<void> {
  const names = await page.$$eval("[data-chart]", (all) => all.map((e) => (e as HTMLElement).dataset.chart));
  assert.deepEqual(names, expected);
  for (const chart of await page.$$("[data-chart]")) {
    await chart.scrollIntoViewIfNeeded();
    const name = await chart.getAttribute("data-chart");
    const colours = await coloursIn(page, await chart.screenshot());
    assert.ok(colours > 20, `${name}: ${colours} colours`);
  }
  const captions = await page.$$eval(".card .caption", (all) => all.map((e) => e.textContent ?? ""));
  assert.ok(captions.every((text) => text.length > 40), "a sentence under every chart");
}

async function checkLooks(file: string): Promise<void> {
  const shots: Buffer[] = [];
  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 390], ["dark", 390]] as const) {
    const { page, close } = await open(file, scheme, width);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${file} at ${width}: ${wide} pixels too wide`);
    const shot = await page.screenshot({ fullPage: true });
    shots.push(shot);
    if (process.env.SCREENSHOTS) {
      writeFileSync(join(process.env.SCREENSHOTS, `${file.replace(/^.*\/|\.html$/g, "")}-${scheme}-${width}.png`), shot);
    }
    assert.ok(await coloursIn(page, shot) > 100, "the screenshot is blank");
    await close();
  }
  assert.ok(!shots[0].equals(shots[1]), "dark looks like light");
}

/** Chooses every option of every list: none may fail, and the picture must change at least once. */
async function checkChoices(page: Page): Promise<void> {
  for (const card of await page.$$(".card")) {
    const select = await card.$("select");
    if (!select) continue;
    const chart = (await card.$("[data-chart]"))!;
    const values = await select.$$eval("option", (all) => all.map((o) => o.value));
    const pictures = new Set<string>();
    for (const value of values.slice(0, 12)) {
      await select.selectOption(value);
      pictures.add((await chart.screenshot()).toString("base64"));
    }
    assert.ok(pictures.size > 1, `${await card.getAttribute("data-card")}: no choice changes anything`);
  }
}

/** Checks both files of every card: with title, drawn and of a readable size. */
async function checkSaves(page: Page): Promise<void> {
  for (const button of await page.$$("button[data-save]")) {
    const format = (await button.getAttribute("data-save"))!;
    const card = (await button.evaluateHandle((b) => b.closest(".card"))).asElement()!;
    const name = await card.getAttribute("data-card");
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    const path = join(folder, download.suggestedFilename());
    await download.saveAs(path);
    assert.match(path, new RegExp(`snapkv-[a-z-]+\\.${format}$`));
    const content = readFileSync(path);
    if (format === "png") {
      assert.ok(await coloursIn(page, content) > 20, `${name}: the PNG is blank`);
    } else {
      const title = await card.$eval("h2", (e) => (e.textContent ?? "").split(" ")[0]);
      assert.ok(content.toString().startsWith("<svg") && content.includes(title), `${name}: ${content.subarray(0, 200)}`);
      assert.ok(!/href="https?:/.test(content.toString()), "the SVG needs other files");
      const errors = await page.evaluate((svg) => new DOMParser().parseFromString(svg, "image/svg+xml")
        .getElementsByTagName("parsererror").length, content.toString());
      assert.equal(errors, 0, `${name}: not well-formed`);
    }
    if (process.env.SCREENSHOTS) writeFileSync(join(process.env.SCREENSHOTS, download.suggestedFilename()), content);
  }
}

/** The tooltip that a pointer over the middle of a chart shows. */
async function tooltipOf(page: Page, chart: string): Promise<string> {
  const element = (await page.$(`[data-chart="${chart}"]`))!;
  await element.scrollIntoViewIfNeeded();
  const box = (await element.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.4);
  await page.mouse.move(box.x + box.width * 0.5 + 2, box.y + box.height * 0.4);
  return (await page.$eval("#tip", (e) => e.textContent)) ?? "";
}

before(async () => {
  browser = await chromium.launch({ executablePath: required("CHROMIUM"), args: ["--no-sandbox"] });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const kCache = ["--kv-window", "16", "--kv-kernel", "15"];

test("eval: the records of the file as charts", async () => {
  const [records, file] = [join(folder, "eval.jsonl"), join(folder, "eval.html")];
  snapkv("eval", "needle", "-m", model, "-t", "1", "--out", records, "--html", file, "--lengths", "300,600",
    "--depths", "3", "--budgets", "32,128", ...kCache);
  const { page, close } = await open(file);
  const data = await dataOf(page);
  const written = lines(readFileSync(records, "utf8"));
  assert.equal(written.length, 18);
  for (const record of written) delete record.prompt; // several megabytes that are not needed
  assert.deepEqual(data.records, written);
  assert.equal(data.kind, "eval");
  await checkCharts(page, ["quality", "needle-grid"]);
  await checkChoices(page);
  await checkSaves(page);
  assert.equal(await page.$$eval("table tbody tr", (rows) => rows.length), 3);
  await close();
  await checkLooks(file);
});

test("eval: tasks as a map, predictions against budget", async () => {
  const [ruler, text, fidelity] = ["ruler.html", "text.txt", "fidelity.html"].map((name) => join(folder, name));
  snapkv("eval", "ruler", "-m", model, "-t", "1", "--tasks", "niah_single_1,niah_single_2,niah_multikey_1", "--lengths", "700",
    "--samples", "1", "--budgets", "64", "--html", ruler, ...kCache);
  let { page, close } = await open(ruler);
  await checkCharts(page, ["quality", "task-map"]);
  await checkSaves(page);
  await close();
  writeFileSync(text, "The cold wind blew from the sea, and the baker sold his bread. ".repeat(120));
  snapkv("eval", "fidelity", "-m", model, "-t", "1", "--text", text, "--lengths", "300", "--samples", "2",
    "--budgets", "64,128", "--html", fidelity, ...kCache);
  ({ page, close } = await open(fidelity));
  await checkCharts(page, ["fidelity-budget", "fidelity"]);
  await checkChoices(page);
  await close();
});

test("inspect: what a prompt's cache keeps", async () => {
  const [json, file, prompt] = ["inspect.json", "inspect.html", "prompt.txt"].map((name) => join(folder, name));
  // markup that, if it were not escaped, would end the data block or become an element
  const text = "</script><script>alert(1)</script><!-- <b>é € 😀\n";
  writeFileSync(prompt, text + "The cold wind blew from the sea. ".repeat(120) +
    "The secret number of Rome is 48213. " + "The cold wind blew from the sea. ".repeat(60) +
    "\nQuestion: What is the secret number of Rome?\nAnswer: The secret number of Rome is");
  snapkv("inspect", "-m", model, "-t", "1", "-f", prompt, "--kv-budget", "64", ...kCache, "--spotlight", "5,20-40",
    "--json", json, "-o", file);
  assert.ok(statSync(file).size < 4_000_000);
  const { page, close } = await open(file);
  assert.deepEqual(await dataOf(page), JSON.parse(readFileSync(json, "utf8")));
  await checkCharts(page, ["spotlight", "scores", "cache-matrix", "kept-map"]);
  const shown = await page.$$eval(".text", (boxes) => boxes.map((b) => b.textContent));
  assert.equal(shown.length, 2);
  // the tokenizer puts a space before the first word
  for (const words of shown) assert.equal(words!.trimStart(), readFileSync(prompt, "utf8"));
  assert.equal(await page.$$eval("b, script", (all) => all.filter((e) => e.closest(".text")).length), 0);
  assert.match(await tooltipOf(page, "kept-map"), /layer \d+, KV head \d+\ntokens? [\d,]+.*\n(not kept|kept|.*% kept)/s);
  assert.match(await tooltipOf(page, "scores"), /% of the attention/);
  await checkChoices(page);
  await checkSaves(page);
  await close();
  await checkLooks(file);
});

test("inspect: a text beyond the limit is cut, and the page says so", async () => {
  const file = join(folder, "cut.html");
  snapkv("inspect", "-m", model, "-t", "1", "-p", "The cold wind blew from the sea. ".repeat(60), "--kv-budget", "64",
    ...kCache, "--text-limit", "100", "-o", file);
  const { page, close } = await open(file);
  const words = await page.$eval("body", (e) => (e as HTMLElement).innerText);
  assert.match(words, /The text is cut: this page holds 100 tokens of \d+/);
  assert.match(words, /… \d+ tokens not on this page/);
  await close();
});

test("bench: memory and latency by context", async () => {
  const file = join(folder, "bench.html");
  const out = snapkv("bench", "-m", model, "-t", "1", "-p", "256,512", "-n", "8", "-d", "0,512", "-r", "2", "--no-check",
    "--kv-policy", "full,snapkv", "--kv-budget", "64", ...kCache, "-o", "jsonl", "--html", file);
  const { page, close } = await open(file);
  const data = await dataOf(page);
  assert.deepEqual(data.records, lines(out));
  await checkCharts(page, ["memory", "latency", "prompt-time", "prefill-parts", "roofline"]);
  await checkChoices(page);
  await checkSaves(page);
  assert.deepEqual(await accessibilityProblems(page), []);
  const shares = await page.$$eval("[data-card=roofline-table] tbody tr", (rows) =>
    rows.map((row) => row.children[3].textContent ?? ""));
  assert.equal(shares.length, data.records.length);
  data.records.forEach((record: { percent_of_limit: number }, i: number) =>
    assert.ok(Math.abs(parseFloat(shares[i]) - record.percent_of_limit) <= 0.5, `${shares[i]} of row ${i}`));
  await close();
  await checkLooks(file);
});

test("bench: tables scroll by keyboard, and the machine's limits may be left out", async () => {
  const file = join(folder, "no-limits.html");
  snapkv("bench", "-m", model, "-t", "1", "-p", "16", "-n", "2", "-r", "1", "--no-check", "--no-limits", "--html", file);
  const { page, close } = await open(file, "light", 390);
  assert.equal(await page.$("[data-chart=roofline]"), null);
  await page.focus("[data-card=bench-table] .table");
  for (let i = 0; i < 5; ++i) await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => document.querySelector("[data-card=bench-table] .table")!.scrollLeft > 0);
  await close();
});
