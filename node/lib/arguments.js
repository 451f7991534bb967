// SPDX-License-Identifier: MIT
// How options, ids and cancellation go to the addon.
'use strict';

const native = require('./native.js');
const {AbortError, SnapkvError, usageError} = require('./errors.js');

// What calls take besides options.
const CONTROLS = ['signal', 'onProgress', 'stream', 'grammar', 'history'];

// The name in listOptions() of an option: kvBudget, kv_budget, and --kv-budget of the command.
function snakeCase(name) {
  const plain = name.startsWith('--') ? name.slice(2).replaceAll('-', '_') : name;
  return plain.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

// The other way round, in the spelling of the last of the names that were `typed`.
function spell(name, typed) {
  const like = typed.findLast((each) => /^--|_|[A-Z]/.test(each)) ?? '';
  if (like.startsWith('--')) return `--${name.replaceAll('_', '-')}`;
  if (like.includes('_')) return name;
  return name.replace(/_([a-z0-9])/g, (_, letter) => letter.toUpperCase());
}

// Divides what a call was given into {controls, options}. Options keep the names that were typed,
// for errors.
function divide(given = {}) {
  if (given === null || typeof given !== 'object') throw usageError('options', 'it must be an object');
  const controls = {};
  const options = {};
  const names = new Set();
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    if (CONTROLS.includes(key)) {
      controls[key] = value;
      continue;
    }
    const name = snakeCase(key);
    if (names.has(name)) throw usageError(key, 'it is given in both spellings');
    names.add(name);
    options[key] = value;
  }
  if (controls.signal !== undefined && typeof controls.signal.addEventListener !== 'function') {
    throw usageError('signal', 'it must be an AbortSignal');
  }
  if (controls.onProgress !== undefined && typeof controls.onProgress !== 'function') {
    throw usageError('onProgress', 'it must be a function');
  }
  return {controls, options};
}

function checkText(name, text) {
  if (typeof text !== 'string') throw usageError(name, `it must be a string, not ${typeof text}`);
  if (text.includes('\0')) throw usageError(name, 'it contains a zero character');
  return text;
}

function valueText(name, value) {
  if (!['string', 'number', 'bigint', 'boolean'].includes(typeof value)) {
    throw usageError(name, `it must be a string, a number or a boolean, not ${typeof value}`);
  }
  return checkText(name, String(value));
}

// `options` with those of a later call, which replace the same ones in whatever spelling.
function merged(options, later) {
  const names = new Set(Object.keys(later).map(snakeCase));
  const others = Object.entries(options).filter(([key]) => !names.has(snakeCase(key)));
  return {...Object.fromEntries(others), ...later};
}

// [name, value, name, value, ...] as texts, with the names of listOptions(). kv_policy is first, as
// it decides which other names there are.
function optionList(options) {
  const isPolicy = (key) => snakeCase(key) === 'kv_policy';
  const keys = Object.keys(options).sort((a, b) => isPolicy(b) - isPolicy(a));
  return keys.flatMap((key) => {
    const values = Array.isArray(options[key]) ? options[key] : [options[key]];
    return values.flatMap((value) => [checkText('options', snakeCase(key)), valueText(key, value)]);
  });
}

// The names of all options that a message about `options` may have.
function knownNames(options) {
  const typed = Object.keys(options).map(snakeCase);
  const policy = Object.keys(options).find((key) => snakeCase(key) === 'kv_policy');
  try {
    return new Set([...typed, ...listOptions(options[policy]).map(({name}) => name)]);
  } catch {  // no such policy, which is what the error says
    return new Set([...typed, ...listOptions().map(({name}) => name)]);
  }
}

// Calls the options in the engine's error as the caller of this package has written them: kvBudget
// rather than kv_budget.
function rename(error, options) {
  const typed = Object.keys(options);
  const byName = new Map(typed.map((key) => [snakeCase(key), key]));
  const known = knownNames(options);
  const shown = (name) => byName.get(name) ?? (known.has(name) ? spell(name, typed) : name);
  const message = error.message.replace(/(?<![\w./-])[a-z]\w*_\w+(?![\w/]|\.\w)/g, shown);
  error.stack = error.stack.replace(error.message, () => message);
  error.message = message;
  if (error.field !== undefined) error.field = shown(error.field);
  return error;
}

// Runs work(), with errors in the words of `options`.
async function withNames(options, work) {
  try {
    return await work();
  } catch (error) {
    throw error instanceof SnapkvError ? rename(error, options) : error;
  }
}

// Ids as the addon takes them.
function idArray(name, ids) {
  if (ids instanceof Int32Array) return ids;
  if (!Array.isArray(ids)) throw usageError(name, 'it must be an Int32Array or an array of ids');
  const bad = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id > 0x7fffffff);
  if (bad >= 0) throw usageError(name, `${name}[${bad}] is ${ids[bad]}, which is not an id`);
  return Int32Array.from(ids);
}

// Runs start(control) so that a signal, or onProgress by returning false or throwing, ends it.
async function controlled({signal, onProgress}, start) {
  if (signal?.aborted) throw new AbortError(signal.reason);
  const cancel = native.newCancel();
  const stop = () => native.cancel(cancel);
  let thrown = null;
  const report = onProgress && ((phase, fraction) => {
    try {
      if (onProgress(phase, fraction) === false) stop();
    } catch (error) {
      thrown ??= {error};
      stop();
    }
  });
  signal?.addEventListener('abort', stop, {once: true});
  try {
    return await start({cancel, onProgress: report});
  } catch (error) {
    if (thrown !== null) throw thrown.error;
    if (signal?.aborted && error.code === 'SNAPKV_ERROR_CANCELLED') {
      throw new AbortError(signal.reason);
    }
    throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

// Every option there is; shapes are in index.d.ts.
function listOptions(policy) {
  return JSON.parse(native.listOptions(policy === undefined ? null : checkText('policy', policy)));
}

// Lets `using` free objects of a class, where this Node.js knows it.
function disposable(type) {
  if (Symbol.dispose === undefined) return;
  type.prototype[Symbol.dispose] = function dispose() {
    this.free();
  };
}

module.exports = {
  checkText, controlled, disposable, divide, idArray, listOptions, merged, optionList, withNames,
};
