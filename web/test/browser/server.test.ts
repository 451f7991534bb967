// SPDX-License-Identifier: MIT
// The page of `snapkv serve`, as people use it: in headless Chromium, against the real program with
// the needle model. Run by ctest with the variables of pages.test.ts.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessibilityProblems, coloursIn } from "./support";
import { answers, begin, drop, end, facts, filler, finished, folder, makeEndless, open, question, send, serve, shot, type Server } from "./server_support";

let server: Server;
before(async () => {
  await begin();
  const snapshots = join(folder, "snapshots");
  mkdirSync(snapshots);
  server = await serve("--snapshot-dir", snapshots);
});
after(end);

test("a document, a question, the answer and what it cost", async () => {
  const { page, close } = await open(server.url);
  await drop(page, "facts.txt", facts);
  await page.locator(".chips", { hasText: /\d tokens/ }).waitFor();
  await send(page, question);
  await finished(page);
  assert.match((await answers(page).locator(".answer-text").textContent())!, /48213/);
  const values = Object.fromEntries(await page.$$eval("[data-fact]", (all) =>
    all.map((e) => [(e as HTMLElement).dataset.fact, e.querySelector("dd")!.textContent])));
  assert.match(values.kept!, /^64 of [1-9],?\d+$/);
  assert.match(values.bytes!, /^[\d.,]+ KiB of [\d.,]+ [KM]iB$/);
  assert.match(values.ratio!, /^1\d(\.\d)?×$|^[2-9]\d(\.\d)?×$/);
  assert.ok(values.first && values.speed);
  await page.locator("[data-do=source]").click();
  assert.equal(await page.locator(".document-text mark").textContent(), "The secret number of Rome is 48213.");
  assert.ok(await page.locator(".document-text mark").isVisible());
  await shot(page, "source");
  await page.getByText("What was kept").click();
  await page.locator("[data-chart=kept-map][data-drawn=true]").waitFor();
  await page.locator(".kept-box .text").waitFor();
  await page.getByText(/The text begins at token [\d,]+, where most is kept/).waitFor();
  assert.ok(await page.locator(".kept-box .text").evaluate((e) => e.scrollTop) > 0, "not at its top");
  assert.ok(await coloursIn(page, await page.locator("[data-chart=kept-map]").screenshot()) > 3, "the map is blank");
  const text = (await page.locator(".kept-box .text").textContent())!;
  assert.equal(text.replace(/^<s>/, "").trim(), `${facts.trim()}\n\n${question}`);
  const shades = await page.$$eval(".kept-box .text span", (all) => new Set(all.map((e) => (e as HTMLElement).style.background)).size);
  assert.ok(shades > 2, `${shades} shades`);
  assert.deepEqual(await accessibilityProblems(page), []);
  await shot(page, "kept");
  await page.locator(".log").evaluate((e) => (e.scrollTop = 0));
  await shot(page, "answer");
  // it is still there after a reload, and can be continued
  await page.reload();
  await page.locator(".answer-text", { hasText: "48213" }).waitFor();
  await send(page, question);
  await finished(page);
  assert.equal(await answers(page).count(), 2);
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator("[data-do=export]").click()]);
  const exported = JSON.parse(readFileSync((await file.path())!, "utf8"));
  assert.deepEqual([exported.kind, exported.turns.length, exported.turns[1].messages.length], ["snapkv conversation", 2, 3]);
  assert.equal(exported.turns[0].answers[0].kv.policy, "snapkv-max");
  await page.locator("[data-do=new]").click();
  await page.getByText("Long prompts, small caches").waitFor();
  assert.equal(await answers(page).count(), 0);
  await close();
});

test("text comes while it is written, and stops", async () => {
  const { page, close } = await open(server.url);
  await makeEndless(page);
  await send(page, "The cold wind");
  const text = answers(page).locator(".answer-text");
  await page.waitForFunction(() => (document.querySelector(".answer-text")?.textContent ?? "").length > 20);
  assert.equal(await answers(page).getAttribute("aria-busy"), "true");
  const length = (await text.textContent())!.length;
  await page.waitForFunction((n) => document.querySelector(".answer-text")!.textContent!.length > n, length);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Stopped.", { exact: true }).first().waitFor();
  const stopped = (await text.textContent())!;
  assert.ok(stopped.length >= length);
  await page.waitForTimeout(150);
  assert.equal(await text.textContent(), stopped, "text came after the stop");
  await page.locator("[data-sampling=max_tokens]").fill("5");
  await page.getByRole("button", { name: "Regenerate" }).click();
  await answers(page).and(page.locator("[data-state=done]")).waitFor();  // the old one is "stopped"
  await finished(page);
  assert.equal(await answers(page).count(), 1);
  assert.match((await page.locator(".details").allTextContents()).join(), /5 tokens written · stopped at the token limit/);
  await close();
});

test("a long prompt: progress, an estimate, and Escape", async () => {
  const slow = await serve("--chunk", "16", "--compute", "f32");
  const { page, close } = await open(slow.url);
  await page.evaluate(() => {
    const seen: string[] = [];
    Object.assign(window, { seen });
    new MutationObserver(() => {
      const line = document.querySelector(".answer .state")?.textContent;
      if (line && seen[seen.length - 1] !== line) seen.push(line);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await drop(page, "book.txt", facts.repeat(6));
  await send(page, question);
  await page.getByText(/Reading the prompt: .* left/).waitFor();
  assert.ok(await page.locator("progress").isVisible());
  assert.deepEqual(await accessibilityProblems(page), []);
  await shot(page, "reading");
  await page.keyboard.press("Escape");
  // the message is where it was written
  await page.getByText("Stopped before the answer began").waitFor();
  assert.equal(await page.getByLabel("Message", { exact: true }).inputValue(), question);
  await page.locator(".chips li", { hasText: "book.txt" }).waitFor();
  assert.equal(await page.locator(".turn").count(), 0);
  const seen = await page.evaluate(() => (window as unknown as { seen: string[] }).seen);
  assert.ok(seen.some((line) => /^Reading the prompt: [\d,]+ of [\d,]+ tokens, about .* left$/.test(line)), seen.join("\n"));
  await close();
  await slow.end();
});

test("SnapKV and the full cache side by side, and another policy", async () => {
  const { page, close } = await open(server.url);
  await drop(page, "facts.txt", facts);
  await page.getByLabel("Full cache beside it").check();
  await send(page, question);
  await finished(page);
  assert.equal(await answers(page).count(), 2);
  assert.deepEqual(await page.locator("article h3").allTextContents(), ["snapkv-max", "Full cache"]);
  const ratios = await page.locator("[data-fact=ratio] b").allTextContents();
  assert.equal(ratios[1], "all");
  assert.ok(parseFloat(ratios[0]) > 10, ratios[0]);
  assert.match((await page.locator(".comparison").textContent())!, /^The cache is \d.*× smaller, .*the answers are the same\.$/);
  const [a, b] = await Promise.all([0, 1].map((i) => answers(page).nth(i).boundingBox()));
  assert.ok(Math.abs(a!.y - b!.y) < 2 && b!.x >= a!.x + a!.width, "not side by side");
  assert.deepEqual(await accessibilityProblems(page), []);
  await shot(page, "beside");
  await page.getByLabel("Full cache beside it").uncheck();
  // the fields come from the policies' own tables
  await page.locator("[data-setting=policy]").selectOption("streaming-llm");
  assert.equal(await page.locator("[data-param=kernel_size]").count(), 0);
  assert.equal(await page.locator("aside .advanced[open]").count(), 0, "what few people change is closed");
  assert.ok(!(await page.locator("[data-param=sinks]").isVisible()));
  await page.locator("[data-param=budget]").fill("100");
  await page.locator("[data-param=budget]").blur();
  await page.getByRole("button", { name: "Regenerate" }).click();
  await page.locator("article h3", { hasText: "streaming-llm" }).waitFor();  // the new answer has begun
  await finished(page);
  assert.deepEqual(await page.locator("article h3").allTextContents(), ["streaming-llm"]);
  assert.match((await page.locator("[data-fact=kept] dd").textContent())!, /^100 of /);
  await page.locator("[data-param=budget]").fill("0");
  await page.locator("[data-param=budget]").blur();
  assert.equal(await page.locator("[data-param=budget]").getAttribute("aria-invalid"), "true");
  await page.reload(); // the valid setting is kept, the invalid one was not stored
  assert.equal(await page.locator("[data-param=budget]").inputValue(), "100");
  await close();
});

test("snapshots: made of a document, used, deleted", async () => {
  const { page, close } = await open(server.url);
  await page.getByLabel("A new one keeps").selectOption("chosen");
  await drop(page, "old facts.txt", facts);
  await page.getByRole("button", { name: "Make a snapshot" }).click();
  const row = page.locator("[data-snapshot=old-facts]");
  await row.waitFor();
  assert.equal(await row.getByRole("button").first().getAttribute("aria-pressed"), "true");
  assert.ok(await page.getByLabel("Full cache beside it").isDisabled());
  assert.equal(await page.locator(".chips li").count(), 0);
  await send(page, question);
  await finished(page);
  assert.deepEqual(await page.locator("article h3").allTextContents(), ["Snapshot old-facts"]);
  assert.match((await page.locator(".details").allTextContents()).join(), /tokens not read again/);
  // its own policy, not the page's
  assert.match((await page.locator(".own-policy").textContent())!, /kvzip, 64 of [\d,]+ rows/);
  assert.match((await row.textContent())!, /kvzip, 64 of/);
  assert.equal(await page.locator("[data-setting=policy]").count(), 0);
  assert.deepEqual(await accessibilityProblems(page), []);
  await shot(page, "snapshot");
  await page.getByRole("button", { name: "Delete old-facts" }).click();
  await page.getByRole("button", { name: "Really delete old-facts?" }).click();
  await row.waitFor({ state: "detached" });
  await page.locator("[data-setting=policy]").waitFor();
  assert.ok(await page.getByLabel("Full cache beside it").isEnabled());
  await close();
});

test("what goes wrong is said, and markup stays text", async () => {
  const { page, close } = await open(server.url, { expected: /status of 400/ });
  const buffer = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xff, 0x00]);
  await page.locator("input[type=file]").setInputFiles({ name: "cat.png", mimeType: "image/png", buffer });
  await page.getByText("cat.png: a PNG image, not a document").waitFor();
  await page.locator("input[type=file]").setInputFiles({ name: "page.html", mimeType: "text/html",
    buffer: Buffer.from("<html><head><title>T</title></head><body><p>Words of a page</p></body></html>") });
  await page.locator(".chips li", { hasText: "page.html" }).waitFor();
  await page.getByRole("button", { name: "Remove page.html" }).click();
  await drop(page, "<img src=x onerror=alert(1)>.txt", `<script>alert(1)</script>${filler}`);
  await send(page, "<b>markup</b>");
  await finished(page);
  assert.equal(await page.locator(".log img, .log script, .log b:not(.facts b)").count(), 0);
  const pasted = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    return data;
  }, filler.repeat(50));
  await page.getByLabel("Message", { exact: true }).evaluate((e, data) =>
    e.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, cancelable: true })), pasted);
  await page.locator(".chips li", { hasText: "Pasted text" }).waitFor();
  await page.getByRole("button", { name: "Remove Pasted text" }).click();
  assert.equal(await page.locator(".chips li").count(), 0);
  await close();
});

test("dark, narrow, and by keyboard only", async () => {
  const shots: Buffer[] = [];
  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 400], ["dark", 400]] as const) {
    const { page, close } = await open(server.url, { scheme, width });
    await page.getByLabel("Message", { exact: true }).waitFor();
    assert.ok(await page.evaluate(() => document.activeElement?.matches("textarea")), "the message is not focused");
    await page.getByLabel("Full cache beside it").check();
    await page.keyboard.press("Tab");
    await page.getByLabel("Message", { exact: true }).focus();
    await page.keyboard.type(`${question.split("\n")[0]} ${"x".repeat(120)}`);
    await page.keyboard.press("Enter");
    await finished(page);
    shots.push(await shot(page, `${scheme}-${width}`));
    const check = async (what: string) => {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wide <= 0, `${what} at ${width}: ${wide} pixels too wide`);
      const inner = await page.$$eval(".log, aside, .composer", (all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.className));
      assert.deepEqual(inner, [], `${what} at ${width} scrolls sideways`);
      assert.deepEqual(await accessibilityProblems(page), [], `${what}, ${scheme}, ${width}`);
    };
    await check("the chat");
    if (width < 1000) {
      assert.ok(!(await page.locator("aside").isVisible()));
      await page.getByRole("button", { name: "Settings" }).focus();
      await page.keyboard.press("Enter");
    }
    await page.locator("[data-setting=policy]").waitFor();
    for (const section of await page.$$("aside > details:not([open]) > summary")) await section.click();
    await check("the settings");
    await shot(page, `settings-${scheme}-${width}`);
    await close();
  }
  assert.ok(!shots[0].equals(shots[1]), "dark looks like light");
});

test("a server that asks for a key", async () => {
  const locked = await serve("--api-key", "secret");
  try {
    const { page, close } = await open(locked.url, { expected: /status of 401/ });
    await page.getByText("This server asks for an API key.").waitFor();
    assert.deepEqual(await accessibilityProblems(page), []);
    await page.getByLabel("API key", { exact: true }).last().fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("no valid API key").waitFor();
    await page.getByLabel("API key", { exact: true }).last().fill("secret");
    await page.keyboard.press("Enter");
    await page.getByLabel("Message", { exact: true }).waitFor();
    await page.reload();
    await page.getByLabel("Message", { exact: true }).waitFor();
    assert.equal(await page.locator("[data-section=Snapshots]").count(), 0); // no --snapshot-dir
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes("secret")), false);
    await close();
  } finally {
    await locked.end();
  }
});
