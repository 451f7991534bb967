// SPDX-License-Identifier: MIT
// Nothing is left of models, documents, sessions and answers: neither of those that are freed nor of those
// that are collected. Run with --expose-gc.
'use strict';

const assert = require('node:assert/strict');
const {test} = require('node:test');
const {setImmediate: nextTurn} = require('node:timers/promises');
const {Model} = require('../../node/lib/index.js');
const {MODEL, QUESTION, TEXT, rejects} = require('./support.js');

const MIB = 2 ** 20;
const PROMPT = TEXT.slice(-400) + QUESTION;

// Resident bytes after `n` rounds, once what can be collected is.
async function rssAfter(n, round) {
  for (let i = 0; i < n; ++i) {
    await round();
    if (i % 20 === 19) await collect();
  }
  await collect();
  return process.memoryUsage().rss;
}

async function collect() {
  for (let i = 0; i < 3; ++i) {
    global.gc();
    await nextTurn();  // finalizers run between turns
  }
}

async function assertFlat(n, round) {
  const first = await rssAfter(20, round);  // caches, arenas and JIT are warm
  const grown = await rssAfter(n, round) - first;
  assert.ok(grown < 24 * MIB, `${(grown / MIB).toFixed(1)} MiB more after ${n} rounds`);
}

test('200 models are loaded and freed', async () => {
  await assertFlat(200, async () => {
    const model = await Model.load(MODEL, {nThreads: 1});
    await model.generate('The grass', {maxTokens: 1});
    model.free();
  });
});

test('models, documents and answers that nobody frees are collected', async () => {
  await assertFlat(40, async () => {
    const model = await Model.load(MODEL, {nThreads: 1});
    const document = await model.prefill(PROMPT);
    await document.ask(QUESTION, {maxTokens: 2});
    const left = document.ask(QUESTION, {stream: true});
    await left.next();
  });
});

test('errors leave nothing', async () => {
  const model = await Model.load(MODEL, {nThreads: 1});
  const long = TEXT.repeat(3);  // still being read when its first report arrives
  await assertFlat(100, async () => {
    await rejects(model.session({topP: 2}), {field: 'topP'});
    await rejects(model.prefill(long, {onProgress: () => false}), {code: 'SNAPKV_ERROR_CANCELLED'});
    await rejects(Model.load('no/such/file'), {code: 'SNAPKV_ERROR_RUNTIME'});
  });
});
