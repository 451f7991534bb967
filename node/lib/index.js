// SPDX-License-Identifier: MIT
// snapkv for Node.js: long prompts in little memory. Types and documentation are in index.d.ts.
'use strict';

const native = require('./native.js');
const {Answer} = require('./answer.js');
const {listOptions} = require('./arguments.js');
const {Document} = require('./document.js');
const {AbortError, SnapkvError} = require('./errors.js');
const {Model} = require('./model.js');
const {Session, decode} = require('./session.js');

const version = native.version;

module.exports = {
  AbortError, Answer, Document, Model, Session, SnapkvError, decode, options: listOptions, version,
};
