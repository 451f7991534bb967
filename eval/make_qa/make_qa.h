// SPDX-License-Identifier: MIT
// Writes questions about texts by rule, without a model that reads them, as `snapkv eval qa` takes
// them (eval/qa/data.h): the same seed gives the same questions. Used by app/cli/eval/make_qa.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/make_qa/kinds.h"

namespace snapkv::eval {

struct MakeQaOptions {
  std::vector<std::string> kinds = {};  ///< of made_kinds(); empty: all
  int64_t per_text = 2;            ///< questions of each kind about a text, at most
  uint64_t seed = 1;
  int64_t n_bytes = 10000;  ///< of a text; longer ones are cut
  int64_t n_tokens = 0;     ///< the same in tokens; 0: by bytes
  /// Tokens of a text; needed with n_tokens.
  std::function<int64_t(std::string_view)> count_tokens = {};
};

struct MakeQaFile {
  std::string name;  ///< below MakeQaFiles::folder: "prose/bridge.txt"
  std::string path;
};
struct MakeQaFiles {
  std::string folder;  ///< what `snapkv eval qa --texts` has to name
  std::vector<MakeQaFile> files;
};

/// Files, and all files of folders and their subfolders but those whose names begin with a dot, in
/// the order of their names, each once. Throws kRuntime when one can't be read, kUsage when a
/// folder has no files.
MakeQaFiles list_texts(const std::vector<std::string>& paths);

struct MadeQa {
  std::string lines;  ///< the file
  struct KindCount {
    std::string kind;
    int64_t n_questions = 0, n_texts = 0;
  };
  std::vector<KindCount> counts;     ///< as in the options
  std::vector<std::string> skipped;  ///< files that are no UTF-8 text or are empty
  int64_t n_cut = 0;                 ///< texts that were cut
};

/// Throws kRuntime when a file can't be read, kUsage when there is nothing to ask.
MadeQa make_qa(const MakeQaFiles& texts, const MakeQaOptions& options);

/// "| kind | questions | texts |" with a row for each kind.
std::string make_qa_table(const MadeQa& made);

struct TextPart {
  size_t begin = 0, end = 0;
};
/// All of a text, or where it is longer than the options say the sentences from a drawn one on that
/// fit.
TextPart cut_text(const std::string& text, bool is_code, const MakeQaOptions& options,
                  Random& random);

}  // namespace snapkv::eval
