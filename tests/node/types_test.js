// SPDX-License-Identifier: MIT
// The package's types: they take what its documentation says and nothing else, and have every option.
'use strict';

const assert = require('node:assert/strict');
const {spawnSync} = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const {test} = require('node:test');
const {ROOT} = require('./support.js');

const NODE = path.join(ROOT, 'node');
const MODULES = process.env.SNAPKV_NODE_MODULES;

test('a program with types compiles, and wrong ones do not', () => {
  const {status, stdout} = spawnSync(process.execPath, [
    path.join(MODULES, 'typescript', 'bin', 'tsc'), '--noEmit', '--strict', '--module', 'node16',
    '--target', 'es2022', '--skipLibCheck', 'false', '--typeRoots', path.join(MODULES, '@types'),
    '--types', 'node', path.join(__dirname, 'types_example.ts'),
  ], {encoding: 'utf8'});
  assert.equal(status, 0, stdout);
});

test('the types have every option (`make generated` writes them)', () => {
  const made = spawnSync(process.execPath, [path.join(NODE, 'scripts', 'make-options.js')],
                         {encoding: 'utf8'});
  assert.equal(made.status, 0, made.stderr);
  const file = path.join(NODE, 'lib', 'options.d.ts');
  if (process.env.SNAPKV_UPDATE) return fs.writeFileSync(file, made.stdout);
  assert.equal(fs.readFileSync(file, 'utf8'), made.stdout);
});

test('classes and types have the same members', () => {
  const types = fs.readFileSync(path.join(NODE, 'lib', 'index.d.ts'), 'utf8');
  const exported = require('../../node/lib/index.js');
  for (const [name, value] of Object.entries(exported)) {
    assert.match(types, new RegExp(`export (class|function|const) ${name}\\b`));
    if (typeof value !== 'function' || value.prototype === undefined) continue;
    const [body] = types.match(new RegExp(`export class ${name}\\b[^]*?\n}`)) ?? [''];
    for (const member of Object.getOwnPropertyNames(value.prototype)) {
      if (/^(_|constructor$|name$)/.test(member)) continue;
      assert.match(body, new RegExp(`\\b${member}\\b`), `${name}.${member} has no type`);
    }
  }
});
