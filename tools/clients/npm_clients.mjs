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

/** What the AI SDK does with a model, whichever provider it is of. */
async function vercel(model, prefix = "") {
  const ai = await import("ai");
  const { z } = await import("zod");
  const settings = { model, maxOutputTokens: 64, maxRetries: 0 };
  const city = z.object({ name: z.string() });
  const weather = ai.tool({
    description: "The weather of a city",
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => `sunny in ${city}`,
  });
  // the first step must call the tool, the second answers
  const round = {
    ...settings,
    prompt: "Weather in Rome?",
    tools: { weather },
    stopWhen: ai.stepCountIs(2),
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? { type: "tool", toolName: "weather" } : "none" }),
  };
  const checkRound = (steps) => {
    assert.equal(steps.length, 2);
    assert.match(String(steps[0].toolResults[0].output), /^sunny in/);
    assert.ok(steps[1].text);
  };
  await check(prefix + "generateText", async () =>
    assert.ok((await ai.generateText({ ...settings, prompt: "Say hello." })).text));
  await check(prefix + "streamText", async () => {
    let error;
    const stream = ai.streamText({ ...settings, prompt: "Say hello.", onError: (e) => (error = e.error) });
    await stream.consumeStream();
    if (error) throw error;
    assert.ok((await stream.text) && (await stream.usage).outputTokens > 0);
  });
  await check(prefix + "a tool and its result", async () => checkRound((await ai.generateText(round)).steps));
  await check(prefix + "the same, streamed", async () => {
    const stream = ai.streamText(round);
    await stream.consumeStream();
    checkRound(await stream.steps);
  });
  await check(prefix + "generateObject", async () =>
    assert.equal(typeof (await ai.generateObject({ ...settings, schema: city, prompt: "A city?" })).object.name, "string"));
  await check(prefix + "streamObject", async () => {
    const stream = ai.streamObject({ ...settings, schema: city, prompt: "A city?" });
    assert.equal(typeof (await last(stream.partialObjectStream)).name, "string");
  });
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
  "Vercel AI SDK (openai-compatible)": async () => {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const provider = createOpenAICompatible({ name: "snapkv", baseURL: url + "/v1", includeUsage: true, supportsStructuredOutputs: true });
    await vercel(provider(model));
  },
  "Vercel AI SDK (openai)": async () => {
    const { createOpenAI } = await import("@ai-sdk/openai");
    const provider = createOpenAI({ baseURL: url + "/v1", apiKey: "any" });
    await vercel(provider.responses(model), "responses: ");
    await vercel(provider.chat(model), "chat: ");
  },
};

await clients[name]();
