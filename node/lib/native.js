// SPDX-License-Identifier: MIT
// Loads the addon: the one that SNAPKV_NODE_ADDON names, or that of this package.
'use strict';

const path = require('node:path');
const {SnapkvError, makeError} = require('./errors.js');

function load() {
  const platform = `${process.platform}-${process.arch}`;
  const file = process.env.SNAPKV_NODE_ADDON ||
      path.join(__dirname, '..', 'prebuilds', platform, 'snapkv.node');
  try {
    return require(path.resolve(file));
  } catch (cause) {
    const error = new SnapkvError(
        `the addon for ${platform} cannot be loaded from ${file}: ${cause.message.split('\n')[0]}. It needs Linux ` +
            'with glibc 2.34 or later on the processor that the package was built for; `make node` ' +
            'in the repository builds it.',
        'SNAPKV_ERROR_RUNTIME');
    error.cause = cause;
    throw error;
  }
}

const native = load();
native.setErrorFactory(makeError);
// process.exit() ends the process beneath threads that still compute, without a hook of the addon
process.on('exit', native.endThreads);
module.exports = native;
