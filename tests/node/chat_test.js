// SPDX-License-Identifier: MIT
// The command snapkv-cpp: a chat of several turns, its commands and its errors.
'use strict';

const assert = require('node:assert/strict');
const {spawn, spawnSync} = require('node:child_process');
const {once} = require('node:events');
const path = require('node:path');
const {before, test} = require('node:test');
const {Conversation} = require('../../node/lib/conversation.js');
const {Model, version} = require('../../node/lib/index.js');
const {FILLER, MODEL, QUESTION, ROOT, tempFolder, writeChatModel} = require('./support.js');

const COMMAND = path.join(ROOT, 'node', 'bin', 'chat.js');
let chatModel;
before(() => chatModel = writeChatModel(tempFolder()));

function chat(args, input) {
  return spawnSync(process.execPath, [COMMAND, ...args], {input, encoding: 'utf8', timeout: 120000});
}

test('lines are messages and commands', () => {
  const fact = `The special number of Paris is 48213. ${FILLER}`;
  const {status, stdout, stderr} = chat(
      [chatModel, '--temperature=0', '--max-tokens', '8', '--kv-budget', '128', '--system', fact],
      `${QUESTION.trim()}\n/stats\n/what\n/clear\n${QUESTION.trim()}\n/exit\nnot read\n`);
  assert.equal(status, 0, stderr);
  const parts = stdout.split(/(\d+ tokens read in .* s, \d+ written in .* MiB|.* are the commands)\n/);
  assert.equal(parts.length, 5, stdout);
  assert.match(parts[0], /48213/);
  assert.match(parts[1], /tokens read/);
  assert.match(parts[3], /are the commands/);
  assert.match(parts[4], /48213/);  // the system message is still there
});

test('a further turn reads only what is new', async () => {
  const model = await Model.load(chatModel, {temperature: 0, maxTokens: 8});
  const conversation = new Conversation(model, {system: FILLER});
  const say = async (message) => {
    let text = '';
    for await (const piece of conversation.say(message)) text += piece;
    return text;
  };
  const first = await say('The special number of Paris is 48213.');
  const read = (await conversation.stats()).n_prompt;
  const second = await say('The special number of Paris is');
  assert.match(second, /48213/);
  assert.deepEqual(conversation.messages.map(({content}) => content).slice(1),
                   ['The special number of Paris is 48213.', first, 'The special number of Paris is', second]);
  const whole = (await model.chatTokens(conversation.messages.slice(0, -1))).length;
  const after = (await conversation.stats()).n_prompt;
  assert.ok(after <= whole, `${after} tokens read for a conversation of ${whole}`);
  assert.ok(after > read);
});

test('Ctrl-C ends an answer, not the chat', async () => {
  const child = spawn(process.execPath, [COMMAND, chatModel, '--max-tokens=-1', '--ignore-eos=true']);
  child.stdin.write('Hello\n');
  await once(child.stdout, 'data');
  child.kill('SIGINT');
  let text = '';
  child.stdout.on('data', (data) => text += data);
  child.stdin.end('/what\n');
  const [status] = await once(child, 'close');
  assert.equal(status, 0);
  assert.match(text, /\(stopped\)\n.* are the commands\n$/s);
});

test('errors name what is wrong, with the codes of the engine', () => {
  for (const [args, code, message] of [
    [[], 2, /which model\?/],
    [[MODEL], 2, /needle\.gguf has no chat template/],
    [[MODEL, '--kv-budgt', '3'], 2, /no option "--kv-budgt".*did you mean --kv-budget\?/],
    [[MODEL, '--kv-budget'], 2, /--kv-budget needs a value/],
    [[MODEL, 'another'], 2, /what is another\?/],
    [['no/such/model'], 1, /no\/such\/model/],
    [[COMMAND], 3, /chat\.js/],
  ]) {
    const {status, stderr} = chat(args, '');
    assert.match(stderr, message);
    assert.equal(status, code, args.join(' '));
  }
});

test('a system without an addon is told what there is', () => {
  const {status, stderr} = spawnSync(process.execPath, [COMMAND], {
    encoding: 'utf8', env: {...process.env, SNAPKV_NODE_ADDON: 'no/such.node'},
  });
  assert.match(stderr, /^snapkv-cpp: the addon for .* cannot be loaded from no\/such\.node: .*\n$/);
  assert.equal(status, 1);
});

test('--help lists every option, --version says which it is', () => {
  const help = chat(['--help'], '');
  assert.match(help.stdout, /^usage: snapkv-cpp MODEL/);
  assert.match(help.stdout, /\n {2}--kv-budget .* \(1024\)\n/);
  assert.equal(chat(['--version'], '').stdout, `${version}\n`);
});
