// SPDX-License-Identifier: MIT
// What Tab makes of a line that is being typed in the chat: names of commands and of policies, and
// paths of files; and paths as they may be typed, with quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/chat/line_reader.h"

namespace snapkv::cli {

struct CompletionWords {
  std::vector<std::string> commands;       ///< without the slash
  std::vector<std::string> path_commands;  ///< those of them that a path follows
  std::vector<std::string> policies;       ///< what may follow /policy
};

/// `line`: up to the cursor.
Completion complete_line(std::string_view line, const CompletionWords& words);

/// The choices in columns, for a terminal of `width`; of paths the last part. Not all of very many.
std::vector<std::string> completion_rows(const std::vector<std::string>& choices, int width);

/// The file that a user means: with quotes around the path, with backslashes before blanks and the
/// like (as terminals insert the names of files that are dropped on them), or with neither; ~/ is
/// the home folder. Throws kUsage where a quote is not closed.
std::string typed_path(const std::string& text);

}  // namespace snapkv::cli
