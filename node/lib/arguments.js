// SPDX-License-Identifier: MIT
// How options, ids and cancellation go to the addon.
'use strict';

const native = require('./native.js');
const {AbortError, usageError} = require('./errors.js');

// What calls take besides options.
const CONTROLS = ['signal', 'onProgress', 'stream', 'grammar', 'history'];

function snakeCase(name) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

// Divides what a call was given into {controls, options}; names of options become those of
// listOptions().
function divide(given = {}) {
  if (given === null || typeof given !== 'object') throw usageError('options', 'it must be an object');
  const controls = {};
  const options = {};
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    if (CONTROLS.includes(key)) {
      controls[key] = value;
      continue;
    }
    const name = snakeCase(key);
    if (name in options) throw usageError(name, 'it is given in both spellings');
    options[name] = value;
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

// [name, value, name, value, ...] as texts. kv_policy is first, as it decides which other names
// there are.
function optionList(options) {
  const names = Object.keys(options).sort((a, b) => (b === 'kv_policy') - (a === 'kv_policy'));
  return names.flatMap((name) => {
    const values = Array.isArray(options[name]) ? options[name] : [options[name]];
    return values.flatMap((value) => [checkText('options', name), valueText(name, value)]);
  });
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

module.exports = {checkText, controlled, disposable, divide, idArray, listOptions, optionList};
