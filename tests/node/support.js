// SPDX-License-Identifier: MIT
// What the tests of the Node.js package share: the model, a document, and a model that can chat.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const ROOT = path.join(__dirname, '..', '..');
const MODEL = path.join(ROOT, 'models', 'needle.gguf');
const FILLER = 'The grass is green and the sky is blue. '.repeat(60);
const TEXT = `${FILLER}The special number of Paris is 48213. ${FILLER}`;
const QUESTION = '\nThe special number of Paris is';

// A folder that is removed with the process.
function tempFolder() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'snapkv-node-'));
  process.on('exit', () => fs.rmSync(folder, {recursive: true, force: true}));
  return folder;
}

function ggufString(text) {
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  return Buffer.concat([length, Buffer.from(text)]);
}

// Writes a copy of the model with a chat template (messages one below the other), and returns its path.
// The key is put before all others; spaces fill it up so that tensors stay aligned.
function writeChatModel(folder) {
  const bytes = fs.readFileSync(MODEL);
  const template = fs.readFileSync(path.join(ROOT, 'examples', 'lines.jinja'), 'utf8');
  const type = Buffer.from([8, 0, 0, 0]);  // a string
  const pair = (text) => Buffer.concat([ggufString('tokenizer.chat_template'), type, ggufString(text)]);
  const missing = (32 - pair(template).length % 32) % 32;
  bytes.writeBigUInt64LE(bytes.readBigUInt64LE(16) + 1n, 16);  // keys
  const file = path.join(folder, 'chat.gguf');
  fs.writeFileSync(file, Buffer.concat([
    bytes.subarray(0, 24), pair(`{#${' '.repeat(missing + 28)}#}${template}`), bytes.subarray(24),
  ]));
  return file;
}

// Awaits an error with these properties.
async function rejects(promise, expected) {
  await assert.rejects(promise, (error) => {
    for (const [name, value] of Object.entries(expected)) {
      if (value instanceof RegExp) assert.match(error[name], value);
      else assert.equal(error[name], value, `${name} of ${error.stack}`);
    }
    return true;
  });
}

module.exports = {FILLER, MODEL, QUESTION, ROOT, TEXT, rejects, tempFolder, writeChatModel};
