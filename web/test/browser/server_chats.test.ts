// SPDX-License-Identifier: MIT
// The page of `snapkv serve`: what does not fit or fails, conversations, messages that are edited or
// deleted, base models, snapshots of others. As server.test.ts.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { accessibilityProblems } from "./support";
import { answers, begin, drop, end, facts, filler, finished, folder, makeEndless, open, question, send, serve, serveBase, shot, type Server } from "./server_support";

let server: Server;
before(async () => {
  await begin();
  const snapshots = join(folder, "others");
  mkdirSync(snapshots);
  server = await serve("--snapshot-dir", snapshots, "-c", "2048");
});
after(end);

const message = (page: Page) => page.getByLabel("Message", { exact: true });
const turns = (page: Page) => page.locator(".turn");

/** The bodies of the requests that compute an answer, from now on. */
function computed(page: Page): string[] {
  const bodies: string[] = [];
  page.on("request", (request) => {
    if (/\/v1\/(chat\/)?completions$/.test(request.url())) bodies.push(request.postData() ?? "");
  });
  return bodies;
}

test("a document that does not fit is told when it is added, and cut to what does", async () => {
  const { page, close } = await open(server.url);
  const bodies = computed(page);
  await drop(page, "book.txt", facts.repeat(4));
  const problem = page.locator(".composer .error");
  await problem.getByText(/“book.txt” does not fit: it has [\d,]+ tokens.*the context holds 2,048/).waitFor();
  await problem.getByText(/A server started with -c 8192 could read 8,192/).waitFor();
  assert.deepEqual(await accessibilityProblems(page), []);
  await shot(page, "too-long");
  await send(page, question);
  await problem.getByText(/does not fit/).waitFor();
  assert.equal(await message(page).inputValue(), question, "the message stays");
  assert.equal(await turns(page).count(), 0);
  assert.equal(bodies.length, 0, "nothing was sent");
  await problem.getByRole("button", { name: /Take the first 1,[\d]+ tokens/ }).click();
  await page.locator(".chips li", { hasText: /book.txt, first [\d,]+ tokens/ }).waitFor();
  await problem.waitFor({ state: "hidden" });
  await page.keyboard.press("Enter");
  await finished(page);
  assert.equal(bodies.length, 1);
  // with this in the conversation another one has no room
  await drop(page, "facts.txt", facts);
  await problem.getByText(/A new conversation has more room|of its tokens would fit/).waitFor();
  await page.getByRole("button", { name: "Remove facts.txt" }).click();
  await problem.waitFor({ state: "hidden" });
  await close();
});

test("a message that fails goes back to where it was written", async () => {
  const { page, close } = await open(server.url, { expected: /status of 500/ });
  const bodies = computed(page);
  await page.route("**/v1/chat/completions", (route) => route.fulfill({ status: 500, contentType: "application/json",
    body: JSON.stringify({ error: { message: "the disk is on fire" } }) }));
  await drop(page, "facts.txt", facts);
  await send(page, "What burns?");
  await page.locator(".notice", { hasText: "the disk is on fire" }).waitFor();
  assert.equal(await message(page).inputValue(), "What burns?");
  await page.locator(".chips li", { hasText: "facts.txt" }).waitFor();
  assert.equal(await turns(page).count(), 0);
  await page.unroute("**/v1/chat/completions");
  await send(page, question);
  await finished(page);
  assert.ok(!bodies[1].includes("What burns?"), "the failed message is in no later one");
  // an answer that can't be written anew leaves the old one
  const text = await answers(page).locator(".answer-text").textContent();
  await page.route("**/v1/chat/completions", (route) => route.fulfill({ status: 500, body: "x" }));
  await page.locator("[data-do=regenerate]").click();
  await page.locator(".notice", { hasText: "the server answered 500" }).waitFor();
  assert.equal(await answers(page).locator(".answer-text").textContent(), text);
  await close();
});

test("conversations are kept, listed, opened and deleted", async () => {
  const { page, close } = await open(server.url);
  await send(page, "The first one");
  await finished(page);
  await page.locator("[data-do=new]").click();
  await page.getByText("Long prompts, small caches").waitFor();
  await send(page, "The second one");
  await finished(page);
  await page.locator("[data-do=conversations]").click();
  const list = page.locator("#conversations li");
  await list.nth(1).waitFor();
  assert.deepEqual(await list.locator("b").allTextContents(), ["The second one", "The first one"]);
  assert.equal(await list.first().locator(".open").getAttribute("aria-current"), "true");
  assert.deepEqual(await accessibilityProblems(page), []);
  await shot(page, "conversations");
  await page.getByRole("button", { name: "Open The first one" }).click();
  await page.locator(".user", { hasText: "The first one" }).waitFor();
  await page.reload(); // this one, in this tab
  await page.locator(".user", { hasText: "The first one" }).waitFor();
  await page.locator("[data-do=conversations]").click();
  await page.getByRole("button", { name: "Delete The first one" }).click();
  await page.getByRole("button", { name: "Really delete The first one?" }).click();
  await page.getByText("Long prompts, small caches").waitFor();
  assert.deepEqual(await list.locator("b").allTextContents(), ["The second one"]);
  await page.reload();
  await page.locator("[data-do=conversations]").click();
  await page.getByRole("button", { name: "Open The second one" }).click();
  await page.locator(".user", { hasText: "The second one" }).waitFor();
  await close();
});

/** What the browser keeps of the answers. */
function keptText(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const opening = indexedDB.open("snapkv");
    await new Promise((resolve) => (opening.onsuccess = resolve));
    const reading = opening.result.transaction("texts").objectStore("texts").getAll();
    await new Promise((resolve) => (reading.onsuccess = resolve));
    opening.result.close();
    const kept: { turns: { answers: { text: string }[] }[] }[] = reading.result.map((text: string) => JSON.parse(text));
    return kept.flatMap(({ turns }) => turns.flatMap(({ answers }) => answers.map(({ text }) => text))).join("");
  });
}

/** Waits until it has more: every two seconds, later where the machine is busy. */
async function keepsMore(page: Page): Promise<void> {
  const before = await keptText(page);
  const end = Date.now() + 60_000;
  while (await keptText(page) === before) {
    assert.ok(Date.now() < end, "the page keeps no more of the answer");
    await page.waitForTimeout(100);
  }
}

test("what is written of an answer stays when the page is loaded again", async () => {
  const own = await serve("-c", "8192"); // whose answers take longer than the page waits to keep them
  const { page, close } = await open(own.url);
  await makeEndless(page);
  await send(page, question);
  await page.locator("article.answer[aria-busy=true] .answer-text", { hasText: /\S/ }).waitFor();
  await keepsMore(page); // which may have begun before the text could be seen
  await keepsMore(page);
  await page.reload();
  await answers(page).getByText("Stopped.").waitFor();
  assert.match(await answers(page).locator(".answer-text").textContent() ?? "", /\S/);
  await close();
  await own.end();
});

test("a message that was not sent stays when the page is loaded again", async () => {
  const { page, close } = await open(server.url);
  await message(page).pressSequentially("Half a question");
  await page.reload();
  await message(page).waitFor();
  assert.equal(await message(page).inputValue(), "Half a question");
  await page.keyboard.press("Enter");
  await finished(page);
  await page.reload();
  await page.locator(".user", { hasText: "Half a question" }).waitFor();
  assert.equal(await message(page).inputValue(), "");
  await close();
});

test("two tabs with one conversation both keep their messages", async () => {
  const { page, close } = await open(server.url);
  await send(page, "Both know this");
  await finished(page);
  const other = await page.context().newPage();
  await other.goto(server.url);
  await other.locator("[data-do=conversations]").click();
  await other.getByRole("button", { name: "Open Both know this" }).click();
  await other.locator(".user", { hasText: "Both know this" }).waitFor();
  for (const [tab, text] of [[other, "From the other tab"], [page, "From this tab"]] as const) {
    await send(tab, text);
    await finished(tab);
  }
  await page.locator(".notice", { hasText: "Another tab has gone on with this conversation" }).waitFor();
  for (const [tab, text] of [[other, "From the other tab"], [page, "From this tab"]] as const) {
    await tab.reload();
    await tab.locator(".user", { hasText: text }).waitFor();
    assert.equal(await turns(tab).count(), 2);
  }
  await close();
});

test("texts in Arabic run from the right, code is copied", async () => {
  const { page, close } = await open(server.url);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const written = "العاصمة هي الرياض\n\nThe capital\n\n```\na = 1\n```\n";
  await page.route("**/v1/chat/completions", (route) => route.fulfill({ status: 200, contentType: "text/event-stream",
    body: `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: written }, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n` }));
  await send(page, "العاصمة");
  await finished(page);
  const atRight = (selector: string, i: number) => page.evaluate(([path, index]) => {
    const element = document.querySelectorAll(path as string)[index as number];
    const range = document.createRange();
    range.selectNodeContents(element);
    const text = range.getBoundingClientRect(), box = element.getBoundingClientRect();
    return box.right - text.right < text.left - box.left;
  }, [selector, i] as const);
  assert.equal(await atRight(".answer-text p", 0), true);
  assert.equal(await atRight(".answer-text p", 1), false);
  await page.locator("[data-do=copy-code]").click();
  await page.getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "a = 1");
  assert.deepEqual(await accessibilityProblems(page), []);
  await close();
});

test("messages are edited and deleted", async () => {
  const { page, close } = await open(server.url);
  const bodies = computed(page);
  for (const text of ["one", "two", "three"]) {
    await send(page, text);
    await page.locator(".user", { hasText: text }).waitFor();
    await finished(page);
  }
  await turns(page).nth(1).locator("[data-do=edit]").click();
  await page.getByText("Message 2: sending it again replaces its answer and the message after it.").waitFor();
  assert.equal(await message(page).inputValue(), "two");
  assert.deepEqual(await accessibilityProblems(page), []);
  await page.locator("[data-do=cancel-edit]").click();
  assert.equal(await message(page).inputValue(), "");
  assert.equal(await turns(page).count(), 3);
  await turns(page).nth(1).locator("[data-do=edit]").click();
  await send(page, "another");
  await page.locator(".user", { hasText: "another" }).waitFor();
  await finished(page);
  assert.deepEqual(await page.locator(".user p").allTextContents(), ["one", "another"]);
  const last = JSON.parse(bodies[bodies.length - 1]) as { messages: { content: string }[] };
  assert.deepEqual([last.messages.length, last.messages[2].content], [3, "another"]);
  await turns(page).first().locator("[data-do=delete]").click();
  await turns(page).first().getByRole("button", { name: "Really delete?" }).click();
  assert.deepEqual(await page.locator(".user p").allTextContents(), ["another"]);
  await page.reload();
  await page.locator(".user", { hasText: "another" }).waitFor();
  assert.equal(await turns(page).count(), 1);
  await close();
});

test("a base model continues texts", async () => {
  const base = await serveBase();
  const { page, close } = await open(base.url);
  const bodies = computed(page);
  await page.getByText("A base model: it continues texts").waitFor();
  assert.equal(await page.locator("[data-section='System prompt']").count(), 0);
  assert.deepEqual(await accessibilityProblems(page), []);
  await shot(page, "base-model");
  await drop(page, "facts.txt", facts);
  await send(page, question);
  await finished(page);
  assert.match((await answers(page).locator(".answer-text").textContent())!, /48213/);
  assert.equal((JSON.parse(bodies[0]) as { prompt: string }).prompt, `${facts.trimEnd()}\n\n${question}`);
  await page.getByText("What was kept").click();
  await page.locator(".kept-box .text").waitFor();
  const before = (await answers(page).locator(".answer-text").textContent())!;
  await page.getByRole("button", { name: "Go on" }).click();
  await page.waitForFunction((n) => document.querySelector(".answer-text")!.textContent!.length > n, before.length);
  await finished(page);
  assert.ok((await answers(page).locator(".answer-text").textContent())!.startsWith(before));
  await close();
  await base.end();
});

test("snapshots of another model are shown, but not offered", async () => {
  const { page, close } = await open(server.url);
  await drop(page, "mine.txt", `${filler}${facts}`);
  await page.getByRole("button", { name: "Make a snapshot" }).click();
  const mine = page.locator("[data-snapshot=mine]");
  await mine.waitFor();
  assert.match((await mine.textContent())!, /every row of [\d,]+/, "what the server decides for a short text");
  await page.route("**/v1/kv/snapshots", async (route) => {
    const response = await route.fetch();
    const { data } = await response.json() as { data: object[] };
    data.push({ name: "strange", bytes: 5, created: 1, model: "other", problem: "made with another model, other" });
    await route.fulfill({ response, json: { object: "list", data } });
  });
  await page.reload();
  const strange = page.locator("[data-snapshot=strange]");
  await strange.getByText("made with another model, other").waitFor();
  assert.ok(!(await strange.getByRole("button", { name: "Use strange" }).isVisible()));
  assert.ok(await mine.getByRole("button", { name: "Use mine" }).isVisible());
  await page.locator("[data-setting=policy]").waitFor(); // each question chooses from every row
  await close();
});

test("problems of several files stand in lines of their own", async () => {
  const { page, close } = await open(server.url);
  await message(page).waitFor();
  const file = (name: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from("") });
  await page.getByLabel("Documents to attach").setInputFiles([file("a.txt"), file("b.txt")]);
  const problem = page.locator(".composer .error");
  await problem.waitFor();
  assert.equal(await problem.innerText(), "“a.txt” is empty\n“b.txt” is empty");
  await shot(page, "problems");
  await close();
});

test("a value that can't be used says why", async () => {
  for (const scheme of ["light", "dark"] as const) {
    const { page, close } = await open(server.url, { scheme });
    const budget = page.locator("[data-param=budget]");
    await budget.fill("0");
    await budget.blur();
    const reason = page.locator(".reason");
    assert.match(await reason.innerText(), /^0 can't be used: it must be a whole number, from 1\. 64 stays in force\.$/);
    assert.ok((await budget.getAttribute("aria-describedby"))!.startsWith((await reason.getAttribute("id"))!));
    assert.deepEqual(await accessibilityProblems(page), []);
    await shot(page, `reason-${scheme}`);
    await budget.fill("100");
    await budget.blur();
    assert.equal(await reason.count(), 0);
    assert.equal(await budget.getAttribute("aria-invalid"), "false");
    await close();
  }
});

test("settings do not lie over the chat when the window becomes narrow", async () => {
  const { page, close } = await open(server.url);
  await page.locator("aside").waitFor();
  await page.setViewportSize({ width: 400, height: 850 });
  await page.locator("aside").waitFor({ state: "hidden" });
  await message(page).waitFor();
  await page.locator("[data-do=settings]").click();
  await message(page).waitFor({ state: "hidden" });
  await page.setViewportSize({ width: 420, height: 850 }); // it stays where somebody wants it
  await page.locator("aside").waitFor();
  await page.locator("[data-do=settings]").click();
  await page.setViewportSize({ width: 1280, height: 850 });
  await page.locator("aside").waitFor();
  await message(page).waitFor();
  await close();
});

test("a message that waits behind another prompt says so", async () => {
  for (const [scheme, width] of [["light", 1280], ["dark", 400]] as const) {
    const { page, close } = await open(server.url, { scheme, width });
    let go = () => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    await page.route("**/v1/chat/completions", async (route) => {
      await held;
      await route.continue();
    });
    await page.route("**/metrics", (route) => route.fulfill({ body:
      'snapkv_sessions{state="waiting"} 2\nsnapkv_sessions{state="reading"} 1\n' }));
    await send(page, question);
    await page.getByText("Waiting: the server reads another prompt first. 1 other request waits as well.").waitFor();
    await shot(page, `waits-${scheme}-${width}`);
    go();
    await finished(page);
    assert.ok(!(await answers(page).first().innerText()).includes("Waiting"));
    await close();
  }
});
