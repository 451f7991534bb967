// SPDX-License-Identifier: MIT
#include "text/tokenizer_plamo2.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "format/gguf.h"
#include "text/byte_alphabet.h"

namespace snapkv {
namespace {

constexpr VocabDefaults kPlamoDefaults = {
    .bos = 1, .eos = 2, .unk = 0, .pad = 3, .needs_scores = true, .needs_types = true};

// llama.cpp's numbers, of scores times 10000
constexpr double kScoreUnits = 1e4;
constexpr int32_t kLeastScore = -20000000;    // tokens up to this one are never chosen
constexpr int32_t kUnknownScore = -10000000;  // of a character that is spelled by its bytes
constexpr double kMostScore = 2e5;            // that is still a 32-bit number
constexpr size_t kMostTokenBytes = 1 << 10;   // each place of a text may cost as many steps

}  // namespace

PlamoTokenizer::PlamoTokenizer(const GgufFile& file)
    : SplitTokenizer(Vocab::from_gguf(file, kPlamoDefaults)) {
  index_tokens(file);
  index_bytes(file);
}

// Control tokens are found by SplitTokenizer where a text may contain them. (llama.cpp has them
// among the others, so that "<|plamo:bos|>" in any text may become one token.)
void PlamoTokenizer::index_tokens(const GgufFile& file) {
  std::vector<ByteTrie::Entry> entries;
  scores_.resize(vocab_.tokens.size(), kLeastScore);
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    const std::string& text = vocab_.tokens[id];
    const double score = vocab_.scores[id];
    if (vocab_.types[id] == TokenType::kByte || vocab_.is_special(id) || text.empty()) continue;
    if (std::isfinite(score) && std::abs(score) > kMostScore) {
      fail(ErrorCode::kBadModel,
           "'{}': metadata key 'tokenizer.ggml.scores': that of token {} is {}, expected {} to {}",
           file.path(), id, score, -kMostScore, kMostScore);
    }
    if (text.size() > kMostTokenBytes) {
      fail(ErrorCode::kBadModel,
           "'{}': metadata key 'tokenizer.ggml.tokens': token {} has {} bytes, more than {}",
           file.path(), id, text.size(), kMostTokenBytes);
    }
    // a text has only valid characters
    if (!std::isfinite(score) || !utf8::is_valid(text)) continue;
    scores_[id] = static_cast<int32_t>(std::round(score * kScoreUnits));
    if (scores_[id] > kLeastScore) entries.push_back({text, id});
  }
  trie_ = ByteTrie(std::move(entries));
}

void PlamoTokenizer::index_bytes(const GgufFile& file) {
  byte_tokens_.fill(-1);
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    if (vocab_.types[id] != TokenType::kByte) continue;
    const auto byte = byte_alphabet::hex_byte(vocab_.tokens[id]);
    if (!byte) {
      fail(ErrorCode::kBadModel,
           "'{}': token {} is of type byte, but its text is not '<0x00>' to '<0xFF>'", file.path(),
           id);
    }
    byte_tokens_[*byte] = id;
  }
  const auto missing = std::find(byte_tokens_.begin(), byte_tokens_.end(), -1);
  if (missing == byte_tokens_.end()) return;
  fail(ErrorCode::kBadModel,
       "'{}': metadata key 'tokenizer.ggml.tokens' has no token of type byte for 0x{:02x}",
       file.path(), missing - byte_tokens_.begin());
}

/// Of several equally good ways the longest token, and the bytes of a character last.
PlamoTokenizer::Step PlamoTokenizer::best_step(std::string_view text, size_t at, size_t n_character,
                                               const std::vector<Step>& steps) const {
  Step best = {.cost = steps[at + n_character].cost - kUnknownScore,
               .id = -1,
               .n_bytes = static_cast<uint32_t>(n_character)};
  trie_.for_each_prefix(text.substr(at), [&](int32_t id, size_t n) {
    const int64_t cost = steps[at + n].cost - scores_[id];
    if (cost <= best.cost) best = {cost, id, static_cast<uint32_t>(n)};
  });
  return best;
}

void PlamoTokenizer::encode_fragment(std::string_view text, bool, std::vector<int32_t>& out) const {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::string repaired;
  if (!utf8::is_valid(text)) {
    repaired = utf8::with_replacements(text);
    text = repaired;
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<Step> steps(text.size() + 1);
  for (size_t end = text.size(); end > 0;) {
    size_t at = end - 1;
    while ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) --at;
    steps[at] = best_step(text, at, end - at, steps);
    end = at;
  }
  for (size_t at = 0; at < text.size(); at += steps[at].n_bytes) {
    if (steps[at].id >= 0) {
      out.push_back(steps[at].id);
      continue;
    }
    for (const char c : text.substr(at, steps[at].n_bytes)) {
      out.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
    }
  }
}

std::string PlamoTokenizer::piece(int32_t id, bool special) const {
  vocab_.check(id);
  if (is_hidden(id, special)) return {};
  const auto byte = vocab_.types[id] == TokenType::kByte
                        ? byte_alphabet::hex_byte(vocab_.tokens[id])
                        : std::nullopt;
  return byte ? std::string(1, static_cast<char>(*byte)) : vocab_.tokens[id];
}

}  // namespace snapkv
