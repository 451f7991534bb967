// SPDX-License-Identifier: MIT
// node compare.mjs PROGRAM SCHEMAS: compares grammars made from JSON schemas with ajv. Random
// documents of each grammar must be valid, and the grammar must refuse every mutation of them, and
// every document of another schema, that ajv refuses. PROGRAM is the built sample_documents.cpp.
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {Ajv2020} from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const kPerSchema = 40;
const [program, schemasFile] = process.argv.slice(2);
const schemas = JSON.parse(readFileSync(schemasFile, 'utf8'));
const ajv = new Ajv2020({strict: false, allErrors: false});
addFormats.default(ajv);
const validators = schemas.map((schema) => ajv.compile(schema));

function ask(command, items) {
  const input = items.map((item) => JSON.stringify(item)).join('\n');
  const out = execFileSync(program, [command], {input, maxBuffer: 1 << 28}).toString();
  return out.trimEnd().split('\n').map((line) => JSON.parse(line));
}

function isValid(i, text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return false;
  }
  return validators[i](value);
}

// Returns the next of a fixed sequence of random numbers, below n.
let state = 20240601;
function below(n) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor(state / 2 ** 32 * n);
}

function mutated(text) {
  const characters = [...text];
  const at = below(characters.length + 1);
  const pieces = ['0', '-', '1', '"', ',', '{', '}', '[', ']', 'null', 'true', ' ', 'a', 'Z', '.', '\\', ':', '\u00e9', '"x":1,'];
  switch (below(3)) {
    case 0: characters.splice(at, 1 + below(4)); break;
    case 1: characters.splice(at, 0, pieces[below(pieces.length)]); break;
    default: characters.splice(at, 1, pieces[below(pieces.length)]);
  }
  return characters.join('');
}

let failures = 0;
function report(what, i, text) {
  if (++failures <= 20) console.error(`${what}: schema ${i}, ${JSON.stringify(schemas[i])}\n  ${text}`);
}

const samples = ask('sample', schemas.map((schema) => ({schema, n: kPerSchema})));
let nValid = 0;
samples.forEach((texts, i) => texts.forEach((text) => isValid(i, text) ? ++nValid : report('ajv refuses', i, text)));

const checks = schemas.map((schema, i) => {
  const texts = samples.flatMap((others) => others.slice(0, 3));
  for (const text of samples[i]) for (let n = 0; n < 8; ++n) texts.push(mutated(text));
  return {schema, texts};
});
let nRefused = 0, nBoth = 0;
ask('check', checks).forEach((allowed, i) => allowed.forEach((one, k) => {
  const text = checks[i].texts[k];
  if (!isValid(i, text)) {
    ++nRefused;
    if (one) report('ajv refuses what the grammar allows', i, text);
  } else if (one) {
    ++nBoth;
  }
}));
console.log(`${schemas.length} schemas: ${nValid} documents valid, ${nRefused} refused by ajv, ${nBoth} allowed by both`);
if (nValid < 1000 || nRefused < 1000 || nBoth < 100) throw new Error('too few documents');
if (failures > 0) throw new Error(`${failures} differences`);
