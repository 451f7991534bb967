// SPDX-License-Identifier: MIT
// Session: what a model has read, in a compressed cache.
'use strict';

const native = require('./native.js');
const {answer} = require('./answer.js');
const {
  checkText, controlled, disposable, divide, idArray, merged, withNames,
} = require('./arguments.js');
const {usageError} = require('./errors.js');
const {Turns} = require('./turns.js');

class Session {
  #handle;
  #options;
  #turns = new Turns();
  #nPast = 0;

  // For Model.session(): a handle of the addon, and the options that it was made with.
  constructor(handle, options) {
    this.#handle = handle;
    this.#options = options;
    this.nCtx = native.contextSize(handle);
  }

  get nPast() {
    return this.#nPast;
  }

  prefill(ids, given) {
    return this._read(given, (control) =>
        native.prefill(this.#handle, idArray('ids', ids), control));
  }

  decode(token) {
    return decode([this], [token]);
  }

  generate(given) {
    const {controls, options} = divide(given);
    return answer(async () => this,
                  {controls, options: merged(this.#options, options), keepsSession: true});
  }

  logits() {
    return this._use((session) => native.logits(session));
  }

  async stats() {
    return JSON.parse(await this._use((session) => native.stats(session)));
  }

  positions(layer, head) {
    return this._use((session) => native.positions(session, layer, head));
  }

  async reset() {
    this._hasRead(await this._use((session) => native.resetSession(session)));
  }

  async save(path) {
    const file = checkText('path', path);
    await this._use((session) => native.saveSession(session, file));
  }

  async load(path) {
    const file = checkText('path', path);
    this._hasRead(await this._use((session) => native.loadSession(session, file)));
  }

  free() {
    native.freeSession(this.#handle);
  }

  // For the other classes: work(handle) in its turn; reading that may be ended; tokens read so far.
  _use(work) {
    return this.#turns.run(() => withNames(this.#options, () => work(this.#handle)));
  }

  async _read(given, work) {
    const {controls, options} = divide(given);
    for (const name of Object.keys(options)) throw usageError(name, 'it is an option of sessions');
    this._hasRead(await this._use(() => controlled(controls, work)));
  }

  _readAfter(document, ids, controls) {
    return this._read(controls, (control) =>
        native.prefillAfter(this.#handle, document, ids, control));
  }

  _hasRead(n) {
    this.#nPast = n;
  }

  // Holds the turns of several sessions while work(handles) runs.
  static async _useAll(sessions, work) {
    let release;
    const released = new Promise((resolve) => release = resolve);
    const turns = sessions.map((session) => session.#turns.hold(released));
    try {
      await Promise.all(turns);
      return await work(sessions.map((session) => session.#handle));
    } finally {
      release();
    }
  }
}
disposable(Session);

async function decode(sessions, tokens) {
  if (!Array.isArray(sessions) || sessions.some((one) => !(one instanceof Session))) {
    throw usageError('sessions', 'it must be an array of sessions');
  }
  const ids = idArray('tokens', tokens);
  if (ids.length !== sessions.length) {
    throw usageError('tokens', `there must be one for each of ${sessions.length} sessions, not ${ids.length}`);
  }
  if (new Set(sessions).size !== sessions.length) {
    throw usageError('sessions', 'a session is named twice');
  }
  await Session._useAll(sessions, (handles) => native.decode(handles, ids));
  for (const session of sessions) session._hasRead(session.nPast + 1);
}

module.exports = {Session, decode};
