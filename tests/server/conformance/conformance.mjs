// SPDX-License-Identifier: MIT
// node conformance.mjs SNAPKV MODEL: starts `snapkv serve` and uses it through the clients that
// users have: the npm packages openai and @anthropic-ai/sdk, and plain HTTP. Exits with 1 at the
// first failure.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [snapkv, model] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const snapshots = mkdtempSync(join(tmpdir(), "snapkv-conformance-"));
const key = "sesame";
const server = spawn(
  snapkv,
  ["serve", "-m", model, "--port", "0", "--chat-template", join(here, "hermes.jinja"), "--api-key", key,
   "--snapshot-dir", snapshots, "--temp", "0", "--alias", "needle", "--kv-budget", "64", "--kv-window", "16",
   "--threads", "1", "--no-progress"],
  { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, OMP_WAIT_POLICY: "passive" } },
);
let log = "";
let exited = null;
server.stderr.on("data", (data) => (log += data));
server.on("exit", (code, signal) => (exited = code ?? signal));

async function until(condition, what) {
  for (let i = 0; i < 3000 && !condition(); ++i) {
    if (exited !== null) throw new Error(`the server ended (${exited}) before ${what}:\n${log}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  if (!condition()) throw new Error(`no ${what}:\n${log}`);
}

let url;
let openai;
let anthropic;
const needle = "The secret number of Rome is 48213. ".concat(
  "A grey fox sat by the old mill and watched the river. ".repeat(20),
  "What is the secret number of Rome? The secret number of Rome is");
const hello = [{ role: "user", content: "Hello" }];
const tools = [{
  type: "function",
  function: {
    name: "weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { enum: ["Rome", "Oslo"] } },
      required: ["city"],
      additionalProperties: false,
    },
  },
}];

async function plainHttp(path, body, headers = { authorization: `Bearer ${key}` }) {
  const response = await fetch(url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, json: await response.json() };
}

const tests = {
  async "models"() {
    const list = await openai.models.list();
    assert.equal(list.data[0].id, "needle");
    assert.equal((await openai.models.retrieve("needle")).id, "needle");
    await assert.rejects(openai.models.retrieve("other"), OpenAI.NotFoundError);
  },

  async "completion: plain, the needle is found"() {
    const answer = await openai.completions.create({ model: "needle", prompt: needle, max_tokens: 8 });
    assert.match(answer.choices[0].text, /48213/);
    assert.equal(answer.object, "text_completion");
    assert.ok(answer.usage.prompt_tokens > 100);
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
    assert.equal(answer.kv.policy, "snapkv-max");
    assert.ok(answer.kv.tokens_kept < answer.kv.tokens_before);
  },

  async "completion: streamed, the same"() {
    const plain = await openai.completions.create({ model: "needle", prompt: needle, max_tokens: 8 });
    const stream = await openai.completions.create(
      { model: "needle", prompt: needle, max_tokens: 8, stream: true, stream_options: { include_usage: true } });
    let text = "";
    let last;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.text ?? "";
      last = chunk;
    }
    assert.equal(text, plain.choices[0].text);
    assert.equal(last.choices.length, 0);
    assert.equal(last.usage.completion_tokens, plain.usage.completion_tokens);
  },

  async "chat: plain"() {
    const answer = await openai.chat.completions.create({ model: "needle", messages: hello, max_tokens: 6 });
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.choices[0].message.role, "assistant");
    assert.ok(["stop", "length"].includes(answer.choices[0].finish_reason));
    assert.ok(answer.timings.prompt_n > 0);
  },

  async "chat: streamed, role first, one id, finish_reason, usage"() {
    const stream = await openai.chat.completions.create({
      model: "needle", messages: hello, max_tokens: 6, stream: true, stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.equal(chunks[0].choices[0].delta.role, "assistant");
    assert.equal(new Set(chunks.map((c) => c.id)).size, 1);
    assert.equal(new Set(chunks.map((c) => c.created)).size, 1);
    assert.equal(chunks.filter((c) => c.choices[0]?.finish_reason).length, 1);
    assert.ok(chunks.at(-1).usage.prompt_tokens > 0);
    const plain = await openai.chat.completions.create({ model: "needle", messages: hello, max_tokens: 6 });
    assert.equal(chunks.map((c) => c.choices[0]?.delta.content ?? "").join(""), plain.choices[0].message.content);
  },

  async "chat: the client's helper for streams"() {
    const stream = openai.beta.chat.completions.stream({ model: "needle", messages: hello, max_tokens: 6 });
    assert.equal(typeof (await stream.finalContent()), "string");
  },

  async "logprobs"() {
    const answer = await openai.chat.completions.create(
      { model: "needle", messages: hello, max_tokens: 3, logprobs: true, top_logprobs: 2, ignore_eos: true });
    const content = answer.choices[0].logprobs.content;
    assert.equal(content.length, 3);
    for (const token of content) {
      assert.ok(token.logprob <= 0);
      assert.equal(token.top_logprobs.length, 2);
      assert.equal(token.top_logprobs[0].token, token.token, "greedy: the chosen one is the likeliest");
    }
    const text = await openai.completions.create({ model: "needle", prompt: needle, max_tokens: 3, logprobs: 1 });
    assert.equal(text.choices[0].logprobs.tokens.length, text.usage.completion_tokens);
  },

  async "n: answers to one prompt"() {
    const answer = await openai.chat.completions.create(
      { model: "needle", messages: hello, max_tokens: 5, n: 3, temperature: 1.5, seed: 7 });
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2]);
    const again = await openai.chat.completions.create(
      { model: "needle", messages: hello, max_tokens: 5, n: 3, temperature: 1.5, seed: 7 });
    assert.deepEqual(again.choices.map((c) => c.message.content), answer.choices.map((c) => c.message.content));
    await assert.rejects(openai.chat.completions.create({ model: "needle", messages: hello, n: 5000 }), (e) => {
      assert.equal(e.status, 400);
      assert.equal(e.param, "n");
      return true;
    });
  },

  async "several prompts: choices in their order, each as alone"() {
    const prompts = ["Rome", "Oslo"].map((city) => needle.replaceAll("Rome", city));
    const request = { model: "needle", max_tokens: 6, n: 2, seed: 3 };
    const answer = await openai.completions.create({ ...request, prompt: prompts });
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2, 3]);
    let nTokens = 0;
    for (const [i, prompt] of prompts.entries()) {
      const alone = await openai.completions.create({ ...request, prompt });
      assert.deepEqual(answer.choices.slice(2 * i, 2 * i + 2).map((c) => c.text), alone.choices.map((c) => c.text));
      nTokens += alone.usage.prompt_tokens;
    }
    assert.equal(answer.usage.prompt_tokens, nTokens);
    const texts = ["", "", "", ""];
    for await (const chunk of await openai.completions.create({ ...request, prompt: prompts, stream: true })) {
      for (const choice of chunk.choices) texts[choice.index] += choice.text;
    }
    assert.deepEqual(texts, answer.choices.map((c) => c.text));
    const tokens = (await plainHttp("/tokenize", { content: "Rome is", add_special: true })).json.tokens;
    const ofTokens = await openai.completions.create({ model: "needle", prompt: [tokens, tokens], max_tokens: 2 });
    assert.equal(ofTokens.choices[0].text, ofTokens.choices[1].text);
  },

  async "echo and suffix"() {
    const plain = await openai.completions.create({ model: "needle", prompt: needle, max_tokens: 6 });
    const echoed = await openai.completions.create({ model: "needle", prompt: needle, max_tokens: 6, echo: true });
    assert.equal(echoed.choices[0].text, needle + plain.choices[0].text);
    const scored = await openai.completions.create(
      { model: "needle", prompt: needle, echo: true, logprobs: 1, max_tokens: 1 });
    const { tokens, token_logprobs } = scored.choices[0].logprobs;
    assert.equal(tokens.length, token_logprobs.length);
    assert.equal(token_logprobs[0], null);
    assert.ok(token_logprobs.slice(1).every((value) => value <= 0));
    await assert.rejects(
      openai.completions.create({ model: "needle", prompt: "x", echo: true, logprobs: 1, stream: true }), (e) => {
        assert.equal(e.status, 400);
        assert.equal(e.param, "echo");
        return true;
      });
    await assert.rejects(
      openai.completions.create({ model: "needle", prompt: "x", suffix: "y" }), /vocabulary has no tokens/);
  },

  async "stop"() {
    const answer = await openai.completions.create({ model: "needle", prompt: needle, max_tokens: 8, stop: ["21"] });
    assert.match(answer.choices[0].text, /48$/);
    assert.equal(answer.choices[0].finish_reason, "stop");
  },

  async "tools: required, plain and streamed"() {
    const request = { model: "needle", messages: hello, tools, tool_choice: "required", parallel_tool_calls: false };
    const answer = await openai.chat.completions.create(request);
    const call = answer.choices[0].message.tool_calls[0];
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    assert.equal(call.function.name, "weather");
    assert.ok(["Rome", "Oslo"].includes(JSON.parse(call.function.arguments).city));
    const stream = openai.beta.chat.completions.stream(request);
    const streamed = (await stream.finalChatCompletion()).choices[0].message.tool_calls[0];
    assert.equal(streamed.function.arguments, call.function.arguments);
    const next = await openai.chat.completions.create({
      model: "needle", max_tokens: 4, tools,
      messages: [...hello, answer.choices[0].message, { role: "tool", tool_call_id: call.id, content: "sunny" }],
    });
    assert.equal(next.choices[0].message.role, "assistant");
  },

  async "json_schema"() {
    const schema = {
      type: "object",
      properties: { ok: { type: "boolean" }, digit: { enum: [1, 2, 3] } },
      required: ["ok", "digit"],
      additionalProperties: false,
    };
    const answer = await openai.chat.completions.create({
      model: "needle", messages: hello,
      response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } },
    });
    const json = JSON.parse(answer.choices[0].message.content);
    assert.equal(typeof json.ok, "boolean");
    assert.ok([1, 2, 3].includes(json.digit));
    const gbnf = await openai.completions.create(
      { model: "needle", prompt: "x", grammar: 'root ::= "yes" | "no"' });
    assert.match(gbnf.choices[0].text, /^(yes|no)$/);
  },

  async "errors"() {
    await assert.rejects(
      openai.chat.completions.create({ model: "needle", messages: hello, temperature: "hot" }),
      (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature" && /must be a number/.test(e.message));
    await assert.rejects(
      openai.chat.completions.create({
        model: "needle", messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }],
      }),
      /text only/);
    const long = "The grey fox. ".repeat(20000);
    await assert.rejects(openai.completions.create({ model: "needle", prompt: long }), (e) => {
      assert.equal(e.status, 400);
      assert.equal(e.code, "context_length_exceeded");
      assert.match(e.message, /\d+/);
      return true;
    });
    const wrong = new OpenAI({ baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0 });
    await assert.rejects(wrong.models.list(), OpenAI.AuthenticationError);
    assert.equal((await plainHttp("/v1/none")).status, 404);
  },

  async "cancellation"() {
    const controller = new AbortController();
    const stream = await openai.completions.create(
      { model: "needle", prompt: needle, max_tokens: 100000, ignore_eos: true, stream: true },
      { signal: controller.signal });
    for await (const chunk of stream) {
      assert.ok(chunk);
      break;
    }
    controller.abort();
    for (let i = 0; ; ++i) {
      const slots = (await plainHttp("/slots")).json;
      if (slots.every((slot) => !slot.is_processing)) break;
      assert.ok(i < 200, "the request goes on without its client");
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  },

  async "many at once: each answer is its own"() {
    const prompts = Array.from({ length: 12 }, (_, i) => needle.replaceAll("Rome", ["Rome", "Oslo", "Paris"][i % 3])
      .replace("48213", String(10000 + i * 1111)));
    const answers = await Promise.all(prompts.map((prompt) =>
      openai.completions.create({ model: "needle", prompt, max_tokens: 8 })));
    for (const [i, prompt] of prompts.entries()) {
      const alone = await openai.completions.create({ model: "needle", prompt, max_tokens: 8 });
      assert.equal(answers[i].choices[0].text, alone.choices[0].text);
    }
  },

  async "kv: policies and reports"() {
    const answer = await openai.completions.create({
      model: "needle", prompt: needle, max_tokens: 8, kv: { policy: "full" }, kv_report: "positions",
    });
    assert.equal(answer.kv.policy, "full");
    assert.equal(answer.kv.tokens_kept, answer.kv.tokens_before);
    assert.ok(answer.kv.positions.length > 0);
    await assert.rejects(
      openai.completions.create({ model: "needle", prompt: "x", kv: { kernel_size: 4 } }), /odd/);
  },

  async "a conversation that goes on is reused"() {
    const first = await openai.chat.completions.create({ model: "needle", messages: hello, max_tokens: 4 });
    const second = await openai.chat.completions.create({
      model: "needle", max_tokens: 4,
      messages: [...hello, { role: "assistant", content: first.choices[0].message.content },
        { role: "user", content: "And now?" }],
    });
    assert.ok(second.usage.prompt_tokens_details.cached_tokens >= 0);
  },

  async "responses: plain, streamed, tools"() {
    const answer = await openai.responses.create({ model: "needle", input: "Hello", max_output_tokens: 5 });
    assert.equal(answer.object, "response");
    assert.equal(typeof answer.output_text, "string");
    const events = [];
    const stream = await openai.responses.create(
      { model: "needle", input: "Hello", max_output_tokens: 5, stream: true });
    for await (const event of stream) events.push(event);
    assert.equal(events[0].type, "response.created");
    assert.match(events.at(-1).type, /^response\.(completed|incomplete)$/);
    const text = events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join("");
    assert.equal(text, answer.output_text);
    const called = await openai.responses.create({
      model: "needle", input: "Hello", tools: [{ type: "function", ...tools[0].function, strict: true }],
      tool_choice: "required", parallel_tool_calls: false,
    });
    assert.equal(called.output[0].type, "function_call");
    assert.equal(called.output[0].name, "weather");
  },

  async "messages: plain, streamed, tools, counted"() {
    const request = { model: "needle", max_tokens: 5, system: "Be brief", messages: hello };
    const answer = await anthropic.messages.create(request);
    assert.equal(answer.type, "message");
    assert.ok(["end_turn", "max_tokens"].includes(answer.stop_reason));
    const stream = anthropic.messages.stream(request);
    const streamed = await stream.finalMessage();
    assert.deepEqual(streamed.content, answer.content);
    assert.equal(streamed.stop_reason, answer.stop_reason);
    const count = await anthropic.messages.countTokens({ model: "needle", system: "Be brief", messages: hello });
    assert.equal(count.input_tokens,
      streamed.usage.input_tokens + streamed.usage.cache_read_input_tokens);
    const withTools = {
      model: "needle", max_tokens: 1000, messages: hello,
      tools: [{ name: "weather", input_schema: tools[0].function.parameters }],
      tool_choice: { type: "tool", name: "weather", disable_parallel_tool_use: true },
    };
    const called = await anthropic.messages.create(withTools);
    assert.equal(called.stop_reason, "tool_use");
    assert.equal(called.content[0].name, "weather");
    const calledStream = await anthropic.messages.stream(withTools).finalMessage();
    assert.deepEqual(calledStream.content[0].input, called.content[0].input);
    await assert.rejects(anthropic.messages.create({ model: "needle", messages: hello }), Anthropic.BadRequestError);
    const wrong = new Anthropic({ baseURL: url, apiKey: "wrong", maxRetries: 0 });
    await assert.rejects(wrong.messages.create(request), Anthropic.AuthenticationError);
  },

  async "snapshots: a document is read once"() {
    const document = "The secret number of Rome is 48213. " +
      "A grey fox sat by the old mill and watched the river. ".repeat(20);
    const made = await plainHttp("/v1/kv/snapshots", { name: "book", text: document });
    assert.equal(made.status, 200, JSON.stringify(made.json));
    const list = (await plainHttp("/v1/kv/snapshots")).json.data;
    assert.deepEqual(list.map((s) => s.name), ["book"]);
    const answer = await openai.chat.completions.create({
      model: "needle", messages: [{ role: "user", content: "What is the secret number of Rome?" }], max_tokens: 8,
      kv: { snapshot: "book" },
    });
    assert.ok(answer.usage.prompt_tokens_details.cached_tokens > 100);
    assert.equal(answer.choices[0].message.role, "assistant");
    await assert.rejects(
      openai.completions.create({ model: "needle", prompt: "x", kv: { snapshot: "none" } }), OpenAI.NotFoundError);
  },

  async "metrics and health"() {
    const health = await plainHttp("/health", undefined, {});
    assert.equal(health.status, 200);
    const text = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${key}` } })).text();
    assert.match(text, /^snapkv_generated_tokens_total \d+/m);
  },
};

let failed = 0;
try {
  await until(() => /ready: (\S+)/.test(log), "line that says it is ready");
  url = log.match(/ready: (\S+)/)[1];
  // the client's own node-fetch 2 takes whole streams for cut ones in Node.js 20.19 and later
  const { fetch } = globalThis;
  openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetch });
  anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
  for (const [name, run] of Object.entries(tests)) {
    const begin = performance.now();
    try {
      await run();
      console.log(`ok      ${name} (${Math.round(performance.now() - begin)} ms)`);
    } catch (error) {
      ++failed;
      console.log(`FAILED  ${name}\n${error.stack}`);
      if (exited !== null) throw new Error(`the server has ended with ${exited}:\n${log}`);
    }
  }
  server.kill("SIGTERM");
  for (let i = 0; i < 1000 && exited === null; ++i) await new Promise((resolve) => setTimeout(resolve, 10));
  if (exited !== 0) throw new Error(`after SIGTERM the server ended with ${exited}:\n${log}`);
} finally {
  if (exited === null) server.kill("SIGKILL");
  rmSync(snapshots, { recursive: true, force: true });
}
console.log(failed === 0 ? "all passed" : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
