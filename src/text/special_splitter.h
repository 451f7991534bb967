// SPDX-License-Identifier: MIT
// SpecialSplitter: cuts a text at the special tokens spelled out in it, before a tokenizer reads
// what is left between them. The same order as llama.cpp: longest token first, each over all of the
// text that longer ones left.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocab.h"

namespace snapkv {

class SpecialSplitter {
 public:
  /// A token, or text (token < 0) to tokenize.
  struct Fragment {
    int32_t token = -1;
    std::string_view text;
  };

  explicit SpecialSplitter(const Vocab& vocab);

  /// Fragments of `text` in order; texts are views of it and not empty. `parse_special` false: only
  /// user-defined tokens are cut out.
  std::vector<Fragment> split(std::string_view text, bool parse_special) const;

 private:
  struct Special {
    int32_t id;
    std::string_view text;  // of the vocabulary
    bool always;            // cut out without parse_special too
    bool strip;             // white space after it is dropped
  };
  /// Which of `specials_` occur in `text`, in their order.
  std::vector<const Special*> present(std::string_view text, bool parse_special) const;

  std::vector<Special> specials_;                       // longest first
  std::unordered_map<std::string_view, size_t> index_;  // text -> specials_
  std::array<std::vector<size_t>, 256> lengths_;        // by first byte, longest first
};

}  // namespace snapkv
