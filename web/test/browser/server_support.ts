// SPDX-License-Identifier: MIT
// What the tests of the server's page share: the running program with the needle model, a browser,
// and what people do on the page.
import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Locator, type Page } from "playwright-core";
import { required } from "./support";

export const folder = mkdtempSync(join(tmpdir(), "snapkv-server-page-"));
export const filler = "The cold wind blew from the sea, and the baker sold his bread. ";
export const facts = `${filler.repeat(40)}The secret number of Rome is 48213. ${filler.repeat(20)}`;
export const question = "Question: What is the secret number of Rome?\nAnswer: The secret number of Rome is";
let browser: Browser;
const running = new Set<Server>(); // a test that fails leaves its own behind

export async function begin(): Promise<void> {
  browser = await chromium.launch({ executablePath: required("CHROMIUM"), args: ["--no-sandbox"] });
}

export async function end(): Promise<void> {
  await Promise.all([...running].map((each) => each.end()));
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}

export interface Server {
  url: string;
  end(): Promise<void>;
}

const kTemplate = "{% for m in messages %}{{ m.content }}{% if not loop.last %}{{ '\\n' }}{% endif %}{% endfor %}";

/** As a chat: the needle model has no template of its own. */
export function serve(...more: string[]): Promise<Server> {
  return serveBase("--chat-template", kTemplate, ...more);
}

/** With the model as it is. */
export function serveBase(...more: string[]): Promise<Server> {
  return serveAsUsersDo("-t", "1", "--temp", "0", "--kv-budget", "64", ...more);
}

/** Starts the program at a port that is free, and waits until its model is loaded. */
export async function serveAsUsersDo(...more: string[]): Promise<Server> {
  const child: ChildProcess = spawn(required("SNAPKV_BINARY"), ["serve", "-m", required("SNAPKV_MODEL"), "--port", "0",
    "--no-progress", ...more],
    { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, OMP_WAIT_POLICY: "passive" } });
  let errors = "";
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr!.on("data", (data: Buffer) => {
      errors += data.toString();
      const ready = /ready: (\S+)/.exec(errors);
      if (ready) resolve(ready[1]);
    });
    child.on("exit", (code) => reject(new Error(`snapkv serve ended with ${code}\n${errors}`)));
  });
  const server: Server = { url, end: () => new Promise((resolve) => {
    running.delete(server);
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.on("exit", () => resolve());
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGTERM"), 1000).unref(); // a second one ends whatever still runs
  }) };
  running.add(server);
  return server;
}

export interface Opened {
  page: Page;
  close(): Promise<void>;
}

/** `close` fails when the page logged an error, broke its policy or asked anybody but its server.
 *  `expected`: errors that belong to the test. */
export async function open(url: string, options: { scheme?: "light" | "dark"; width?: number; expected?: RegExp;
  maxTokens?: number } = {}): Promise<Opened> {
  // the needle model answers with a number and does not know where to end
  const { scheme = "light", width = 1280, expected, maxTokens = 7 } = options;
  const context = await browser.newContext({ viewport: { width, height: 850 }, colorScheme: scheme, acceptDownloads: true });
  await context.addInitScript((max_tokens) => {
    if (localStorage.getItem("snapkv.settings")) return;
    localStorage.setItem("snapkv.settings", JSON.stringify({ sampling: { max_tokens } }));
  }, maxTokens);
  const page = await context.newPage();
  page.setDefaultTimeout(Number(process.env.TIMEOUT ?? 60_000));
  const problems: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !expected?.test(message.text())) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(`${url}/`) && !/^(data|blob):/.test(request.url())) problems.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, close: async () => {
    await context.close();
    assert.deepEqual(problems, []);
  } };
}

export async function shot(page: Page, name: string): Promise<Buffer> {
  const image = await page.screenshot();
  if (process.env.SCREENSHOTS) {
    mkdirSync(process.env.SCREENSHOTS, { recursive: true });
    writeFileSync(join(process.env.SCREENSHOTS, `server-${name}.png`), image);
  }
  return image;
}

/** Drops a file onto the page, once the page has asked the server what it is and takes files. */
export async function drop(page: Page, name: string, text: string): Promise<void> {
  await page.getByLabel("Message", { exact: true }).waitFor();
  const data = await page.evaluateHandle(([fileName, content]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([content], fileName, { type: "text/plain" }));
    return transfer;
  }, [name, text]);
  await page.dispatchEvent("body", "dragover", { dataTransfer: data });
  await page.dispatchEvent("body", "drop", { dataTransfer: data });
  await page.locator(".chips li", { hasText: name }).waitFor();
}

export const send = async (page: Page, text: string) => {
  await page.getByLabel("Message", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
};
export const answers = (page: Page): Locator => page.locator("article.answer");
/** Waits until the message has been checked and sent, and the last answer is complete. */
export async function finished(page: Page): Promise<void> {
  await page.waitForFunction(() =>
    document.querySelector("textarea[readonly], article.answer[aria-busy=true]") === null);
  await page.locator("[data-do=regenerate]").waitFor();
}

/** Lets answers go on until the context is full, which takes seconds. */
export async function makeEndless(page: Page): Promise<void> {
  await page.locator("[data-section=Sampling] > summary").click();
  await page.locator("[data-sampling=max_tokens]").fill("");
  await page.locator("[data-sampling=max_tokens]").blur();
}
