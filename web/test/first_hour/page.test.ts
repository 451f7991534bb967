// SPDX-License-Identifier: MIT
// A question about a PDF on the server's page, with a real model: the last part of
// tests/real_models/first_hour.py, which sets
//   SNAPKV_BINARY, SNAPKV_MODEL, SNAPKV_PDF, SNAPKV_QUESTION, SNAPKV_ANSWER (words of the answer).
import assert from "node:assert/strict";
import { basename } from "node:path";
import { after, before, test } from "node:test";
import { answers, begin, end, finished, open, send, serveAsUsersDo, shot } from "../browser/server_support";
import { required } from "../browser/support";

before(begin);
after(end);

for (const [scheme, width] of [["light", 1280], ["dark", 400]] as const) {
  test(`a PDF is added, asked about and answered (${scheme}, ${width} pixels)`, async () => {
    const server = await serveAsUsersDo("--temp", "0");
    const { page, close } = await open(server.url, { scheme, width, maxTokens: 60 });
    await page.getByLabel("Message", { exact: true }).waitFor();
    const pdf = required("SNAPKV_PDF");
    await page.locator("input[type=file]").setInputFiles(pdf);
    await page.locator(".chips li", { hasText: basename(pdf) }).waitFor();
    await shot(page, `first-hour-${width}-added`);
    await send(page, required("SNAPKV_QUESTION"));
    await finished(page);
    await shot(page, `first-hour-${width}-answered`);
    const answer = (await answers(page).last().locator(".answer-text").textContent()) ?? "";
    assert.ok(answer.includes(required("SNAPKV_ANSWER")), answer);
    await page.locator("[data-do=source]").first().click();
    assert.ok((await page.locator(".document-text mark").textContent())!.includes(required("SNAPKV_ANSWER")));
    await shot(page, `first-hour-${width}-source`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(wide <= 0, `${wide} pixels too wide`);
    await close();
    await server.end();
  });
}
