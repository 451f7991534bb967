// SPDX-License-Identifier: MIT
// The user's own texts: files, folders of .txt files, standard input. Used by tasks that work on
// any text.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace snapkv::eval {

struct TextFile {
  std::string path;     ///< "-": standard input
  std::string content;  ///< valid UTF-8: other bytes are U+FFFD
};

/// Reads each path: a file, a folder (its .txt files in the order of their names, subfolders not)
/// or "-" (`input`). Throws kRuntime when one can't be read, kUsage when a text is empty, a folder
/// has no .txt files or "-" comes twice.
std::vector<TextFile> read_texts(const std::vector<std::string>& paths, std::istream& input);

}  // namespace snapkv::eval
