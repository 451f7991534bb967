// SPDX-License-Identifier: MIT
#include "text/tokenizer_spm.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "format/gguf.h"
#include "text/byte_alphabet.h"
#include "text/sentencepiece_space.h"
#include "text/word_cache.h"

namespace snapkv {
namespace {

constexpr VocabDefaults kSpmDefaults = {.bos = 1,
                                        .eos = 2,
                                        .unk = 0,
                                        .add_bos = true,
                                        .add_eos = false,
                                        .add_space_prefix = true,
                                        .needs_scores = true,
                                        .needs_types = true};

/// The first symbol of a text that is not empty: one UTF-8 character, or as much of it as there is.
/// In invalid UTF-8, a symbol ends before a byte that cannot continue it. (llama.cpp takes as many
/// bytes as the first one announces, and so spells the space in "\xe9 " wrongly; for valid text
/// there is no difference.)
std::string_view first_symbol(std::string_view text) {
  const auto announced = utf8::length_by_lead(text[0]);
  size_t n = 1;
  while (n < announced && n < text.size() && (text[n] & 0xc0) == 0x80) ++n;
  return text.substr(0, n);
}

/// Two neighbouring symbols of up to 4 bytes each as one integer. With zero bytes, some pairs share
/// a number; then a stretch of text that could be cut stays whole, which does no harm.
uint64_t packed_symbols(std::string_view a, std::string_view b) {
  uint64_t first = 0;
  for (const char c : a) first = first << 8 | static_cast<unsigned char>(c);
  uint64_t second = 0;
  for (const char c : b) second = second << 8 | static_cast<unsigned char>(c);
  return first << 32 | second;
}

}  // namespace

/// Merges the symbols of one stretch of text at a time and remembers short stretches (words). Lives
/// for one encode(); the texts given to it must outlive it.
class SpmTokenizer::Merger {
 public:
  Merger(const SpmTokenizer& tokenizer, size_t text_bytes, std::vector<int32_t>& out)
      : tokenizer_(tokenizer), out_(out), cache_(text_bytes, out) {}

  void append(std::string_view text) {
    if (cache_.append(text, 0)) return;
    const size_t begin = out_.size();
    merge(text);
    cache_.note(text, 0, begin);
  }

 private:
  void merge(std::string_view text) {
    symbols_.clear();
    for (size_t at = 0; at < text.size();) {
      const std::string_view symbol = first_symbol(text.substr(at));
      symbols_.append(tokenizer_.find_piece(symbol), at);
      at += symbol.size();
    }
    symbols_.run(
        text.size(), tokenizer_.n_ranks_,
        [&](const SymbolMerger::Symbol& a, const SymbolMerger::Symbol&, size_t end) {
          const int32_t id = tokenizer_.find_piece(text.substr(a.begin, end - a.begin));
          return id < 0 ? SymbolMerger::Joined() : SymbolMerger::Joined{tokenizer_.ranks_[id], id};
        });
    symbols_.for_each(text.size(), [&](int32_t id, size_t begin, size_t end) {
      if (id >= 0) {
        out_.push_back(id);
        return;
      }
      for (const char c : text.substr(begin, end - begin)) {
        out_.push_back(tokenizer_.byte_ids_[static_cast<unsigned char>(c)]);
      }
    });
  }

  const SpmTokenizer& tokenizer_;
  std::vector<int32_t>& out_;
  SymbolMerger symbols_;
  WordCache cache_;
};

SpmTokenizer::SpmTokenizer(const GgufFile& file)
    : SplitTokenizer(Vocab::from_gguf(file, kSpmDefaults)) {
  index_ranks();
  index_pieces();
  index_bytes(file);
  index_user_defined(file);
}

void SpmTokenizer::index_ranks() {
  std::vector<int32_t> by_score(vocab_.tokens.size());
  std::iota(by_score.begin(), by_score.end(), 0);
  std::sort(by_score.begin(), by_score.end(),
            [&](int32_t a, int32_t b) { return vocab_.scores[a] > vocab_.scores[b]; });
  ranks_.resize(by_score.size());
  for (size_t i = 0; i < by_score.size(); ++i) {
    const bool next = i == 0 || vocab_.scores[by_score[i]] != vocab_.scores[by_score[i - 1]];
    if (next) ++n_ranks_;
    ranks_[by_score[i]] = n_ranks_ - 1;
  }
}

void SpmTokenizer::index_pieces() {
  for (const auto& [text, id] : vocab_.ids) {
    const TokenType type = vocab_.types[id];
    // Text never merges into the spelling of a control token, which is only a meaning, or of a
    // byte.
    if (type == TokenType::kControl || type == TokenType::kUnknown || type == TokenType::kByte) {
      continue;
    }
    pieces_.emplace(text, id);
    max_piece_bytes_ = std::max(max_piece_bytes_, text.size());
    std::string_view a = first_symbol(text);
    for (std::string_view rest = text.substr(a.size()); !rest.empty();) {
      const std::string_view b = first_symbol(rest);
      rest.remove_prefix(b.size());
      if (a.size() == 1 && b.size() == 1) {
        adjacent_bytes_.set(static_cast<size_t>(static_cast<unsigned char>(a[0])) * 256 +
                            static_cast<unsigned char>(b[0]));
      } else {
        adjacent_symbols_.insert(packed_symbols(a, b));
      }
      a = b;
    }
  }
}

void SpmTokenizer::index_bytes(const GgufFile& file) {
  byte_ids_.fill(vocab_.special.unk);
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const int32_t plain = find_piece({&c, 1});
    if (plain >= 0) byte_ids_[byte] = plain;
  }
  for (size_t i = 0; i < vocab_.tokens.size(); ++i) {
    if (vocab_.types[i] != TokenType::kByte) continue;
    const auto byte = byte_alphabet::hex_byte(vocab_.tokens[i]);
    if (!byte) {
      fail(ErrorCode::kBadModel,
           "'{}': token {} is of type byte, but its text is not '<0x00>' to "
           "'<0xFF>'",
           file.path(), i);
    }
    byte_ids_[*byte] = static_cast<int32_t>(i);
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (byte_ids_[byte] >= 0) continue;
    fail(ErrorCode::kBadModel,
         "'{}': the vocabulary has no token '<0x{:02X}>' and no unknown token "
         "for what it cannot spell",
         file.path(), byte);
  }
}

void SpmTokenizer::index_user_defined(const GgufFile& file) {
  constexpr std::string_view kKey = "snapkv.tokenizer.user_defined_pieces";
  if (!file.has(kKey)) return;
  std::vector<TokenMatcher::Entry> entries;
  for (const int64_t id : file.get_ints(kKey)) {
    if (id < 0 || id >= vocab_.size() || vocab_.tokens[id].empty()) {
      fail(ErrorCode::kBadModel,
           "'{}': metadata key '{}' holds {}, expected ids of tokens with a text, below {}",
           file.path(), kKey, id, vocab_.size());
    }
    // Where the text or another key made it a control token, it is found earlier or not at all.
    const auto token = static_cast<int32_t>(id);
    if (vocab_.types[id] == TokenType::kNormal) entries.push_back({vocab_.tokens[id], token});
  }
  const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
  const auto same_id = [](const auto& a, const auto& b) { return a.id == b.id; };
  std::sort(entries.begin(), entries.end(), by_id);
  entries.erase(std::unique(entries.begin(), entries.end(), same_id), entries.end());
  has_user_defined_ = !entries.empty();
  user_defined_ = TokenMatcher(std::move(entries));
}

int32_t SpmTokenizer::find_piece(std::string_view text) const {
  if (text.size() > max_piece_bytes_) return -1;
  const auto at = pieces_.find(text);
  return at == pieces_.end() ? -1 : at->second;
}

bool SpmTokenizer::adjacent(std::string_view a, std::string_view b) const {
  if (a.size() == 1 && b.size() == 1) {
    return adjacent_bytes_.test(static_cast<size_t>(static_cast<unsigned char>(a[0])) * 256 +
                                static_cast<unsigned char>(b[0]));
  }
  return adjacent_symbols_.contains(packed_symbols(a, b));
}

void SpmTokenizer::encode_fragment(std::string_view text, bool after_special,
                                   std::vector<int32_t>& out) const {
  const bool space_prefix = vocab_.add_space_prefix && after_special;
  std::string escaped(space_prefix ? kSentencePieceSpace : std::string_view());
  escaped += with_sentencepiece_spaces(text);
  Merger merger(*this, escaped.size(), out);
  const std::string_view all = escaped;
  if (!has_user_defined_) return merge_stretches(all, merger);
  const auto places = user_defined_.find(all);
  size_t done = 0;
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    if (place->begin < done) continue;
    const auto found = user_defined_.longest(place->node, all.size() - place->begin);
    merge_stretches(all.substr(done, place->begin - done), merger);
    out.push_back(found.id);
    done = place->begin + found.length;
  }
  merge_stretches(all.substr(done), merger);
}

void SpmTokenizer::merge_stretches(std::string_view text, Merger& merger) const {
  if (text.empty()) return;
  size_t begin = 0;
  size_t at = 0;
  for (std::string_view symbol = first_symbol(text); !symbol.empty();) {
    at += symbol.size();
    const std::string_view next =
        at < text.size() ? first_symbol(text.substr(at)) : std::string_view();
    if (next.empty() || !adjacent(symbol, next)) {
      merger.append(text.substr(begin, at - begin));
      begin = at;
    }
    symbol = next;
  }
}

std::string SpmTokenizer::piece(int32_t id, bool special) const {
  vocab_.check(id);
  if (is_hidden(id, special)) return {};
  const std::string& text = vocab_.tokens[id];
  if (vocab_.is_special(id)) return text;
  if (vocab_.types[id] == TokenType::kByte) {
    return std::string(1, static_cast<char>(byte_alphabet::hex_byte(text).value()));
  }
  return without_sentencepiece_spaces(text);
}

}  // namespace snapkv
