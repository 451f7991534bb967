// SPDX-License-Identifier: MIT
// Prints lib/options.d.ts: the options of the engine, those of every policy included.
//   node scripts/make-options.js > lib/options.d.ts
'use strict';

const {options} = require('../lib/index.js');

const TYPES = {boolean: 'boolean', integer: 'number', real: 'number', bytes: 'number | string',
               text: 'string', texts: 'string | string[]'};

function camelCase(name) {
  return name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

function typeOf({name, type, words}) {
  if (name === 'kv_budget') return "number | 'auto'";
  if (words === undefined) return TYPES[type];
  return words.map((word) => `'${word}'`).join(' | ');
}

// Policies may give one name different ranges, defaults and words.
function merged() {
  const all = new Map();
  for (const policy of options().find(({name}) => name === 'kv_policy').words) {
    for (const option of options(policy)) {
      const known = all.get(option.name);
      if (known === undefined) {
        all.set(option.name, {...option, defaults: new Set([option.default])});
      } else {
        known.defaults.add(option.default);
      }
    }
  }
  all.delete('model');  // the path of Model.load()
  return [...all.values()];
}

function member(option) {
  const defaults = option.defaults.size > 1 ? 'by kvPolicy' : [...option.defaults][0] || 'none';
  const range = option.words === undefined && option.range ? `; ${option.range}` : '';
  return [`  /** ${option.help}${range}. Default: ${defaults}. */`,
          `  ${camelCase(option.name)}?: ${typeOf(option)};`];
}

console.log([
  '// SPDX-License-Identifier: MIT',
  '// The options of the engine, by `node scripts/make-options.js`.',
  '',
  '/** Every option; parameters of a policy (`kv...`) need that `kvPolicy`. */',
  'export interface Options {',
  ...merged().flatMap(member),
  '}',
  '',
  'type Snake<Name extends string> = Name extends `${infer Head}${infer Tail}`',
  '  ? Head extends Lowercase<Head> ? `${Head}${Snake<Tail>}` : `_${Lowercase<Head>}${Snake<Tail>}`',
  "  : '';",
  '/** The same in the spelling of the C API: `kv_budget`. */',
  'export type SnakeOptions = {[Name in keyof Options as Snake<Name & string>]?: Options[Name]};',
].join('\n'));
