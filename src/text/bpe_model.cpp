// SPDX-License-Identifier: MIT
#include "text/bpe_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"

namespace snapkv {
namespace {

uint64_t read_up_to_8(const char* at, size_t n) {
  uint64_t word = 0;
  std::memcpy(&word, at, n);
  return word;
}

/// The last character of a text that is valid UTF-8.
std::string_view last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (text[at] & 0xc0) == 0x80) --at;
  return text.substr(at);
}

uint64_t packed(std::string_view a, std::string_view b) {
  return read_up_to_8(a.data(), a.size()) << 32 | read_up_to_8(b.data(), b.size());
}

size_t byte_pair(char a, char b) {
  return static_cast<size_t>(static_cast<unsigned char>(a)) * 256 + static_cast<unsigned char>(b);
}

}  // namespace

BpeModel::BpeModel(const Vocab& vocab, const Merges& merges, std::vector<bool> text_may_be,
                   const Options& options, std::string origin)
    : vocab_(vocab),
      text_may_be_(std::move(text_may_be)),
      options_(options),
      origin_(std::move(origin)),
      merges_(merges.size()) {
  index_first_symbols();
  add_merges(merges);
}

int32_t BpeModel::intern(std::string_view text) {
  const int32_t id = vocab_.find(text);
  if (id >= 0 && text_may_be_[id]) return id;
  const auto next = static_cast<int32_t>(vocab_.size() + std::ssize(extra_symbols_));
  return extra_symbols_.emplace(text, next).first->second;
}

void BpeModel::index_first_symbols() {
  byte_tokens_.fill(-1);
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string& spelling = byte_alphabet::spellings()[byte];
    const std::string hex = byte_alphabet::hex_spelling(static_cast<uint8_t>(byte));
    if (options_.alphabet == Alphabet::bytes) {
      byte_symbols_[byte] = intern(spelling);
      if (byte_symbols_[byte] < vocab_.size()) byte_tokens_[byte] = byte_symbols_[byte];
    } else if (options_.byte_tokens) {
      const int32_t id = vocab_.find(hex);
      byte_tokens_[byte] = id >= 0 && !vocab_.is_special(id) ? id : -1;
    }
  }
  if (options_.alphabet == Alphabet::bytes) return;
  for (const auto& [text, id] : vocab_.ids) {
    const size_t n = utf8::valid_length(text);
    if (n > 0 && text.size() == n && text_may_be_[id]) {
      character_symbols_.emplace(utf8::code_point(text.data(), n), id);
    }
  }
}

void BpeModel::add_merges(const Merges& merges) {
  std::string joined;
  for (const auto& [left, right] : merges) {
    const uint32_t rank = n_merges_++;
    joined.assign(left).append(right);
    const int32_t id = vocab_.find(joined);
    if (options_.strict_merges) {
      const std::string_view missing = id < 0                   ? std::string_view(joined)
                                       : vocab_.find(left) < 0  ? left
                                       : vocab_.find(right) < 0 ? right
                                                                : std::string_view();
      if (!missing.empty()) {
        fail(ErrorCode::kBadModel, "{}: merge {}: '{}' is not a token of the vocabulary", origin_,
             rank, missing);
      }
    }
    if (id >= 0 && !text_may_be_[id]) continue;
    const int32_t a = intern(left);
    const int32_t b = intern(right);
    for (const auto& [part, symbol] : {std::pair{left, a}, std::pair{right, b}}) {
      const size_t n = utf8::valid_length(part);
      if (options_.alphabet == Alphabet::characters && part.size() == n) {
        character_symbols_.emplace(utf8::code_point(part.data(), n), symbol);
      }
    }
    merges_.insert(a, b, {rank, intern(joined)}, options_.last_merge_wins);
    note_neighbours(left, right);
  }
}

void BpeModel::note_neighbours(std::string_view left, std::string_view right) {
  if (left.empty() || right.empty()) return;
  std::string_view a = last_character(left);
  std::string_view b = right.substr(0, std::max<size_t>(utf8::valid_length(right), 1));
  std::string raw;
  if (options_.alphabet == Alphabet::bytes) {
    const size_t n = utf8::valid_length(a);
    const int x = n > 0 ? byte_alphabet::byte_of(utf8::code_point(a.data(), n)) : -1;
    const size_t m = utf8::valid_length(b);
    const int y = m > 0 ? byte_alphabet::byte_of(utf8::code_point(b.data(), m)) : -1;
    if (x < 0 || y < 0) return;  // no bytes are spelled like this
    raw = {static_cast<char>(x), static_cast<char>(y)};
    a = std::string_view(raw).substr(0, 1);
    b = std::string_view(raw).substr(1);
  }
  if (a.size() == 1 && b.size() == 1) {
    neighbour_bytes_.set(byte_pair(a[0], b[0]));
  } else if (a.size() <= 4 && b.size() <= 4) {
    neighbours_.insert(packed(a, b));
  }
}

bool BpeModel::may_join(std::string_view a, std::string_view b) const {
  if (a.size() == 1 && b.size() == 1) return neighbour_bytes_.test(byte_pair(a[0], b[0]));
  return neighbours_.contains(packed(a, b));
}

std::string_view BpeModel::first_character(std::string_view word) const {
  if (options_.alphabet == Alphabet::bytes) return word.substr(0, 1);
  return word.substr(0, std::max<size_t>(utf8::valid_length(word), 1));
}

int32_t BpeModel::first_symbol(std::string_view character) const {
  if (options_.alphabet == Alphabet::bytes) {
    return byte_symbols_[static_cast<unsigned char>(character[0])];
  }
  const auto c = utf8::code_point(character.data(), character.size());
  const auto at = character_symbols_.find(c);
  return at == character_symbols_.end() ? -1 : at->second;
}

int32_t BpeModel::find_whole(std::string_view word) const {
  int32_t id = -1;
  if (options_.alphabet == Alphabet::characters) {
    id = vocab_.find(word);
  } else {
    std::string spelled;
    byte_alphabet::append(spelled, word);
    id = vocab_.find(spelled);
  }
  return id >= 0 && text_may_be_[id] ? id : -1;
}

BpeModel::Encoder::Encoder(const BpeModel& model, size_t text_bytes, std::vector<int32_t>& out)
    : model_(model), out_(out), cache_(text_bytes, out) {}

void BpeModel::Encoder::add(std::string_view word) {
  if (word.empty()) return;
  word_begin_ = out_.size();
  add_cached(word, /*whole=*/true);
}

void BpeModel::Encoder::add_cached(std::string_view text, bool whole) {
  if (cache_.append(text, whole)) return;
  const size_t begin = out_.size();
  const bool met_before = std::exchange(met_unknown_, false);
  add_new(text, whole);
  // A result with an unknown token is not reusable: whether it is fused depends on the text before.
  if (!(model_.options_.fuse_unknown && met_unknown_)) cache_.note(text, whole, begin);
  met_unknown_ = met_unknown_ || met_before;
}

void BpeModel::Encoder::add_new(std::string_view text, bool whole) {
  const Options& options = model_.options_;
  const bool newlines = options.whole_newlines && text.find_first_not_of('\n') == text.npos;
  if (whole && (options.ignore_merges || newlines)) {
    if (const int32_t id = model_.find_whole(text); id >= 0) {
      out_.push_back(id);
      return;
    }
  }
  if (whole && (text.size() > kLongWord || options.alphabet == Alphabet::characters)) {
    add_pieces(text);
  } else {
    merge(text);
  }
}

void BpeModel::Encoder::add_pieces(std::string_view word) {
  size_t begin = 0;
  size_t at = 0;
  for (std::string_view character = model_.first_character(word); !character.empty();) {
    at += character.size();
    const std::string_view next =
        at < word.size() ? model_.first_character(word.substr(at)) : std::string_view();
    if (next.empty() || !model_.may_join(character, next)) {
      add_cached(word.substr(begin, at - begin), /*whole=*/false);
      begin = at;
    }
    character = next;
  }
}

void BpeModel::Encoder::merge(std::string_view text) {
  merger_.clear();
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = model_.first_character(text.substr(at));
    merger_.append(model_.first_symbol(character), at);
    at += character.size();
  }
  merger_.run(text.size(), model_.n_merges_,
              [&](const SymbolMerger::Symbol& a, const SymbolMerger::Symbol& b, size_t) {
                return model_.merges_.find(a.symbol, b.symbol);
              });
  merger_.for_each(text.size(), [&](int32_t symbol, size_t begin, size_t end) {
    if (symbol >= 0 && symbol < model_.vocab_.size()) {
      out_.push_back(symbol);
    } else {
      add_without_token(text.substr(begin, end - begin));
    }
  });
}

void BpeModel::Encoder::add_without_token(std::string_view bytes) {
  const auto token_of = [&](char c) { return model_.byte_tokens_[static_cast<unsigned char>(c)]; };
  if (std::all_of(bytes.begin(), bytes.end(), [&](char c) { return token_of(c) >= 0; })) {
    for (const char c : bytes) out_.push_back(token_of(c));
    return;
  }
  const int32_t unknown = model_.options_.unknown;
  if (unknown < 0) {
    if (model_.warned_.exchange(true)) return;
    log_warn(
        "{}: the vocabulary has no token for '{}' and no unknown token: it is left out of the text",
        model_.origin_, byte_alphabet::hex_spelling(static_cast<uint8_t>(bytes[0])));
    return;
  }
  met_unknown_ = true;
  const bool again = out_.size() > word_begin_ && out_.back() == unknown;
  if (!(model_.options_.fuse_unknown && again)) out_.push_back(unknown);
}

}  // namespace snapkv
