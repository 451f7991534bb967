#!/usr/bin/env node
// SPDX-License-Identifier: MIT
// The command snapkv-cpp, which ends with the engine's codes.
'use strict';

const {SnapkvError, exitCode} = require('../lib/errors.js');

async function run() {
  const {main} = require('../lib/chat.js');  // fails where there is no addon for this system
  await main(process.argv.slice(2));
}

run().catch((error) => {
  if (!(error instanceof SnapkvError)) throw error;
  process.stderr.write(`snapkv-cpp: ${error.message}\n`);
  process.exitCode = exitCode(error);
});
