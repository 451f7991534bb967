// SPDX-License-Identifier: MIT
#include "long_documents/bm25.h"

#include <cmath>

namespace snapkv::long_documents {

Bm25::Bm25(const std::vector<std::vector<std::string>>& passages) {
  size_t n_words = 0;
  for (size_t i = 0; i < passages.size(); ++i) {
    for (const std::string& word : passages[i]) {
      std::vector<Posting>& postings = postings_[word];
      if (postings.empty() || postings.back().passage != i) postings.push_back({i, 0});
      ++postings.back().count;
    }
    lengths_.push_back(passages[i].size());
    n_words += passages[i].size();
  }
  if (!passages.empty()) {
    average_length_ = static_cast<double>(n_words) / static_cast<double>(passages.size());
  }
}

size_t Bm25::n_with(const std::string& word) const {
  const auto found = postings_.find(word);
  return found == postings_.end() ? 0 : found->second.size();
}

std::vector<double> Bm25::scores(const std::vector<std::string>& words) const {
  std::vector<double> scores(n_passages(), 0.0);
  const auto n_all = static_cast<double>(n_passages());
  for (const std::string& word : words) {
    const auto found = postings_.find(word);
    if (found == postings_.end()) continue;
    const auto n = static_cast<double>(found->second.size());
    const double idf = std::log(1 + (n_all - n + 0.5) / (n + 0.5));
    for (const Posting& posting : found->second) {
      const auto f = static_cast<double>(posting.count);
      const double length = static_cast<double>(lengths_[posting.passage]) / average_length_;
      scores[posting.passage] +=
          idf * f * (kSaturation + 1) / (f + kSaturation * (1 - kLength + kLength * length));
    }
  }
  return scores;
}

}  // namespace snapkv::long_documents
