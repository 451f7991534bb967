// SPDX-License-Identifier: MIT
// The user's own texts: files, folders of .txt files, standard input.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace snapkv::eval {

struct TextFile {
  std::string path;     ///< "-": standard input
  std::string content;  ///< valid UTF-8: other bytes are replaced by U+FFFD
};

/// Reads each path: a file, a folder (its .txt files sorted by name, without subfolders) or "-"
/// (`input`). Throws kRuntime if one cannot be read, kUsage if a text is empty, a folder has no
/// .txt files or "-" occurs twice.
std::vector<TextFile> read_texts(const std::vector<std::string>& paths, std::istream& input);

}  // namespace snapkv::eval
