// SPDX-License-Identifier: MIT
// Model: a GGUF file or a Hugging Face folder.
'use strict';

const native = require('./native.js');
const {answer} = require('./answer.js');
const {
  checkText, controlled, disposable, divide, idArray, merged, optionList, withNames,
} = require('./arguments.js');
const {Document} = require('./document.js');
const {usageError} = require('./errors.js');
const {Session} = require('./session.js');

function conversation(messages, variables = {}) {
  const list = typeof messages === 'string' ? [{role: 'user', content: messages}] : messages;
  if (!Array.isArray(list)) {
    throw usageError('messages', 'it must be a string or an array of {role, content}');
  }
  if (list.length === 0) throw usageError('messages', 'it must have at least one message');
  return JSON.stringify({messages: list, ...variables});
}

class Model {
  #handle;

  static async load(path, given) {
    const {controls, options} = divide(given);
    const all = optionList({...options, model: checkText('path', path)});
    const handle = await withNames(
        options, () => controlled(controls, (control) => native.loadModel(all, control)));
    return new Model(handle, options);
  }

  // For load(): a handle of the addon, and the options that are defaults of what is made of it.
  constructor(handle, defaults) {
    this.#handle = handle;
    this._defaults = defaults;
    this.info = JSON.parse(native.modelInfo(handle));
  }

  async tokenize(text, {addSpecial = true, parseSpecial = true} = {}) {
    if (typeof text !== 'string') throw usageError('text', `it must be a string, not ${typeof text}`);
    return native.tokenize(this.#handle, text, addSpecial, parseSpecial);
  }

  async detokenize(ids) {
    return native.detokenize(this.#handle, idArray('ids', ids));
  }

  async chatText(messages, variables) {
    return native.chatText(this.#handle, conversation(messages, variables));
  }

  async chatTokens(messages, variables) {
    return native.chatTokens(this.#handle, conversation(messages, variables));
  }

  isEndOfGeneration(id) {
    return native.isEndOfGeneration(this.#handle, id);
  }

  async session(given) {
    const all = merged(this._defaults, divide(given).options);
    const handle = await withNames(
        all, () => native.newSession(this.#handle, optionList(all)));
    return new Session(handle, all);
  }

  async prefill(text, given) {
    const {controls, options} = divide(given);
    const ids = await this.#ids('text', text);
    const all = merged(this._defaults, options);
    const list = optionList(all);
    const handle = await withNames(all, () => controlled(
        controls, (control) => native.readDocument(this.#handle, list, ids, control)));
    return new Document(handle, this);
  }

  async loadDocument(path) {
    return new Document(await native.loadDocument(this.#handle, checkText('path', path)), this);
  }

  generate(prompt, given) {
    return this.#answer(() => this.#ids('prompt', prompt), given);
  }

  chat(messages, given) {
    return this.#answer(() => this.chatTokens(messages), given);
  }

  free() {
    native.freeModel(this.#handle);
  }

  async #ids(name, text) {
    return typeof text === 'string' ? this.tokenize(text) : idArray(name, text);
  }

  // The answer to a prompt of its own session.
  #answer(read, given) {
    const {controls, options} = divide(given);
    const {signal, onProgress} = controls;
    const begin = async () => {
      const ids = await read();
      controls.history ??= ids;
      const session = await this.session(options);
      try {
        await session.prefill(ids, {signal, onProgress});
      } catch (error) {
        session.free();
        throw error;
      }
      return session;
    };
    return answer(begin, {controls, options: merged(this._defaults, options)});
  }
}
disposable(Model);

module.exports = {Model};
