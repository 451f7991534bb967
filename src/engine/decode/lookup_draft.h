// SPDX-License-Identifier: MIT
// LookupDraft: guesses the next tokens of a text as those that followed its last tokens where these
// stood before (prompt lookup decoding: Saxena, 2023; LLMA, arXiv 2304.04487).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace snapkv {

class LookupDraft {
 public:
  struct Guess {
    std::span<const int32_t> tokens;  ///< valid until the next update()
    int64_t n_matched = 0;            ///< how many tokens before them are those at the text's end
  };

  /// `text`: what it was at the last update(), and the tokens that have come since.
  void update(std::span<const int32_t> text);
  /// Up to `most` tokens that may come next; none if the last two tokens have not stood together
  /// before. Takes the last place of those where the most tokens are alike, as far as the runs of
  /// kLengths say.
  Guess guess(int64_t most) const;

 private:
  static constexpr std::array<int64_t, 4> kLengths = {2, 4, 8, 16};
  /// The place after the last run of n tokens of each kind. Of two places of one run the later one
  /// is kept.
  class Places {
   public:
    explicit Places(int64_t n) : n_(n) {}
    /// Notes that the n tokens before text[end] are a run.
    void add(const std::vector<int32_t>& text, int64_t end);
    /// The place after the last run that is the n tokens before text[end]; -1 if there is none.
    int64_t find(const std::vector<int32_t>& text, int64_t end) const;

   private:
    /// Where the run before text[end] is in the table, or the empty place for it.
    size_t slot_of(const std::vector<int32_t>& text, int64_t end) const;
    void grow(const std::vector<int32_t>& text);

    int64_t n_;
    int64_t n_used_ = 0;
    std::vector<int32_t> ends_;  // a hash table with linear probing; 0: empty
  };

  std::vector<int32_t> text_;
  int64_t n_noted_ = 0;  // runs that end at or before it are in the tables
  std::array<Places, kLengths.size()> places_ = {Places(kLengths[0]), Places(kLengths[1]),
                                                 Places(kLengths[2]), Places(kLengths[3])};
};

}  // namespace snapkv
