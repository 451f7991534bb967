// SPDX-License-Identifier: MIT
// What TypeScript must accept of the package, and refuse. Compiled, not run.
import {AbortError, Answer, Model, SnapkvError, Stats, decode, options} from '../../node/lib/index';

export async function accepted(): Promise<void> {
  const {signal} = new AbortController();
  const model = await Model.load('model.gguf', {
    nThreads: 2, kv_budget: 512, kvMemory: '256MiB', signal,
    onProgress: (phase, fraction) => phase === 'load' && fraction < 0.5,
  });
  const text: string = await model.chat('Hello', {kvPolicy: 'snapkv', stop: ['\n', '.']});
  const answer: Answer = model.chat([{role: 'user', content: text}], {stream: true, max_tokens: 5});
  for await (const piece of answer) piece.toUpperCase();
  const stats: Stats | null = answer.stats;
  const document = await model.prefill(Int32Array.of(1, 2, 3));
  const session = await document.session('?', {kvBudget: 64});
  await decode([session], [stats?.n_prompt ?? 0]);
  const same: string = await session.generate({grammar: {type: 'object'}, stream: false});
  await model.generate(await model.chatTokens(same, {tools: []}));
  const words: string[] | undefined = options('snapkv')[0].words;
  try {
    model.free();
  } catch (error) {
    if (error instanceof AbortError || error instanceof SnapkvError) words?.push(error.field ?? error.code);
  }
}

export async function disposed(streams: boolean): Promise<void> {
  using model = await Model.load('model.gguf');
  using session = await model.session();
  const either: Answer | Promise<string> = session.generate({stream: streams});
  // @ts-expect-error: it may be an Answer
  const text: Promise<string> = model.chat('Hello', {stream: streams});
  await Promise.all([either, text]);
}

export async function refused(model: Model): Promise<void> {
  // @ts-expect-error: there is no such option
  await model.session({budget: 3});
  // @ts-expect-error: there is no such policy
  await model.session({kvPolicy: 'best'});
  // @ts-expect-error: a number is expected
  await model.session({top_p: 'much'});
  // @ts-expect-error: models are loaded
  new Model();
  // @ts-expect-error: an answer with `stream` is not a promise of a text
  const text: string = await model.chat('Hello', {stream: true});
  // @ts-expect-error: sessions are made with options, their prompts are not
  await (await model.session()).prefill([1], {kvBudget: 3});
  text.trim();
}
