// SPDX-License-Identifier: MIT
// Writes questions about texts by rule, without a model that reads them, in the form that `snapkv
// eval qa` takes (eval/qa/data.h). The same seed gives the same questions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/make_qa/kinds.h"

namespace snapkv::eval {

struct MakeQaOptions {
  std::vector<std::string> kinds = {};  ///< from made_kinds(); empty: all but by_name_only
  int64_t per_text = 2;                 ///< most questions of each kind about a text
  uint64_t seed = 1;
  int64_t n_bytes = 10000;  ///< most bytes of a text; longer ones are cut
  int64_t n_tokens = 0;     ///< the same in tokens; 0: n_bytes applies
  /// Counts the tokens of a text; needed with n_tokens.
  std::function<int64_t(std::string_view)> count_tokens = {};
};

struct MakeQaFile {
  std::string name;  ///< relative to MakeQaFiles::folder: "prose/bridge.txt"
  std::string path;
};
struct MakeQaFiles {
  std::string folder;  ///< the folder to give to `snapkv eval qa --texts`
  std::vector<MakeQaFile> files;
};

/// Files, and all files in folders and their subfolders except those whose names begin with a dot,
/// sorted by name, each once. Throws kRuntime if one cannot be read, kUsage if a folder has no
/// files.
MakeQaFiles list_texts(const std::vector<std::string>& paths);

struct MadeQa {
  std::string lines;  ///< the content of the JSONL file
  struct KindCount {
    std::string kind;
    int64_t n_questions = 0, n_texts = 0;
  };
  std::vector<KindCount> counts;     ///< in the order of the options
  std::vector<std::string> skipped;  ///< files that are not UTF-8 text or are empty
  int64_t n_cut = 0;                 ///< texts that were cut
};

/// Throws kRuntime if a file cannot be read, kUsage if there is nothing to ask.
MadeQa make_qa(const MakeQaFiles& texts, const MakeQaOptions& options);

/// A Markdown table "| kind | questions | texts |" with a row for each kind.
std::string make_qa_table(const MadeQa& made);

struct TextPart {
  size_t begin = 0, end = 0;
};
/// The whole text, or, if it is longer than the options allow, the sentences that fit, beginning
/// with a random one.
TextPart cut_text(const std::string& text, bool is_code, const MakeQaOptions& options,
                  Random& random);

}  // namespace snapkv::eval
