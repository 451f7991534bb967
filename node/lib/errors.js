// SPDX-License-Identifier: MIT
// Errors of the engine and of this package.
'use strict';

// By the codes of the C API, which are the command's exit codes too.
const CODES = {
  1: 'SNAPKV_ERROR_RUNTIME',
  2: 'SNAPKV_ERROR_USAGE',
  3: 'SNAPKV_ERROR_BAD_MODEL',
  4: 'SNAPKV_ERROR_MEMORY',
  5: 'SNAPKV_ERROR_CONTEXT',
  130: 'SNAPKV_ERROR_CANCELLED',
};

class SnapkvError extends Error {
  constructor(message, code, field) {
    super(message);
    this.code = code;
    if (field !== undefined) this.field = field;
  }
}
Object.defineProperty(SnapkvError.prototype, 'name', {value: 'SnapkvError', configurable: true});

// What a call that an AbortSignal has ended is rejected with: as in Node's own functions.
class AbortError extends SnapkvError {
  constructor(reason) {
    super('The operation was aborted', 'ABORT_ERR');
    this.cause = reason;
  }
}
Object.defineProperty(AbortError.prototype, 'name', {value: 'AbortError', configurable: true});

function makeError(message, number, field) {
  return new SnapkvError(message, CODES[number] ?? CODES[1], field);
}

function usageError(field, message) {
  return new SnapkvError(`${field}: ${message}`, CODES[2], field);
}

// What a command ends with.
function exitCode(error) {
  return Number(Object.keys(CODES).find((number) => CODES[number] === error.code) ?? 1);
}

module.exports = {AbortError, SnapkvError, exitCode, makeError, usageError};
