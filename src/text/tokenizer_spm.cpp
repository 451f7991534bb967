// SPDX-License-Identifier: MIT
#include "text/tokenizer_spm.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <queue>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581

constexpr VocabDefaults kDefaults = {.bos = 1,
                                     .eos = 2,
                                     .unk = 0,
                                     .add_bos = true,
                                     .add_eos = false,
                                     .add_space_prefix = true,
                                     .needs_scores = true};

/// The first symbol of a text that is not empty: one UTF-8 character, or what there is of it. In
/// invalid UTF-8 a symbol ends before a byte that cannot continue it. (llama.cpp takes as many
/// bytes as the first one announces, and so spells the space in "\xe9 " wrongly; valid text is the
/// same.)
std::string_view first_symbol(std::string_view text) {
  constexpr uint8_t kLengths[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
  const size_t announced = kLengths[static_cast<unsigned char>(text[0]) >> 4];
  size_t n = 1;
  while (n < announced && n < text.size() && (text[n] & 0xc0) == 0x80) ++n;
  return text.substr(0, n);
}

/// Two neighbouring symbols of up to 4 bytes as one integer. Zero bytes make some pairs share it,
/// which only keeps a stretch of text whole that could have been cut.
uint64_t packed(std::string_view a, std::string_view b) {
  uint64_t first = 0;
  for (const char c : a) first = first << 8 | static_cast<unsigned char>(c);
  uint64_t second = 0;
  for (const char c : b) second = second << 8 | static_cast<unsigned char>(c);
  return first << 32 | second;
}

/// The byte of "<0x0A>"; nullopt for another text.
std::optional<uint8_t> byte_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const size_t high = kDigits.find(text[3]);
  const size_t low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

}  // namespace

/// Merges the symbols of one stretch of text at a time; short stretches (words) are remembered.
/// Lives for one encode(); the texts given to it must outlive it.
class SpmTokenizer::Merger {
 public:
  Merger(const SpmTokenizer& tokenizer, std::vector<int32_t>& out)
      : tokenizer_(tokenizer), out_(out) {}

  void append(std::string_view text) {
    if (text.size() > kMaxRememberedBytes) return merge(text);
    if (const auto at = remembered_.find(text); at != remembered_.end()) {
      const auto [begin, count] = at->second;
      for (size_t i = 0; i < count; ++i) out_.push_back(out_[begin + i]);
      return;
    }
    const size_t begin = out_.size();
    merge(text);
    if (remembered_.size() < kMaxRemembered) {
      remembered_.emplace(text, std::pair{begin, out_.size() - begin});
    }
  }

 private:
  static constexpr size_t kMaxRememberedBytes = 48;  // a word, its space included
  static constexpr size_t kMaxRemembered = 1 << 17;  // about 10 MB

  struct Symbol {
    std::string_view text;  // empty: merged into its left neighbour
    int32_t id = -1;
    int32_t prev = -1;
    int32_t next = -1;
  };
  struct Candidate {
    float score;
    int32_t left;
    int32_t right;
    int32_t id;
    size_t bytes;  // of both together when it was found
    /// Less urgent: lower score, or the same further right.
    bool operator<(const Candidate& other) const {
      return score < other.score || (score == other.score && left > other.left);
    }
  };

  void merge(std::string_view text) {
    symbols_.clear();
    while (!text.empty()) {
      const auto index = static_cast<int32_t>(symbols_.size());
      const std::string_view symbol = first_symbol(text);
      text.remove_prefix(symbol.size());
      symbols_.push_back({symbol, tokenizer_.find_piece(symbol), index - 1, index + 1});
    }
    symbols_.back().next = -1;
    for (size_t i = 1; i < symbols_.size(); ++i) add_candidate(static_cast<int32_t>(i - 1));
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      Symbol& left = symbols_[static_cast<size_t>(best.left)];
      Symbol& right = symbols_[static_cast<size_t>(best.right)];
      const bool stale = left.text.empty() || right.text.empty() ||
                         left.text.size() + right.text.size() != best.bytes;
      if (stale) continue;
      left.text = {left.text.data(), best.bytes};
      left.id = best.id;
      left.next = right.next;
      right.text = {};
      if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].prev = best.left;
      if (left.prev >= 0) add_candidate(left.prev);
      add_candidate(best.left);
    }
    for (int32_t i = 0; i >= 0; i = symbols_[static_cast<size_t>(i)].next) {
      emit(symbols_[static_cast<size_t>(i)]);
    }
  }

  /// Notes the pair of symbol `left` and the one after it, if they form a piece.
  void add_candidate(int32_t left) {
    const Symbol& a = symbols_[static_cast<size_t>(left)];
    if (a.next < 0) return;
    const Symbol& b = symbols_[static_cast<size_t>(a.next)];
    const size_t bytes = a.text.size() + b.text.size();
    const int32_t id = tokenizer_.find_piece({a.text.data(), bytes});
    if (id < 0) return;
    candidates_.push({tokenizer_.vocab_.scores[static_cast<size_t>(id)], left, a.next, id, bytes});
  }

  void emit(const Symbol& symbol) {
    if (symbol.id >= 0) {
      out_.push_back(symbol.id);
      return;
    }
    for (const char c : symbol.text) {
      out_.push_back(tokenizer_.byte_ids_[static_cast<unsigned char>(c)]);
    }
  }

  const SpmTokenizer& tokenizer_;
  std::vector<int32_t>& out_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> candidates_;
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> remembered_;  // range of out_
};

SpmTokenizer::SpmTokenizer(const GgufFile& file)
    : vocab_(Vocab::from_gguf(file, kDefaults)), splitter_(vocab_) {
  index_pieces();
  index_bytes(file);
}

void SpmTokenizer::index_pieces() {
  for (const auto& [text, id] : vocab_.ids) {
    const TokenType type = vocab_.types[static_cast<size_t>(id)];
    // A control token is a meaning, a byte token a byte: text never merges into their spelling.
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
        adjacent_symbols_.insert(packed(a, b));
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
    if (plain >= 0) byte_ids_[static_cast<size_t>(byte)] = plain;
  }
  for (size_t i = 0; i < vocab_.tokens.size(); ++i) {
    if (vocab_.types[i] != TokenType::kByte) continue;
    const auto byte = byte_of(vocab_.tokens[i]);
    if (!byte) {
      fail(ErrorCode::kBadModel,
           "'{}': token {} is of type byte, but its text is not '<0x00>' to "
           "'<0xFF>'",
           file.path(), i);
    }
    byte_ids_[*byte] = static_cast<int32_t>(i);
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (byte_ids_[static_cast<size_t>(byte)] >= 0) continue;
    fail(ErrorCode::kBadModel,
         "'{}': the vocabulary has no token '<0x{:02X}>' and no unknown token "
         "for what it cannot spell",
         file.path(), byte);
  }
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
  return adjacent_symbols_.contains(packed(a, b));
}

void SpmTokenizer::encode_text(std::string_view text, bool space_prefix,
                               std::vector<int32_t>& out) const {
  if (text.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()) / 4) {
    fail(ErrorCode::kRuntime, "a text of {} bytes is too long to tokenize", text.size());
  }
  const std::string escaped =
      (space_prefix ? std::string(kSpace) : std::string()) + replace_all(text, " ", kSpace);
  Merger merger(*this, out);
  const std::string_view all = escaped;
  size_t begin = 0;
  size_t at = 0;
  for (std::string_view symbol = first_symbol(all); !symbol.empty();) {
    at += symbol.size();
    const std::string_view next =
        at < all.size() ? first_symbol(all.substr(at)) : std::string_view();
    if (next.empty() || !adjacent(symbol, next)) {
      merger.append(all.substr(begin, at - begin));
      begin = at;
    }
    symbol = next;
  }
}

std::vector<int32_t> SpmTokenizer::encode(std::string_view text, bool add_special,
                                          bool parse_special) const {
  std::vector<int32_t> out;
  if (add_special && vocab_.special.add_bos) out.push_back(vocab_.special.bos);
  bool after_special = true;  // as is the beginning
  for (const auto& fragment : splitter_.split(text, parse_special)) {
    if (fragment.token >= 0) {
      out.push_back(fragment.token);
    } else {
      encode_text(fragment.text, vocab_.add_space_prefix && after_special, out);
    }
    after_special = fragment.token >= 0;
  }
  if (add_special && vocab_.special.add_eos) out.push_back(vocab_.special.eos);
  return out;
}

std::string SpmTokenizer::piece(int32_t id, bool special) const {
  if (!vocab_.contains(id)) {
    fail(ErrorCode::kUsage, "token id {} is not in the vocabulary of {}", id, vocab_.size());
  }
  const std::string& text = vocab_.tokens[static_cast<size_t>(id)];
  switch (vocab_.types[static_cast<size_t>(id)]) {
    case TokenType::kControl:
    case TokenType::kUnknown:
      return special ? text : std::string();
    case TokenType::kByte:
      return std::string(1, static_cast<char>(byte_of(text).value()));
    case TokenType::kUndefined:
    case TokenType::kNormal:
    case TokenType::kUserDefined:
    case TokenType::kUnused:
      return replace_all(text, kSpace, " ");
  }
  return {};
}

std::string SpmTokenizer::decode(std::span<const int32_t> ids, bool special) const {
  std::string out;
  bool strip = vocab_.add_space_prefix;
  for (const int32_t id : ids) {
    const std::string text = piece(id, special);
    const TokenType type = vocab_.types[static_cast<size_t>(id)];
    if (type == TokenType::kControl || type == TokenType::kUnknown) {
      out += text;
      strip = vocab_.add_space_prefix;
      continue;
    }
    out.append(text, strip && text.starts_with(' ') ? 1 : 0);
    strip = false;
  }
  return out;
}

}  // namespace snapkv
