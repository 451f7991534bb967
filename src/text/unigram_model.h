// SPDX-License-Identifier: MIT
// UnigramModel: the most probable way to spell a text in tokens, each of which has its own
// log-probability (Kudo 2018, arXiv 1804.10959), found by Viterbi's algorithm.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace snapkv {

class UnigramModel {
 public:
  struct Options {
    int32_t unknown = -1;
    bool byte_tokens = false;  // text without a token becomes "<0x0A>" for each of its bytes
  };
  /// `scores[id]` counts only where `text_may_be[id]`. Throws Error{kBadModel} with a message that
  /// begins with `origin` if a token is too long.
  UnigramModel(const Vocab& vocab, const std::vector<double>& scores,
               const std::vector<bool>& text_may_be, double lowest_score, const Options& options,
               std::string origin);

  /// Appends the ids of `text`, which is valid UTF-8, in time proportional to its length times the
  /// length of the longest token. A stretch without tokens becomes one unknown token, however long
  /// it is; if there is no unknown token, it is left out and a warning is logged.
  void encode(std::string_view text, std::vector<int32_t>& out) const;

 private:
  /// A node of the trie of all tokens; its children are sorted by byte.
  struct Node {
    uint32_t first_edge = 0;  // its edges end at the next node's first
    int32_t id = -1;
    double score = 0;
  };
  struct Best {
    double score = 0;
    int32_t id = -1;
    uint32_t begin = 0;
    bool reached = false;
  };
  int32_t child(int32_t node, unsigned char byte) const;
  void add_nodes(const std::vector<std::pair<std::string_view, int32_t>>& sorted,
                 const std::vector<double>& scores);
  void find_best(std::string_view text, std::vector<Best>& best) const;
  void put(std::string_view text, const Best& best, std::vector<int32_t>& out) const;

  Options options_;
  std::string origin_;
  double unknown_score_ = 0;
  std::array<int32_t, 256> byte_tokens_{};
  std::vector<Node> nodes_;  // level by level; an extra one marks the end of the last one's edges
  std::vector<unsigned char> bytes_;
  std::vector<int32_t> targets_;
  mutable std::atomic<bool> warned_ = false;  // whether left-out text has been logged
};

}  // namespace snapkv
