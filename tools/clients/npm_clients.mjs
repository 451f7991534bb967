// SPDX-License-Identifier: MIT
// node npm_clients.mjs NAME URL: one npm client's checks, each a line of JSON: [what, error or ""].
// Run by tools/client_walk.py beside the packages.
import assert from "node:assert/strict";

const [name, url] = process.argv.slice(2);
const model = "local";
const messages = [{ role: "user", content: "Say hello." }];

async function check(what, run) {
  let error = "";
  try {
    await run();
  } catch (e) {
    error = String(e).split("\n")[0].slice(0, 200);
  }
  console.log(JSON.stringify([what, error]));
}

async function last(stream) {
  let value;
  for await (value of stream);
  return value;
}

const clients = {
  "ollama (npm)": async () => {
    const { Ollama } = await import("ollama");
    const client = new Ollama({ host: url });
    const options = { num_predict: 16 };
    await check("list, show, ps", async () => {
      assert.equal((await client.list()).models[0].model, model);
      assert.ok((await client.show({ model })).capabilities.includes("tools"));
      assert.equal((await client.ps()).models.length, 1);
    });
    await check("chat", async () => assert.ok((await client.chat({ model, messages, options })).message.content));
    await check("stream", async () =>
      assert.ok((await last(await client.chat({ model, messages, options, stream: true }))).done));
    await check("generate", async () =>
      assert.ok((await client.generate({ model, prompt: "Hi", options })).response));
  },
  "openai (npm)": async () => {
    const { default: OpenAI } = await import("openai");
    const client = new OpenAI({ baseURL: url + "/v1", apiKey: "any", maxRetries: 0 });
    await check("chat", async () =>
      assert.ok((await client.chat.completions.create({ model, messages, max_tokens: 16 })).choices.length));
    await check("stream", async () =>
      assert.ok(await last(await client.chat.completions.create({ model, messages, max_tokens: 16, stream: true }))));
    await check("responses", async () =>
      assert.ok((await client.responses.create({ model, input: "Hi", max_output_tokens: 16 })).output.length));
  },
  "anthropic (npm)": async () => {
    const { default: Anthropic } = await import("@anthropic-ai/sdk");
    const client = new Anthropic({ baseURL: url, apiKey: "any", maxRetries: 0 });
    await check("messages", async () =>
      assert.ok((await client.messages.create({ model: "claude-x", messages, max_tokens: 16 })).content.length));
    await check("stream", async () =>
      assert.ok(await client.messages.stream({ model: "claude-x", messages, max_tokens: 16 }).finalMessage()));
    await check("count_tokens", async () =>
      assert.ok((await client.messages.countTokens({ model: "claude-x", messages })).input_tokens > 3));
  },
};

await clients[name]();
