// SPDX-License-Identifier: MIT
// Conversation: turns of a chat in one session, which reads only what is new of each.
'use strict';

const {usageError} = require('./errors.js');

class Conversation {
  #model;
  #options;
  #session = null;
  #read = [];  // the ids that the session has read

  constructor(model, {system, ...options} = {}) {
    if (!model.info.chat_templates.includes('default')) {
      throw usageError('model', `${model.info.path} has no chat template: it continues texts`);
    }
    this.#model = model;
    this.#options = options;
    this.system = system;
    this.messages = [];
    this.clear();
  }

  // Forgets all but the system message.
  clear() {
    this.messages = this.system === undefined ? [] : [{role: 'system', content: this.system}];
  }

  // The pieces of the answer to a message. An answer that `signal` ends stays in the conversation as far
  // as it was written; a message that was not read does not.
  async *say(content, {signal} = {}) {
    this.messages.push({role: 'user', content});
    const ids = Array.from(await this.#model.chatTokens(this.messages));
    try {
      await this.#catchUp(ids, signal);
    } catch (error) {
      this.messages.pop();
      throw error;
    }
    const answer = this.#session.generate({stream: true, signal, history: ids});
    let text = '';
    try {
      for await (const piece of answer) {
        text += piece;
        yield piece;
      }
    } finally {
      // the last token is written, but not read before the next turn
      this.#read = [...ids, ...answer.ids].slice(0, this.#session.nPast);
      this.messages.push({role: 'assistant', content: text});
    }
  }

  async stats() {
    return this.#session.stats();
  }

  // Reads what of the ids the session has not read yet, or everything where they begin otherwise.
  async #catchUp(ids, signal) {
    this.#session ??= await this.#model.session(this.#options);
    const goesOn = this.#read.length < ids.length && this.#read.every((id, i) => id === ids[i]);
    if (!goesOn) {
      await this.#session.reset();
      this.#read = [];
    }
    await this.#session.prefill(ids.slice(this.#read.length), {signal});
    this.#read = ids;
  }
}

module.exports = {Conversation};
