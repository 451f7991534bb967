// SPDX-License-Identifier: MIT
// Document: every row of a text that was read once; each question chooses its own.
'use strict';

const native = require('./native.js');
const {answer} = require('./answer.js');
const {checkText, disposable, divide, idArray, merged} = require('./arguments.js');
const {usageError} = require('./errors.js');

class Document {
  #handle;
  #model;

  // For Model.prefill() and Model.loadDocument().
  constructor(handle, model) {
    this.#handle = handle;
    this.#model = model;
    this.length = native.documentTokens(handle);
  }

  async save(path) {
    await native.saveDocument(this.#handle, checkText('path', path));
  }

  async session(question, given) {
    const {controls: {signal, onProgress}, options} = divide(given);
    const ids = typeof question === 'string' ?
        await this.#model.tokenize(question, {addSpecial: false}) :
        idArray('question', question);
    const session = await this.#model.session(options);
    try {
      await session._readAfter(this.#handle, ids, {signal, onProgress});
    } catch (error) {
      session.free();
      throw error;
    }
    return session;
  }

  ask(question, given) {
    const {controls, options} = divide(given);
    const {signal, onProgress} = controls;
    return answer(() => this.session(question, {...options, signal, onProgress}),
                  {controls, options: merged(this.#model._defaults, options)});
  }

  free() {
    native.freeDocument(this.#handle);
  }
}
disposable(Document);

module.exports = {Document};
