// SPDX-License-Identifier: MIT
// The logic of the server's page: streams, conversations, settings and requests, Markdown, numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorText, serverLoad } from "../src/server/api";
import { applyChunk, contentOf, exportJson, inputOf, messagesOf, newAnswer, newConversation, readConversation, readDocument, snapshotName, titleOf, type Conversation } from "../src/server/conversation";
import { firstPart, fitReport, listed } from "../src/server/fit";
import { memoryHistory, surplus } from "../src/server/history";
import { densestPassage, keptBy, keptData, pieceTexts } from "../src/server/kept";
import { kMarkdown } from "../src/server/markdown";
import { comparison, details, doneShare, etaSeconds, etaText, facts, progressText, ratio, times, waitText } from "../src/server/numbers";
import { defaultSettings, isBaseModel, isValid, kvRequests, rangeText, readSettings, requestBody, setParam, snapshotBody } from "../src/server/settings";
import { EventParser } from "../src/server/sse";
import type { Fit, Kv, Param, Props, Timings } from "../src/server/types";

const budget: Param = { name: "budget", type: "integer", least: 1, most: 1e6, odd: false, default: 1024, help: "rows" };
const kernel: Param = { name: "kernel_size", type: "integer", least: 1, most: 65535, odd: true, default: 7, help: "taps" };
const pooling: Param = { name: "pooling", type: "word", words: ["max", "avg"], default: "max", help: "of votes" };
const share: Param = { name: "ratio", type: "real", least: 0, most: 1, default: 0, help: "share" };
const props: Props = {
  model_alias: "m", build_info: "snapkv 1", backend: "cpu", has_snapshots: true, chat_template: "",
  default_generation_settings: { n_ctx: 2048, params: { temperature: 0.8 } },
  sampling: [
    { name: "temperature", type: "real", least: 0, most: 1000, default: 0.8, help: "heat" },
    { name: "top_k", type: "integer", least: 0, most: 1e9, default: 40, help: "best ones" },
    { name: "top_p", type: "real", least: 0, most: 1, default: 0.95, help: "nucleus" },
  ],
  kv: { defaults: { policy: "snapkv" }, policies: [
    { name: "full", score: "", paper: "", has_budget: false, params: [] },
    { name: "snapkv", score: "", paper: "", has_budget: true, params: [budget, kernel, pooling, share],
      values: { budget: 512, kernel_size: 15, pooling: "max", ratio: 0 } },
  ] },
};
const snapkv = props.kv.policies[1];
const kv: Kv = { policy: "snapkv", tokens_before: 16000, tokens_kept: 1000, bytes_before: 16 << 20, bytes_after: 1 << 20,
  compress_ms: 12, reused_tokens: 0 };
const timings: Timings = { cache_n: 0, prompt_n: 16000, prompt_ms: 8000, prompt_per_second: 2000, predicted_n: 40,
  predicted_ms: 1000, predicted_per_second: 40 };

test("events are found whatever the pieces are", () => {
  const stream = ": ping\n\ndata: {\"a\":1}\r\n\r\nevent: x\ndata: one\ndata:two\n\n\n\ndata: [DONE]\n\ndata: cut";
  for (const size of [1, 2, 3, 7, 1000]) {
    const parser = new EventParser();
    const events: string[] = [];
    for (let i = 0; i < stream.length; i += size) events.push(...parser.push(stream.slice(i, i + size)));
    assert.deepEqual(events, ['{"a":1}', "one\ntwo", "[DONE]"], `pieces of ${size}`);
  }
});

test("errors are in the server's words where it has some", () => {
  assert.equal(errorText('{"error": {"message": "no such policy"}}', "x"), "no such policy");
  for (const body of ["<html>", "{}", '{"error": {"message": 5}}', "null"]) assert.equal(errorText(body, "x"), "x");
});

test("problems do not run together", () => {
  assert.equal(listed("a.txt is empty", "", "b.jpg: a JPEG image"), "a.txt is empty\nb.jpg: a JPEG image");
  assert.equal(listed("", ""), "");
});

test("a request that waits says for what", () => {
  const metrics = "# TYPE snapkv_sessions gauge\nsnapkv_sessions{state=\"waiting\"} 3\nsnapkv_sessions{state=\"reading\"} 1\n" +
    "snapkv_sessions{state=\"answering\"} 0\n";
  assert.deepEqual(serverLoad(metrics), { waiting: 3, reading: 1, answering: 0 });
  assert.deepEqual(serverLoad("<html>"), { waiting: 0, reading: 0, answering: 0 });
  assert.equal(waitText(serverLoad(metrics)), "Waiting: the server reads another prompt first. 2 other requests wait as well.");
  assert.equal(waitText({ waiting: 1, reading: 1, answering: 0 }), "Waiting: the server reads another prompt first.");
  assert.match(waitText({ waiting: 2, reading: 0, answering: 4 }), /writes other answers.* 1 other request waits as well\.$/);
  assert.equal(waitText({ waiting: 1, reading: 0, answering: 0 }), "");
});

test("chunks become an answer", () => {
  const answer = newAnswer({ policy: "snapkv" });
  applyChunk(answer, { choices: [{ delta: { content: "" } }] }, 5);
  assert.equal(answer.state, "waiting");
  applyChunk(answer, { choices: [{ delta: {} }], prompt_progress: { total: 10, cache: 0, processed: 4, time_ms: 100 } }, 6);
  assert.equal(answer.state, "reading");
  applyChunk(answer, { choices: [{ delta: { reasoning_content: "hm" } }] }, 80);
  applyChunk(answer, { choices: [{ delta: { content: "a" } }] }, 90);
  applyChunk(answer, { choices: [{ delta: { content: "b" } }] }, 95);
  assert.deepEqual([answer.state, answer.text, answer.reasoning, answer.first_ms], ["writing", "ab", "hm", 80]);
  applyChunk(answer, { choices: [{ delta: {}, finish_reason: "length" }], kv: { ...kv, positions: [[[1]]] }, timings }, 99);
  assert.deepEqual([answer.state, answer.finish, answer.kv, answer.timings], ["done", "length", kv, timings]);
});

test("messages: documents before the question, the first answer goes on", () => {
  const done = (text: string) => ({ ...newAnswer({}), state: "done" as const, text });
  const conversation: Conversation = { id: "1", model: "m", changed: 5, turns: [
    { text: "q1", documents: [{ name: "d", text: "doc\n" }], system: "", answers: [done("a1"), done("other")] },
    { text: "q2", documents: [], system: "be brief", answers: [] },
  ] };
  assert.equal(contentOf(conversation.turns[0]), "doc\n\nq1");
  const [document] = conversation.turns[0].documents;
  assert.equal(contentOf({ ...conversation.turns[0], documents: [document, { ...document, name: 'b "c".txt' }] }),
    `<document title=${JSON.stringify(document.name)}>\ndoc\n</document>\n\n` +
    '<document title="b \\"c\\".txt">\ndoc\n</document>\n\nq1');
  assert.deepEqual(messagesOf(conversation, 0), [{ role: "user", content: "doc\n\nq1" }]);
  assert.deepEqual(messagesOf(conversation, 1), [{ role: "system", content: "be brief" },
    { role: "user", content: "doc\n\nq1" }, { role: "assistant", content: "a1" }, { role: "user", content: "q2" }]);
  conversation.turns[1].answers = [newAnswer({ snapshot: "book" })];
  assert.equal(messagesOf(conversation, 1)[0].role, "user", "a snapshot has its document's system message");
  conversation.turns[1].answers = [];
  const exported = JSON.parse(exportJson(conversation, defaultSettings(props), props));
  assert.deepEqual([exported.model, exported.turns.length, exported.turns[1].messages.length], ["m", 2, 4]);
  const stored = JSON.parse(JSON.stringify(conversation));
  stored.turns[0].answers[0].state = "writing";
  assert.equal(readConversation(stored)!.turns[0].answers[0].state, "stopped");
  for (const bad of [null, 5, {}, { ...stored, turns: [{}] }, { ...stored, turns: [null] }, { ...stored, id: 1 },
    { ...stored, turns: [{ ...stored.turns[0], answers: [{}] }] }]) {
    assert.equal(readConversation(bad), null);
  }
  assert.deepEqual(newConversation("m").turns, []);
  assert.notEqual(newConversation("m").id, newConversation("m").id);
  assert.equal(titleOf(conversation), "q1");
  assert.equal(titleOf({ ...conversation, turns: [{ ...conversation.turns[0], text: "" }] }), "d");
  assert.match(titleOf({ ...conversation, turns: [{ ...conversation.turns[0], text: "many words ".repeat(20) }] }), /^many words .{0,60} …$/);
});

test("a base model continues texts", () => {
  const answer = newAnswer({ policy: "snapkv" });
  const turn = { text: "Once", documents: [{ name: "d", text: "Tales\n" }], system: "", completes: true, answers: [answer] };
  const conversation: Conversation = { ...newConversation("m"), turns: [turn] };
  assert.equal(inputOf(conversation, 0), "Tales\n\nOnce");
  assert.equal(inputOf(conversation, 0, " upon"), "Tales\n\nOnce upon");
  applyChunk(answer, { choices: [{ text: " upon a" }] }, 5);
  applyChunk(answer, { choices: [{ text: " time", finish_reason: "length" }] }, 6);
  assert.deepEqual([answer.text, answer.first_ms, answer.state], [" upon a time", 5, "done"]);
  const settings = defaultSettings(props);
  const body = requestBody(settings, { policy: "snapkv" }, "Once") as Record<string, unknown>;
  assert.deepEqual([body.prompt, body.max_tokens, body.messages], ["Once", 256, undefined], "it does not end by itself");
  settings.sampling.max_tokens = 7;
  assert.equal((requestBody(settings, { policy: "snapkv" }, "Once") as { max_tokens: number }).max_tokens, 7);
  assert.equal((requestBody({ ...settings, sampling: {} }, {}, []) as { max_tokens?: number }).max_tokens, undefined);
  assert.equal(JSON.parse(exportJson(conversation, settings, props)).turns[0].prompt, "Tales\n\nOnce");
  assert.ok(isBaseModel(props) && !isBaseModel({ ...props, chat_template: "x" }));
});

test("what does not fit is said before it is sent, with what would", () => {
  const fit: Fit = { fits: false, prompt_tokens: 18300, most_prompt_tokens: 8191, limit: "context", n_ctx: 8192, n_ctx_train: 8192 };
  const book = { name: "book.txt", text: "...", tokens: 18145 };
  const report = fitReport(fit, [book], true);
  assert.equal(report.keep, 18145 - (18300 - 8191) - 256);
  assert.equal(report.problem, "“book.txt” does not fit: it has 18,145 tokens, 18,300 with the rest of the message, and the context " +
    "holds 8,192, the answer included. 7,780 of its tokens would fit, with 256 left for the question and the answer.");
  assert.match(fitReport({ ...fit, n_ctx_train: 32768 }, [book], true).problem, /A server started with -c 32768 could read 32,768/);
  assert.match(fitReport({ ...fit, limit: "memory" }, [book], true).problem, /memory for caches .* larger --kv-memory/);
  const late = fitReport({ ...fit, prompt_tokens: 8400 }, [{ ...book, tokens: 100 }], false);
  assert.equal(late.keep, 0);
  assert.match(late.problem, /with the rest of the message and the conversation.*A new conversation has more room/);
  assert.match(fitReport(fit, [], false).problem, /^This message does not fit: .*delete earlier messages, or begin a new conversation/);
  assert.deepEqual(fitReport({ ...fit, fits: true, prompt_tokens: 50 }, [book], true), { problem: "", note: "", keep: 0 });
  assert.equal(fitReport({ ...fit, fits: true, prompt_tokens: 8181 }, [book], true).note, "10 tokens are left for the question and its answer.");
  assert.deepEqual(firstPart(book, ["a", " b", " c"], 2), { name: "book.txt, first 2 tokens", text: "a b" });
});

test("the browser keeps conversations within bounds, the last ones", async () => {
  const entry = (id: string, changed: number, size: number) => ({ id, title: id, model: "m", changed, size });
  const entries = [entry("old", 1, 10), entry("new", 3, 10), entry("middle", 2, 10)];
  assert.deepEqual(surplus(entries, 2, 100).map((e) => e.id), ["old"]);
  assert.deepEqual(surplus(entries, 9, 25).map((e) => e.id), ["old"]);
  assert.deepEqual(surplus(entries, 9, 5).map((e) => e.id), ["middle", "old"], "the last one stays");
  const history = memoryHistory();
  assert.equal(history.lasts, false);
  const turn = { text: "q", documents: [], system: "", answers: [newAnswer({})] };
  const one = { ...newConversation("m"), changed: 1, turns: [turn] };
  const two = { ...newConversation("m"), changed: 2, turns: [turn] };
  await history.write(one);
  await history.write(two);
  assert.deepEqual((await history.list()).map((e) => e.id), [two.id, one.id]);
  assert.deepEqual((await history.read(one.id))!.turns[0].answers[0].state, "stopped");
  await history.remove(one.id);
  assert.equal(await history.read(one.id), null);
});

test("the passage of which most is kept", () => {
  const counts = new Uint32Array(1000).fill(1);
  counts.fill(8, 0, 4); // sinks
  counts.fill(8, 968); // the window
  assert.equal(densestPassage(counts, 8), 0, "no passage stands out");
  counts.fill(5, 500, 560);
  const at = densestPassage(counts, 8);
  assert.ok(at > 495 && at <= 500, `${at}`);
  assert.equal(densestPassage(new Uint32Array(10).fill(8), 8), 0, "all is kept");
  assert.equal(densestPassage(new Uint32Array(0), 8), 0);
});

test("the server reads documents, whatever they look like", async () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  const read = (name: string, content: Uint8Array) =>
    readDocument(name, content, async (file) => {
      if (file === "a.png") throw new Error("a.png: a PNG image, not a document snapkv can read");
      return file === "scan.pdf" ? "\f\n" : `text of ${file}`;
    });
  for (const name of ["a.txt", "a.pdf", "a.html"]) {
    assert.deepEqual(await read(name, bytes("%PDF-1.4\n% of ASCII alone")), { name, text: `text of ${name}` });
  }
  await assert.rejects(read("a.png", Uint8Array.of(0x89, 0x50)), /a PNG image/);
  await assert.rejects(read("a.txt", bytes("")), /“a.txt” is empty/);
  await assert.rejects(read("scan.pdf", Uint8Array.of(0x25, 0xff)), /“scan.pdf” has no text in it/);
  assert.equal(snapshotName("My bóok (2).txt"), "My-bo-ok-2");
  assert.equal(snapshotName("..."), "document");
  assert.match(snapshotName("x".repeat(500)), /^x{100}$/);
});

test("settings: what the server has in force is not sent, nor what it would refuse", () => {
  const settings = defaultSettings(props);
  setParam(settings, snapkv, budget, 128);
  setParam(settings, snapkv, kernel, 15);
  assert.deepEqual(kvRequests(settings), [{ policy: "snapkv", budget: 128 }]);
  setParam(settings, snapkv, budget, 512);
  assert.deepEqual(kvRequests(settings), [{ policy: "snapkv" }]);
  settings.compare = true;
  assert.deepEqual(kvRequests(settings), [{ policy: "snapkv", reuse: false }, { policy: "full", reuse: false }]);
  settings.snapshot = "book";
  assert.deepEqual(kvRequests(settings), [{ policy: "snapkv", snapshot: "book" }]);
  assert.deepEqual(kvRequests(settings, true), [{ snapshot: "book" }], "its own policy has chosen");
  assert.deepEqual(snapshotBody(settings, "book", "text"), { name: "book", text: "text" }, "the server decides");
  const other = { ...settings, keeps: "chosen" as const, params: { snapkv: { budget: 9, kernel_size: 3 } }, system: "be brief" };
  assert.deepEqual(snapshotBody(other, "b", "t"), { name: "b", text: "t", keep_full: false, kv: { budget: 9 }, system: "be brief" });
  assert.deepEqual(snapshotBody({ ...other, keeps: "full", system: "" }, "b", "t"), { name: "b", text: "t", keep_full: true });
  settings.sampling.top_k = 3;
  const body = requestBody(settings, { policy: "snapkv" }, []) as Record<string, unknown>;
  assert.deepEqual([body.top_k, body.kv_report, body.return_progress], [3, "all", true]);
  assert.equal((requestBody(settings, { policy: "full" }, []) as { kv_report: string }).kv_report, "sources");
  assert.ok(isValid(kernel, 7) && !isValid(kernel, 8) && !isValid(kernel, 7.5) && !isValid(budget, 0) && !isValid(share, NaN));
  assert.ok(isValid(pooling, "avg") && !isValid(pooling, "sum") && isValid(share, 0.25) && !isValid(share, "1"));
  assert.deepEqual([rangeText(kernel), rangeText(share)], ["odd, 1 to 65,535", "0 to 1"]);
});

test("settings that were stored for another server lose what this one does not know", () => {
  const read = readSettings({ policy: "snapkv", params: { snapkv: { budget: 64, kernel_size: 4, no: 1 }, other: { a: 1 } },
    positions: false, sampling: { temperature: 0, top_p: 7, top_k: 2.5, gone: 1, max_tokens: 5 }, system: 3, snapshot: "s", keeps: "some" }, props);
  assert.deepEqual(read, { ...defaultSettings(props), positions: false, params: { snapkv: { budget: 64 } },
    sampling: { temperature: 0, max_tokens: 5 }, snapshot: "s" });
  assert.equal(readSettings({ policy: "gone" }, props).policy, "snapkv");
  assert.equal(readSettings({ snapshot: "s" }, { ...props, has_snapshots: false }).snapshot, "");
  assert.equal(readSettings({ keeps: "full" }, props).keeps, "full");
  assert.deepEqual(readSettings("x", props), defaultSettings(props));
});

test("markdown: what answers are made of", () => {
  const types = (text: string) => kMarkdown.parse(text, {}).filter((t) => t.nesting >= 0).map((t) => t.type.replace("_open", ""));
  assert.deepEqual(types("# Title\none\n\n```py\nx = 1\n```\n"), ["heading", "inline", "paragraph", "inline", "fence"]);
  assert.ok(types("- a\n  1. b").includes("ordered_list"), "a list in a list");
  assert.ok(types("| a | b |\n|---|--:|\n| 1 | 2 |").includes("table"));
  assert.deepEqual(types("48213."), ["paragraph", "inline"], "a number is an answer");
  assert.deepEqual(types("```\n1.\n```"), ["fence"]);
  assert.deepEqual(types(""), []);
});

test("markdown: what stays text", () => {
  for (const text of ["<img src=x onerror=alert(1)>", "[a](https://example.org)", "[a](javascript:alert(1))", "![a](https://example.org/a.png)",
    "<https://example.org>", "https://example.org", "[a]: https://example.org", "snake_case_name", "2*3*4 ** a"]) {
    const [paragraph, inline] = kMarkdown.parse(text, {});
    assert.equal(paragraph.type, "paragraph_open", text);
    assert.ok(inline.children!.every((t) => t.type === "text" || t.tag === "em"), text);
    if (!text.includes("*")) assert.equal(inline.children!.map((t) => t.content).join(""), text);
  }
  const begin = Date.now();
  kMarkdown.parse("*".repeat(50_000) + "`".repeat(50_000) + "_".repeat(50_000) + " a".repeat(50_000), {});
  assert.ok(Date.now() - begin < 2000, "time must not explode");
});

test("progress and its estimate", () => {
  const progress = { total: 1100, cache: 100, processed: 350, time_ms: 5000 };
  assert.equal(doneShare(progress), 0.25);
  assert.equal(etaSeconds(progress), 15);
  assert.match(progressText(progress), /350 of 1,100 tokens, about 15 s left/);
  assert.equal(etaSeconds({ ...progress, processed: 100 }), null);
  assert.doesNotMatch(progressText({ ...progress, processed: 100 }), /left/);
  assert.equal(doneShare({ total: 5, cache: 5, processed: 5, time_ms: 0 }), 1);
  assert.deepEqual([0.2, 42.4, 123].map(etaText), ["1 s", "42 s", "2 min 5 s"]);
});

test("the numbers of an answer, and of two", () => {
  const answer = { ...newAnswer({}), state: "done" as const, text: "x", kv, timings, first_ms: 8100 };
  assert.equal(ratio(kv), 16);
  assert.deepEqual(facts(answer).map((f) => [f.name, f.value, f.of]), [["kept", "1,000", "of 16,000"],
    ["bytes", "1 MiB", "of 16 MiB"], ["ratio", "16×", undefined], ["first", "8.1 s", undefined], ["speed", "40", undefined]]);
  assert.match(details(answer), /^policy snapkv · 6.25% of the prompt kept · chosen in 12 ms · prompt read in 8 s \(2,000 tokens\/s\)/);
  assert.match(details({ ...answer, request: { policy: "snapkv" } }), /^6.25%.* 40 tokens written$/);
  assert.match(details({ ...answer, timings: { ...timings, draft_n: 30, draft_n_accepted: 25 } }),
    / 40 tokens written, 25 of them guessed$/);
  const full = { ...answer, kv: { ...kv, policy: "full", bytes_after: 16 << 20 },
    timings: { ...timings, predicted_per_second: 20 } };
  assert.equal(comparison(answer, full), "The cache is 16× smaller, tokens come 2× as fast, the answers are the same.");
  assert.match(comparison(answer, { ...full, text: "y" }), /differ/);
  const short = { ...answer, timings: { ...timings, predicted_n: 7 } };
  assert.equal(comparison(short, full), "The cache is 16× smaller, the answers are the same.", "seven tokens time nothing");
  const whole = { ...answer, kv: full.kv };
  assert.match(comparison(whole, full), /^Both caches have the same size, /, "nothing is gained");
  assert.equal(comparison(answer, { ...full, kv: undefined }), "");
  assert.deepEqual(facts(newAnswer({})), []);
  assert.deepEqual([times(16.04), times(1.5), times(256.4)], ["16×", "1.5×", "256×"]);
});

test("positions become the map's cells and the tokens' shades", () => {
  const positions = [[[0, 1, 9], [9]], [[0, 8], [1, 9]]];
  const data = keptData(positions, 10);
  assert.deepEqual(data.rows.map((r) => [r.layer_begin, r.head_begin]), [[0, 0], [0, 1], [1, 0], [1, 1]]);
  assert.deepEqual(data.kept[0], [1000, 1000, 0, 0, 0, 0, 0, 0, 0, 1000]);
  assert.deepEqual([...keptBy(positions, 10)], [2, 2, 0, 0, 0, 0, 0, 0, 1, 3]);
  // 100 layers x 8 heads, 4096 tokens: a cell stands for several of them and holds their kept share
  const many = Array.from({ length: 100 }, () => Array.from({ length: 8 }, () => [0, 1, 2, 3]));
  const big = keptData(many, 4096);
  assert.ok(big.rows.length <= 256 && big.n_columns === 1024);
  assert.deepEqual(big.kept[0].slice(0, 2), [1000, 0]);
  assert.equal(big.rows[big.rows.length - 1].layer_end, 100);
});

test("pieces that are parts of characters", () => {
  const bytes = [...new TextEncoder().encode("€")];
  const texts = pieceTexts([{ piece: " a" }, { piece: bytes.slice(0, 2) }, { piece: bytes.slice(2) }, { piece: "ä" }]);
  assert.deepEqual(texts, [" a", "", "€", "ä"]);
});
