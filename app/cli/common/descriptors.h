// SPDX-License-Identifier: MIT
// Closed standard descriptors: a program that is started without one gives its number to the next
// file it opens, and what is meant for the terminal then lands in that file. Called first by main.
#pragma once

namespace snapkv::cli {

/// Opens /dev/null for those of descriptors 0 to 2 that are closed. Reading a closed standard input
/// and writing a closed standard output still fail, so that nothing is lost without a word; what is
/// written to a closed standard error is dropped. Ends the process (exit code 1) when /dev/null
/// can't be opened: nothing can be done safely then, and there is nowhere to say so.
void open_closed_standard_descriptors();

}  // namespace snapkv::cli
