// SPDX-License-Identifier: MIT
// Bm25 ranks passages by the words that they share with a question: Okapi BM25 (S. E. Robertson,
// S. Walker, S. Jones, M. Hancock-Beaulieu, M. Gatford: Okapi at TREC-3, 1994).
//
//   score(q, d) = sum over words t of q: idf(t) * f (k1 + 1) / (f + k1 (1 - b + b |d| / avg))
//   idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))
//
// f: times that t is in d; |d|: words of d, avg on average; n of the N passages have t. The 1 in
// idf (Lucene's) keeps a word that most passages have from counting against them.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

namespace snapkv::long_documents {

class Bm25 {
 public:
  static constexpr double kSaturation = 1.2;  ///< k1: how soon repeating a word stops counting
  static constexpr double kLength = 0.75;     ///< b: how much a long passage must say more

  /// `passages`: the words of each (index_words()).
  explicit Bm25(const std::vector<std::vector<std::string>>& passages);

  size_t n_passages() const { return lengths_.size(); }
  /// How many passages have the word.
  size_t n_with(const std::string& word) const;
  /// The score of each passage for these words; a word that is there twice counts twice.
  std::vector<double> scores(const std::vector<std::string>& words) const;

 private:
  struct Posting {
    size_t passage;
    size_t count;
  };
  std::unordered_map<std::string, std::vector<Posting>> postings_;
  std::vector<size_t> lengths_;
  double average_length_ = 0;
};

}  // namespace snapkv::long_documents
