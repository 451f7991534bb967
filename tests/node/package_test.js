// SPDX-License-Identifier: MIT
// The Node.js package beside the built library: answers, documents, streams, sessions, errors.
'use strict';

const assert = require('node:assert/strict');
const path = require('node:path');
const {before, test} = require('node:test');
const snapkv = require('../../node/lib/index.js');
const {FILLER, MODEL, QUESTION, TEXT, rejects, tempFolder, writeChatModel} = require('./support.js');

const {Model, SnapkvError, decode, options} = snapkv;
const folder = tempFolder();
let model;
before(async () => {
  model = await Model.load(MODEL, {nThreads: 2, temperature: 0, max_tokens: 8});
});

test('a model says what it is, and has tokens', async () => {
  assert.equal(model.info.architecture, 'llama');
  const ids = await model.tokenize('Paris is blue', {addSpecial: false});
  assert.ok(ids instanceof Int32Array);
  assert.equal((await model.detokenize(ids)).trim(), 'Paris is blue');
  assert.equal(await model.detokenize(Array.from(ids)), await model.detokenize(ids));
  assert.equal((await model.tokenize('Paris is blue')).length, ids.length + 1);
  assert.match(snapkv.version, /^\d+\.\d+\.\d+$/);
});

test('a document answers in every way', async () => {
  const document = await model.prefill(TEXT);
  assert.equal(document.length, (await model.tokenize(TEXT)).length);
  const text = await document.ask(QUESTION, {kvBudget: 128});
  assert.match(text, /48213/);
  const pieces = [];
  const answer = document.ask(QUESTION, {kv_budget: 128, stream: true});
  for await (const piece of answer) pieces.push(piece);
  assert.equal(pieces.join(''), text);
  assert.ok(pieces.length > 1);
  assert.ok(answer.stats.compression > 1);
  const file = path.join(folder, 'book.kv');
  await document.save(file);
  const loaded = await model.loadDocument(file);
  assert.match(await loaded.ask(QUESTION, {kvBudget: 128}), /48213/);
  const session = await loaded.session(QUESTION, {kvBudget: 128});
  assert.match(await session.generate(), /48213/);
});

test('a session keeps its budget and goes on', async () => {
  const session = await model.session({kvBudget: 128});
  const ids = await model.tokenize(TEXT + QUESTION);
  await session.prefill(ids);
  assert.equal(session.nPast, ids.length);
  assert.equal(session.nCtx, model.info.n_ctx_train);
  assert.equal((await session.positions(0, 0)).length, 128);
  const stats = await session.stats();
  assert.ok(stats.compression > 1);
  assert.equal(stats.layers.length, model.info.n_layer);
  const answer = session.generate({stream: true, maxTokens: 4, topLogprobs: 0});
  assert.ok(await answer.text());
  assert.equal(answer.ids.length, 4);
  assert.equal(answer.stopReason, 'length');
  assert.equal(answer.logprobs.length, 4);
  assert.ok(answer.logprobs.every((p) => p <= 0));
  const n = session.nPast;
  assert.ok(n >= ids.length + 3);
  const file = path.join(folder, 'session.bin');
  await session.save(file);
  const other = await model.session({kvBudget: 128});
  await other.load(file);
  assert.equal(other.nPast, n);
  await session.reset();
  assert.equal(session.nPast, 0);
});

test('logits are those that answers are chosen from', async () => {
  const session = await model.session({kvPolicy: 'full'});
  assert.equal((await session.logits()).length, 0);
  await session.prefill(await model.tokenize('The special number'));
  const logits = await session.logits();
  assert.ok(logits instanceof Float32Array);
  assert.equal(logits.length, model.info.n_vocab);
  const answer = session.generate({stream: true, maxTokens: 1});
  await answer.text();
  assert.deepEqual(answer.ids, [logits.indexOf(Math.max(...logits))]);
});

test('answers follow schemas and grammars, and end at a stop text', async () => {
  const ids = await model.tokenize('Yes or no?');
  for (const grammar of [{enum: ['yes']}, 'root ::= "\\"yes\\""']) {
    const session = await model.session();
    await session.prefill(ids);
    assert.equal(await session.generate({grammar}), '"yes"');
  }
  const text = await model.generate('The grass is green and the sky is', {stop: ['blue', 'x']});
  assert.ok(!text.includes('blue'));
});

test('penalties count the prompt, unless a history is given', async () => {
  const options = {kvBudget: 128, repeatPenalty: 1000, repeatLastN: -1};
  assert.doesNotMatch(await model.generate(TEXT + QUESTION, options), /48213/);
  assert.match(await model.generate(TEXT + QUESTION, {...options, history: []}), /4/);
});

test('sessions decode together', async () => {
  const ids = await model.tokenize('The special number of Paris');
  const [first, second] = await Promise.all([model.session(), model.session()]);
  await Promise.all([first.prefill(ids), second.prefill(ids)]);
  await decode([first, second], [5, 5]);
  assert.equal(first.nPast, ids.length + 1);
  assert.deepEqual(await first.logits(), await second.logits());
  await first.decode(6);
  assert.equal(first.nPast, ids.length + 2);
  await rejects(decode([first, first], [5, 5]), {code: 'SNAPKV_ERROR_USAGE', field: 'sessions'});
});

test('chats use the template of the model', async () => {
  const chatModel = await Model.load(writeChatModel(folder), {temperature: 0, maxTokens: 8});
  assert.deepEqual(chatModel.info.chat_templates, ['default']);
  const messages = [{role: 'system', content: FILLER}, {role: 'user', content: 'Hello'}];
  assert.equal(await chatModel.chatText(messages), `${FILLER}\nHello`);
  assert.deepEqual(await chatModel.chatTokens('Hello'), await chatModel.tokenize('Hello'));
  const answer = await chatModel.chat([{role: 'user', content: TEXT + QUESTION}], {kvBudget: 128});
  assert.match(answer, /48213/);
  await rejects(model.chat('Hello'), {code: 'SNAPKV_ERROR_USAGE', message: /no chat template/});
  await rejects(chatModel.chat([]), {code: 'SNAPKV_ERROR_USAGE', field: 'messages'});
});

test('errors have a code, and the field at fault', async () => {
  const usage = {name: 'SnapkvError', code: 'SNAPKV_ERROR_USAGE'};
  await rejects(model.session({topP: 2}), {...usage, field: 'topP', message: /^topP.*it must be a number/});
  await rejects(model.session({top_p: 2}), {...usage, field: 'top_p', message: /^top_p/});
  await rejects(model.session({budget: 3}), {...usage, field: 'budget', message: /no option "budget"/});
  await rejects(model.session({kvBudget: 3, kv_budget: 4}), {...usage, field: 'kv_budget'});
  await rejects(model.session({kvBudget: {}}), {...usage, field: 'kvBudget'});
  await rejects(model.session({spillDir: 'a\0b'}), {...usage, field: 'spillDir'});
  await rejects(model.detokenize([1, -1]), {...usage, field: 'ids', message: /ids\[1\] is -1/});
  await rejects(Model.load('no/such/model.gguf'), {code: 'SNAPKV_ERROR_RUNTIME', message: /no\/such/});
  await rejects(Model.load(__filename), {code: 'SNAPKV_ERROR_BAD_MODEL'});
  const small = await model.session({nCtx: 10});
  await rejects(small.prefill(Array.from({length: 25}, (_, i) => i + 5)), {code: 'SNAPKV_ERROR_CONTEXT'});
  await rejects(small.generate(), {...usage, message: /read no prompt/});
  assert.throws(() => options('none'), {code: 'SNAPKV_ERROR_USAGE', field: 'policy'});
  assert.throws(() => model.chat('x', {signal: 5}), {code: 'SNAPKV_ERROR_USAGE', field: 'signal'});
  assert.ok(new SnapkvError('', '') instanceof Error);
});

test('errors name options as they were written', async () => {
  const message = async (work) => {
    const error = await work.then(() => assert.fail('no error'), (thrown) => thrown);
    assert.match(error.stack, new RegExp(`^SnapkvError: ${error.message.slice(0, 10)}`));
    return error.message;
  };
  // two options in one message, of which one was not given
  assert.match(await message(model.session({kvBudget: 3})), /kvBudget.*kvWindow/);
  assert.match(await message(model.session({kv_budget: 3})), /kv_budget.*kv_window/);
  assert.match(await message(model.session({'--kv-budget': 3})), /--kv-budget.*--kv-window/);
  const unknown = await message(model.session({kvBugdet: 3}));
  assert.match(unknown, /"kvBugdet".*did you mean kvBudget\?/);
  assert.doesNotMatch(unknown, /kv_/);
  assert.match(await message(model.session({kvPolicy: 'chunkkv', kvChunkLength: 0})), /kvChunkLength/);
  assert.match(await message(Model.load(MODEL, {nThreads: -1})), /nThreads/);
  assert.match(await message(model.generate('x', {topK: -1})), /topK/);
  assert.match(await message(Model.load('no/such_model/kv_budget.gguf')), /such_model\/kv_budget\.gguf/);
  // a later call replaces an option of the model in another spelling
  const other = await Model.load(MODEL, {kvBudget: 3});
  await (await other.session({kv_budget: 128})).free();
});

test('what has been freed says so', async () => {
  const session = await model.session();
  session.free();
  session.free();
  await rejects(session.stats(), {code: 'SNAPKV_ERROR_USAGE', message: /has been freed/});
  const document = await model.prefill('The grass is green.');
  document.free();
  await rejects(document.ask('?'), {code: 'SNAPKV_ERROR_USAGE', field: 'document'});
});

test('kv_policy decides which other options there are, in any order', async () => {
  const session = await model.session({kvNFuture: 64, kvPolicy: 'expected-attention'});
  session.free();
  await rejects(model.session({kvNFuture: 64}), {field: 'kvNFuture'});
});
