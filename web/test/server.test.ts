// SPDX-License-Identifier: MIT
// The logic of the server's page: streams, conversations, settings and requests, Markdown, numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorText } from "../src/server/api";
import { applyChunk, contentOf, decodeDocument, exportJson, messagesOf, newAnswer, readConversation, snapshotName, type Conversation } from "../src/server/conversation";
import { keptBy, keptData, pieceTexts } from "../src/server/kept";
import { parseInline, parseMarkdown } from "../src/server/markdown";
import { comparison, details, doneShare, etaSeconds, etaText, facts, progressText, ratio, times } from "../src/server/numbers";
import { defaultSettings, isValid, kvRequests, rangeText, readSettings, requestBody, setParam, snapshotBody } from "../src/server/settings";
import { EventParser } from "../src/server/sse";
import type { Kv, Param, Props, Timings } from "../src/server/types";

const budget: Param = { name: "budget", type: "integer", least: 1, most: 1e6, odd: false, default: 1024, help: "rows" };
const kernel: Param = { name: "kernel_size", type: "integer", least: 1, most: 65535, odd: true, default: 7, help: "taps" };
const pooling: Param = { name: "pooling", type: "word", words: ["max", "avg"], default: "max", help: "of votes" };
const share: Param = { name: "ratio", type: "real", least: 0, most: 1, default: 0, help: "share" };
const props: Props = {
  model_alias: "m", build_info: "snapkv 1", backend: "cpu", has_snapshots: true, chat_template: "",
  default_generation_settings: { n_ctx: 2048, params: { temperature: 0.8 } },
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
  const conversation: Conversation = { turns: [
    { text: "q1", documents: [{ name: "d", text: "doc\n" }], system: "", answers: [done("a1"), done("other")] },
    { text: "q2", documents: [], system: "be brief", answers: [] },
  ] };
  assert.equal(contentOf(conversation.turns[0]), "doc\n\nq1");
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
  assert.equal(readConversation(stored).turns[0].answers[0].state, "stopped");
  for (const bad of [null, 5, {}, { turns: [{}] }, { turns: [null] }, { turns: [{ ...stored.turns[0], answers: [{}] }] }]) {
    assert.deepEqual(readConversation(bad), { turns: [] });
  }
});

test("documents are text, or an error says why not", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  assert.deepEqual(decodeDocument("a.txt", bytes("ä\n")), { name: "a.txt", text: "ä\n" });
  assert.throws(() => decodeDocument("a.png", Uint8Array.of(0x89, 0x50)), /“a.png” is not a text file: it is not UTF-8/);
  assert.throws(() => decodeDocument("a.bin", bytes("a\0b")), /zero bytes/);
  assert.throws(() => decodeDocument("a.txt", bytes(" \n")), /empty/);
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
  assert.deepEqual(snapshotBody(settings, "book", "text"), { name: "book", text: "text", keep_full: true }, "every row, unless one says otherwise");
  const other = { ...settings, keep_full: false, params: { snapkv: { budget: 9, kernel_size: 3 } }, system: "be brief" };
  assert.deepEqual(snapshotBody(other, "b", "t"), { name: "b", text: "t", kv: { budget: 9 }, system: "be brief" });
  assert.deepEqual(snapshotBody({ ...other, keep_full: true, system: "" }, "b", "t"), { name: "b", text: "t", keep_full: true });
  settings.sampling.top_k = 3;
  const body = requestBody(settings, { policy: "snapkv" }, []) as Record<string, unknown>;
  assert.deepEqual([body.top_k, body.kv_report, body.return_progress], [3, "positions", true]);
  assert.equal((requestBody(settings, { policy: "full" }, []) as { kv_report: string }).kv_report, "summary");
  assert.ok(isValid(kernel, 7) && !isValid(kernel, 8) && !isValid(kernel, 7.5) && !isValid(budget, 0) && !isValid(share, NaN));
  assert.ok(isValid(pooling, "avg") && !isValid(pooling, "sum") && isValid(share, 0.25) && !isValid(share, "1"));
  assert.deepEqual([rangeText(kernel), rangeText(share)], ["odd, 1 to 65,535", "0 to 1"]);
});

test("settings that were stored for another server lose what this one does not know", () => {
  const read = readSettings({ policy: "snapkv", params: { snapkv: { budget: 64, kernel_size: 4, no: 1 }, other: { a: 1 } },
    positions: false, sampling: { temperature: 0, top_p: 7 }, system: 3, snapshot: "s" }, props);
  assert.deepEqual(read, { ...defaultSettings(props), positions: false, params: { snapkv: { budget: 64 } },
    sampling: { temperature: 0 }, snapshot: "s" });
  assert.equal(readSettings({ policy: "gone" }, props).policy, "snapkv");
  assert.equal(readSettings({ snapshot: "s" }, { ...props, has_snapshots: false }).snapshot, "");
  assert.deepEqual(readSettings("x", props), defaultSettings(props));
});

test("markdown: blocks", () => {
  assert.deepEqual(parseMarkdown("# Title\none\ntwo\n\n- a\n- b\n3. c\n\n```py\nx = 1\n\n```\nend").map((b) => b.kind),
    ["heading", "paragraph", "list", "list", "code", "paragraph"]);
  const [list] = parseMarkdown("3. c\n4. d");
  assert.deepEqual(list.kind === "list" && [list.ordered, list.start, list.items.length], [true, 3, 2]);
  assert.deepEqual(parseMarkdown("```\nopen <b>"), [{ kind: "code", language: "", text: "open <b>" }]);
  assert.deepEqual(parseMarkdown("~~~\n```\n~~~"), [{ kind: "code", language: "", text: "```" }]);
  assert.deepEqual(parseMarkdown(""), []);
});

test("markdown: inline, and what stays text", () => {
  assert.deepEqual(parseInline("a **b** `c*` *d* 2*3*4"), [
    { kind: "text", text: "a " }, { kind: "strong", text: "b" }, { kind: "text", text: " " }, { kind: "code", text: "c*" },
    { kind: "text", text: " " }, { kind: "em", text: "d" }, { kind: "text", text: " 2*3*4" }]);
  for (const text of ["<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "snake_case_name", "** a"]) {
    assert.deepEqual(parseInline(text), [{ kind: "text", text }]);
  }
  const begin = Date.now();
  parseMarkdown("*".repeat(50_000) + "`".repeat(50_000) + "_".repeat(50_000) + " a".repeat(50_000));
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
  assert.match(details({ ...answer, request: { policy: "snapkv" } }), /^6.25%/);
  const full = { ...answer, kv: { ...kv, policy: "full", bytes_after: 16 << 20 },
    timings: { ...timings, predicted_per_second: 20 } };
  assert.equal(comparison(answer, full), "The cache is 16× smaller, tokens come 2× as fast, the answers are the same.");
  assert.match(comparison(answer, { ...full, text: "y" }), /differ/);
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
