// SPDX-License-Identifier: MIT
// Answer: an async iterator of the pieces of an answer.
'use strict';

const native = require('./native.js');
const {controlled, idArray, optionList, withNames} = require('./arguments.js');
const {Turns} = require('./turns.js');

class Answer {
  #begin;
  #keepsSession;
  #controls;
  #options;
  #turns = new Turns();
  #session = null;
  #handle = null;
  #ended = false;

  // begin(): a promise of the session that has read the prompt; freed with the answer unless
  // `keepsSession`. Nothing is read before the first piece is asked for.
  constructor(begin, {controls, options, keepsSession = false}) {
    this.#begin = begin;
    this.#keepsSession = keepsSession;
    this.#controls = controls;
    this.#options = options;
    this.ids = [];
    this.logprobs = [];
    this.stopReason = null;
    this.stats = null;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    return this.#turns.run(async () => {
      if (this.#ended) return {value: undefined, done: true};
      try {
        if (this.#handle === null) await this.#start();
        const text = await this.#piece();
        if (this.stopReason !== null) await this.#end();
        return text === '' ? {value: undefined, done: true} : {value: text, done: false};
      } catch (error) {
        this.#letGo();
        throw error;
      }
    });
  }

  // Ends the answer early, as leaving a `for await` does.
  return(value) {
    return this.#turns.run(async () => {
      if (!this.#ended) await this.#end();
      return {value, done: true};
    });
  }

  // The rest of the answer.
  async text() {
    let text = '';
    for await (const piece of this) text += piece;
    return text;
  }

  async #start() {
    this.#session = await this.#begin();
    const {grammar, history = []} = this.#controls;  // begin() may set the history
    const rules = typeof grammar === 'object' ? JSON.stringify(grammar) : grammar ?? null;
    const ids = idArray('history', history);
    this.#handle = await this.#session._use((session) => withNames(
        this.#options, () => native.newAnswer(session, optionList(this.#options), rules, ids)));
  }

  async #piece() {
    const piece = await this.#session._use((session) => controlled(
        {signal: this.#controls.signal},
        (control) => native.nextPiece(this.#handle, session, control)));
    this.#session._hasRead(piece.nPast);
    for (const id of piece.ids) this.ids.push(id);
    for (const logprob of piece.logprobs) this.logprobs.push(logprob);
    this.stopReason = piece.stopReason;
    return piece.text;
  }

  async #end() {
    try {
      if (this.#session !== null) this.stats = await this.#session.stats();
    } finally {
      this.#letGo();
    }
  }

  #letGo() {
    this.#ended = true;
    if (this.#handle !== null) native.freeAnswer(this.#handle);
    if (this.#session !== null && !this.#keepsSession) this.#session.free();
    this.#handle = this.#session = null;
  }
}

// What generate(), chat() and ask() return: an Answer with `stream`, else a promise of its text.
function answer(begin, given) {
  const result = new Answer(begin, given);
  return given.controls.stream ? result : result.text();
}

module.exports = {Answer, answer};
