// SPDX-License-Identifier: MIT
// Time: the event loop runs while the engine computes, calls end when they are cancelled, answers go on
// while a prompt is read, and processes and threads end whatever is under way.
'use strict';

const assert = require('node:assert/strict');
const {spawnSync} = require('node:child_process');
const {once} = require('node:events');
const {before, test} = require('node:test');
const {setTimeout: sleep} = require('node:timers/promises');
const {Worker} = require('node:worker_threads');
const {Model} = require('../../node/lib/index.js');
const {FILLER, MODEL, QUESTION, TEXT, rejects} = require('./support.js');

const LONG = FILLER.repeat(4);  // a second or more
const LIBRARY = require.resolve('../../node/lib/index.js');
let model;
before(async () => {
  model = await Model.load(MODEL, {nThreads: 2, temperature: 0, maxTokens: 8});
});

test('the event loop runs while a prompt is read', async () => {
  const phases = [];
  let ticks = 0;
  const timer = setInterval(() => ++ticks, 5);
  const onProgress = (phase, fraction) => void phases.push([phase, fraction]);
  const kv = await model.prefill(LONG, {onProgress});
  clearInterval(timer);
  kv.free();
  assert.ok(ticks > 5, `${ticks} ticks`);
  assert.ok(phases.length > 1);
  assert.ok(phases.every(([phase, fraction]) => phase === 'prefill' && fraction > 0 && fraction <= 1));
});

test('signals and progress functions end a prefill', async () => {
  const session = await model.session();
  const ids = await model.tokenize(LONG);
  const reason = new Error('changed my mind');
  const stop = new AbortController();
  const reading = session.prefill(ids, {signal: stop.signal, onProgress: () => stop.abort(reason)});
  await rejects(reading, {name: 'AbortError', code: 'ABORT_ERR', cause: reason});
  assert.equal(session.nPast, 0);
  await rejects(session.prefill(ids, {signal: stop.signal}), {name: 'AbortError'});
  await rejects(session.prefill(ids, {onProgress: () => false}), {code: 'SNAPKV_ERROR_CANCELLED'});
  const thrown = new Error('mine');
  await assert.rejects(session.prefill(ids, {onProgress: () => { throw thrown; }}), (e) => e === thrown);
  assert.equal(session.nPast, 0);
  await session.prefill(ids.subarray(0, 20));
  assert.equal(session.nPast, 20);
});

test('a call that waits is cancelled at once', async () => {
  const stop = new AbortController();
  let isRead = false;
  const reading = model.prefill(LONG).then(() => isRead = true);
  const waiting = model.prefill(LONG, {signal: stop.signal});
  await sleep(20);
  stop.abort();
  await rejects(waiting, {name: 'AbortError'});
  assert.equal(isRead, false);
  await reading;
});

test('a signal ends an answer, and so does leaving it', async () => {
  const kv = await model.prefill(TEXT);
  const stop = new AbortController();
  const answer = kv.ask(QUESTION, {stream: true, maxTokens: 500, ignoreEos: true, signal: stop.signal});
  await answer.next();
  stop.abort();
  await rejects(answer.next(), {name: 'AbortError'});
  assert.deepEqual(await answer.next(), {value: undefined, done: true});
  const left = kv.ask(QUESTION, {stream: true, maxTokens: 500, ignoreEos: true});
  for await (const piece of left) {
    assert.ok(piece);
    break;
  }
  assert.equal(left.stopReason, null);
  assert.ok(left.stats.n_decoded < 500);
});

test('answers go on, unchanged, while a prompt is read', async () => {
  const kv = await model.prefill(TEXT);
  const options = {stream: true, kvBudget: 128, maxTokens: 6};
  const alone = await kv.ask(QUESTION, options).text();
  const answer = kv.ask(QUESTION, options);
  let text = (await answer.next()).value;
  let isRead = false;
  const reading = model.prefill(LONG).then(() => isRead = true);
  text += (await answer.next()).value;
  assert.equal(isRead, false, 'the second piece waited for the prompt');
  text += await answer.text();
  await reading;
  assert.equal(text, alone);
});

test('calls of a session wait for each other', async () => {
  const session = await model.session({kvBudget: 128});
  const ids = await model.tokenize(TEXT + QUESTION);
  const calls = [session.prefill(ids), session.stats(), session.positions(0, 0), session.reset()];
  const [, stats, positions] = await Promise.all(calls);
  assert.equal(stats.n_prompt, ids.length);
  assert.equal(positions.length, 128);
  assert.equal(session.nPast, 0);
});

function run(code) {
  return spawnSync(process.execPath, ['-e', `const {Model} = require(${JSON.stringify(LIBRARY)});
      const model = Model.load(${JSON.stringify(MODEL)}); ${code}`], {encoding: 'utf8', timeout: 60000});
}

test('a process ends by itself, or in the middle of a call', () => {
  const done = run(`model.then((m) => m.generate("The grass", {maxTokens: 3}))
      .then(() => console.log("done"))`);
  assert.deepEqual([done.status, done.stdout], [0, 'done\n'], done.stderr);
  const text = JSON.stringify(FILLER.repeat(8));
  for (let i = 0; i < 10; ++i) {  // whether a thread that goes on meets what exit() has freed is chance
    const left = run(`model.then((m) => m.prefill(${text}, {onProgress: () => process.exit(7)}))`);
    assert.equal(left.status, 7, left.stderr);
  }
});

test('a worker has a model of its own and may be ended', async () => {
  const worker = new Worker(`const {Model} = require(${JSON.stringify(LIBRARY)});
      const {parentPort} = require('node:worker_threads');
      Model.load(${JSON.stringify(MODEL)}).then(async (model) => {
        parentPort.postMessage(await model.generate('The grass is', {maxTokens: 4, temperature: 0}));
        model.prefill(${JSON.stringify(LONG)}, {onProgress: () => parentPort.postMessage('reads')});
      });`, {eval: true});
  const [text] = await once(worker, 'message');
  assert.equal(text, await model.generate('The grass is', {maxTokens: 4}));
  assert.deepEqual(await once(worker, 'message'), ['reads']);
  await worker.terminate();
});
