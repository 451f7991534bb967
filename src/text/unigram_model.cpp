// SPDX-License-Identifier: MIT
#include "text/unigram_model.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"

namespace snapkv {
namespace {

// SentencePiece's value: an unknown character is this much less probable than the rarest token.
constexpr double kUnknownPenalty = 10;
// Each place of a text may cost as many steps as the longest token has bytes. Real tokens have a
// few dozen.
constexpr size_t kMaxTokenBytes = 1 << 10;

}  // namespace

UnigramModel::UnigramModel(const Vocab& vocab, const std::vector<double>& scores,
                           const std::vector<bool>& text_may_be, double lowest_score,
                           const Options& options, std::string origin)
    : options_(options),
      origin_(std::move(origin)),
      unknown_score_(lowest_score - kUnknownPenalty) {
  std::vector<std::pair<std::string_view, int32_t>> tokens;
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string& text = vocab.tokens[id];
    if (!text_may_be[id] || text.empty()) continue;
    if (text.size() > kMaxTokenBytes) {
      fail(ErrorCode::kBadModel, "{}: token {} has {} bytes, more than {}", origin_, id,
           text.size(), kMaxTokenBytes);
    }
    tokens.emplace_back(text, id);
  }
  std::sort(tokens.begin(), tokens.end());
  add_nodes(tokens, scores);
  byte_tokens_.fill(-1);
  for (size_t byte = 0; options_.byte_tokens && byte < 256; ++byte) {
    const int32_t id = vocab.find(byte_alphabet::hex_spelling(static_cast<uint8_t>(byte)));
    byte_tokens_[byte] = id >= 0 && !vocab.is_special(id) ? id : -1;
  }
}

void UnigramModel::add_nodes(const std::vector<std::pair<std::string_view, int32_t>>& sorted,
                             const std::vector<double>& scores) {
  struct Range {
    size_t begin, end, depth;
  };
  std::deque<Range> ranges = {{0, sorted.size(), 0}};
  for (; !ranges.empty(); ranges.pop_front()) {
    auto [begin, end, depth] = ranges.front();
    Node node;
    node.first_edge = static_cast<uint32_t>(bytes_.size());
    if (begin < end && sorted[begin].first.size() == depth) {
      node.id = sorted[begin++].second;
      node.score = scores[node.id];
    }
    nodes_.push_back(node);
    while (begin < end) {
      const char byte = sorted[begin].first[depth];
      size_t last = begin + 1;
      while (last < end && sorted[last].first[depth] == byte) ++last;
      bytes_.push_back(static_cast<unsigned char>(byte));
      targets_.push_back(static_cast<int32_t>(nodes_.size() - 1 + ranges.size()));
      ranges.push_back({begin, last, depth + 1});
      begin = last;
    }
  }
  Node end;
  end.first_edge = static_cast<uint32_t>(bytes_.size());
  nodes_.push_back(end);
}

int32_t UnigramModel::child(int32_t node, unsigned char byte) const {
  const auto begin = bytes_.begin() + nodes_[node].first_edge;
  const auto end = bytes_.begin() + nodes_[node + 1].first_edge;
  const auto at = std::lower_bound(begin, end, byte);
  return at != end && *at == byte ? targets_[at - bytes_.begin()] : -1;
}

void UnigramModel::find_best(std::string_view text, std::vector<Best>& best) const {
  best.assign(text.size() + 1, Best());
  const auto offer = [&](size_t end, size_t begin, int32_t id, double score) {
    Best& at = best[end];
    if (at.reached && score <= at.score) return;
    at = {score, id, static_cast<uint32_t>(begin), true};
  };
  for (size_t begin = 0; begin < text.size();) {
    const double score = best[begin].score;
    const auto length = std::max<size_t>(utf8::valid_length(text.substr(begin)), 1);
    bool has_character = false;
    int32_t node = 0;
    for (size_t end = begin; end < text.size();) {
      node = child(node, static_cast<unsigned char>(text[end]));
      if (node < 0) break;
      ++end;
      if (nodes_[node].id < 0) continue;
      offer(end, begin, nodes_[node].id, score + nodes_[node].score);
      has_character = has_character || end - begin == length;
    }
    if (!has_character) offer(begin + length, begin, -1, score + unknown_score_);
    begin += length;
  }
}

void UnigramModel::put(std::string_view text, const Best& best, std::vector<int32_t>& out) const {
  if (best.id >= 0) {
    out.push_back(best.id);
    return;
  }
  const auto token_of = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (std::all_of(text.begin(), text.end(), [&](char c) { return token_of(c) >= 0; })) {
    for (const char c : text) out.push_back(token_of(c));
  } else if (options_.unknown >= 0) {
    out.push_back(options_.unknown);
  } else if (!warned_.exchange(true)) {
    log_warn(
        "{}: the vocabulary has no token for '{}' and no unknown token: it is left out of the text",
        origin_, byte_alphabet::hex_spelling(static_cast<uint8_t>(text[0])));
  }
}

void UnigramModel::encode(std::string_view text, std::vector<int32_t>& out) const {
  if (text.empty()) return;
  std::vector<Best> best;
  find_best(text, best);
  std::vector<uint32_t> ends;  // the last one first
  for (size_t end = text.size(); end > 0; end = best[end].begin) {
    ends.push_back(static_cast<uint32_t>(end));
  }
  // Consecutive unknown characters form one unknown text.
  size_t unknown_begin = text.size();
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    const Best& b = best[*end];
    const bool is_unknown = b.id < 0 || b.id == options_.unknown;
    if (is_unknown) unknown_begin = std::min<size_t>(unknown_begin, b.begin);
    const bool goes_on =
        is_unknown && std::next(end) != ends.rend() &&
        (best[*std::next(end)].id < 0 || best[*std::next(end)].id == options_.unknown);
    if (goes_on) continue;
    if (is_unknown) {
      Best unknown;
      put(text.substr(unknown_begin, *end - unknown_begin), unknown, out);
      unknown_begin = text.size();
    } else {
      out.push_back(b.id);
    }
  }
}

}  // namespace snapkv
