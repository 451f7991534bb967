// SPDX-License-Identifier: MIT
// The packed file, installed into a fresh folder without network or compiler: it brings its libraries and
// their licences, and the examples and the command run with it.
'use strict';

const assert = require('node:assert/strict');
const {spawn, spawnSync} = require('node:child_process');
const {once} = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const {before, test} = require('node:test');
const {FILLER, MODEL, QUESTION, ROOT, TEXT, tempFolder, writeChatModel} = require('./support.js');

const {SNAPKV_NODE_TARBALL: TARBALL, SNAPKV_NODE_MODULES: MODULES, SNAPKV_NPM: NPM} = process.env;
const folder = fs.realpathSync(tempFolder());
const installed = path.join(folder, 'node_modules', 'snapkv-cpp');
const binaries = path.join(installed, 'prebuilds', `${process.platform}-${process.arch}`);
// nothing of the build tree helps
const environment = {HOME: folder, PATH: process.env.PATH, OMP_WAIT_POLICY: 'passive'};
let chatModel;

function run(program, args, options = {}) {
  const result = spawnSync(program, args, {
    cwd: folder, env: environment, encoding: 'utf8', timeout: 240000, ...options,
  });
  assert.equal(result.status, 0, `${program} ${args.join(' ')}: ${result.stderr}`);
  return result.stdout;
}

before(() => {
  chatModel = writeChatModel(folder);
  fs.writeFileSync(path.join(folder, 'package.json'), '{"private": true}');
  run(NPM, ['install', '--offline', '--no-audit', '--no-fund', TARBALL]);
  // Express and what it depends on, as npm would have installed them
  fs.symlinkSync(path.join(MODULES, 'express'), path.join(folder, 'node_modules', 'express'));
  for (const file of fs.readdirSync(path.join(ROOT, 'examples', 'node'))) {
    fs.copyFileSync(path.join(ROOT, 'examples', 'node', file), path.join(folder, file));
  }
});

test('the package has its version, its files and nothing to compile', () => {
  const json = JSON.parse(fs.readFileSync(path.join(installed, 'package.json'), 'utf8'));
  const [, version] = fs.readFileSync(path.join(ROOT, 'CMakeLists.txt'), 'utf8')
      .match(/project\(snapkv VERSION ([0-9.]+)/);
  assert.equal(json.version, version);
  assert.equal(run(process.execPath, ['-p', 'require("snapkv-cpp").version']).trim(), version);
  assert.deepEqual(json.cpu, [process.arch]);
  assert.equal(json.scripts, undefined);
  assert.equal(json.devDependencies, undefined);
  for (const file of ['README.md', 'LICENSE', 'lib/index.d.ts', 'lib/options.d.ts', 'bin/chat.js']) {
    assert.ok(fs.existsSync(path.join(installed, file)), file);
  }
});

test('libraries that Node.js lacks come with it, with their licences', () => {
  const lines = run('ldd', [path.join(binaries, 'snapkv.node')]).split('\n');
  const own = lines.filter((line) => line.includes(binaries));
  for (const name of ['libsnapkv_c', 'libdnnl', 'libgomp', 'libfmt']) {
    assert.ok(own.some((line) => line.includes(name)), `${name} is not taken from the package`);
  }
  const ofNode = /linux-vdso|ld-linux|lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)\.so/;
  for (const line of lines.filter((one) => one.includes('.so') && !one.includes(binaries))) {
    assert.match(line, ofNode);
  }
  const licenses = fs.readdirSync(path.join(installed, 'licenses'));
  const compiledIn = ['libxxhash-dev.txt', 'nlohmann-json3-dev.txt', 'node-addon-api.txt'];
  for (const file of compiledIn) assert.ok(licenses.includes(file), file);
  assert.equal(licenses.length - compiledIn.length, fs.readdirSync(binaries).length - 2,
               'one for each library but our own two');
});

test('import and require give the same', () => {
  const code = `import {Model} from 'snapkv-cpp'; import {createRequire} from 'node:module';
      console.log(createRequire(import.meta.url)('snapkv-cpp').Model === Model);`;
  assert.equal(run(process.execPath, ['--input-type=module', '-e', code]), 'true\n');
});

test('the command chats', () => {
  const command = ['snapkv-cpp', chatModel, '--temperature=0', '--max-tokens=8'];
  const text = run(NPM, ['exec', '--offline', '--', ...command],
                   {input: `${TEXT}${QUESTION.trim()}\n`});
  assert.match(text, /48213/);
});

test('examples/node/chat.mjs prints an answer', () => {
  assert.match(run(process.execPath, ['chat.mjs', chatModel, TEXT + QUESTION]), /48213/);
});

// Starts an example that serves, and stops it after use(address).
async function withServer(args, use) {
  const server = spawn(process.execPath, args,
                       {cwd: folder, env: environment, stdio: ['ignore', 'pipe', 'inherit']});
  try {
    const [address] = await once(server.stdout.setEncoding('utf8'), 'data');
    await use(address.trim());
  } finally {
    server.kill();
    await once(server, 'close');
  }
}

test('examples/node/server.mjs streams events, and refuses what is wrong', async () => {
  await withServer(['server.mjs', chatModel, '0'], async (address) => {
    const post = (body) => fetch(`${address}/chat`, {method: 'POST', body});
    const messages = [{role: 'user', content: TEXT + QUESTION}];
    const options = {temperature: 0, max_tokens: 8};
    const response = await post(JSON.stringify({messages, options}));
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    const events = (await response.text()).trim().split('\n\n').map((line) => JSON.parse(line.slice(6)));
    assert.match(events.map(({text}) => text ?? '').join(''), /48213/);
    assert.equal(events.at(-1).stop_reason, 'length');
    assert.ok(events.length > 3, 'pieces come one by one');
    const refused = await post(JSON.stringify({messages, options: {top_p: 7}}));
    assert.equal(refused.status, 400);
    assert.equal((await refused.json()).error.field, 'top_p');
    assert.equal((await post('{')).status, 400);
    // a client that goes ends its answer: the next one does not wait for it
    const gone = new AbortController();
    const endless = JSON.stringify({messages, options: {max_tokens: -1, ignore_eos: true}});
    const left = await fetch(`${address}/chat`, {method: 'POST', body: endless, signal: gone.signal});
    assert.equal(left.status, 200);
    gone.abort();
    assert.equal((await post(JSON.stringify({messages, options}))).status, 200);
  });
});

test('examples/node/express.mjs answers questions about a document', async () => {
  fs.writeFileSync(path.join(folder, 'document.txt'), FILLER + TEXT);
  await withServer(['express.mjs', MODEL, 'document.txt', '0'], async (address) => {
    const ask = (body) => fetch(`${address}/ask`, {
      method: 'POST', headers: {'content-type': 'application/json'}, body,
    });
    const question = JSON.stringify({question: 'The special number of Paris is'});
    const [first, second] = await Promise.all([ask(question), ask(question)]);
    assert.match(await first.text(), /48213/);
    assert.match(await second.text(), /48213/);
    assert.equal((await ask('{')).status, 400);
  });
});
