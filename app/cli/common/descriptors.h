// SPDX-License-Identifier: MIT
// Standard descriptors that are closed at the start: the next file opened would get the number of
// one of them, and text meant for the terminal would end up in that file.
#pragma once

namespace snapkv::cli {

/// Opens /dev/null for each closed descriptor from 0 to 2. Reading such a standard input or writing
/// such a standard output still fails, so that no data is lost silently; text for standard error is
/// dropped. Ends the process (exit code 1) when /dev/null can't be opened: nothing can be done
/// safely then, and there is nowhere to report it.
void open_closed_standard_descriptors();

}  // namespace snapkv::cli
