// SPDX-License-Identifier: MIT
// Turns: calls that wait for each other, since a session or an answer takes one at a time.
'use strict';

class Turns {
  #last = Promise.resolve();

  // Calls `work` when all calls before have ended.
  run(work) {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }

  // A promise of the turn, which lasts until `released` settles.
  hold(released) {
    const before = this.#last;
    this.#last = before.then(() => released);
    return before;
  }
}

module.exports = {Turns};
