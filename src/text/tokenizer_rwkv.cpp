// SPDX-License-Identifier: MIT
#include "text/tokenizer_rwkv.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

/// No token is added to a text. Files may name any token as the end of a turn, such as "\n\n",
/// which stays a text that prompts contain.
constexpr VocabDefaults kRwkvDefaults = {.ends_are_text = true};

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// The bytes of a token's text: after a backslash, t, n and r are control characters, x begins a
/// byte of two hexadecimal digits, and other characters stand for themselves. Empty: an escape is
/// cut off or has no such digits.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    switch (text[i]) {
      case 't':
        out += '\t';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 'x': {
        if (i + 2 >= text.size()) return std::nullopt;
        const auto high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
        if (!high || !low) return std::nullopt;
        out += static_cast<char>(*high * 16 + *low);
        i += 2;
        break;
      }
      default:
        out += text[i];
    }
  }
  return out;
}

}  // namespace

RwkvTokenizer::RwkvTokenizer(const GgufFile& file)
    : SplitTokenizer(Vocab::from_gguf(file, kRwkvDefaults)) {
  unescape_tokens(file);
  // Control tokens are found by SplitTokenizer where a text may contain them. (llama.cpp has them
  // in its trie too, so that "<s>" in any text is its first token.)
  std::vector<ByteTrie::Entry> entries;
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    if (!vocab_.is_special(id) && !bytes_[id].empty()) entries.push_back({bytes_[id], id});
  }
  trie_ = ByteTrie(std::move(entries));
  check_bytes(file);
}

void RwkvTokenizer::unescape_tokens(const GgufFile& file) {
  bytes_.reserve(vocab_.tokens.size());
  for (size_t id = 0; id < vocab_.tokens.size(); ++id) {
    std::optional<std::string> bytes = unescaped(vocab_.tokens[id]);
    if (!bytes) {
      fail(ErrorCode::kBadModel,
           "'{}': metadata key 'tokenizer.ggml.tokens': token {} is '{}', whose escape is not one "
           "of \\t, \\n, \\r, \\x00 to \\xff and a character after a backslash",
           file.path(), id, vocab_.tokens[id]);
    }
    bytes_.push_back(std::move(*bytes));
  }
}

void RwkvTokenizer::check_bytes(const GgufFile& file) const {
  if (vocab_.special.unk >= 0) return;
  for (int byte = 0; byte < 256; ++byte) {
    if (trie_.find(static_cast<unsigned char>(byte)) >= 0) continue;
    fail(ErrorCode::kBadModel,
         "'{}': metadata key 'tokenizer.ggml.tokens' has no token for the byte 0x{:02x}, and there "
         "is no unknown token",
         file.path(), byte);
  }
}

void RwkvTokenizer::encode_fragment(std::string_view text, bool, std::vector<int32_t>& out) const {
  for (size_t begin = 0; begin < text.size();) {
    int32_t id = vocab_.special.unk;  // of one byte
    size_t n_bytes = 1;
    trie_.for_each_prefix(text.substr(begin), [&](int32_t found, size_t n) {
      id = found;
      n_bytes = n;
    });
    out.push_back(id);
    begin += n_bytes;
  }
}

std::string RwkvTokenizer::piece(int32_t id, bool special) const {
  vocab_.check(id);
  if (is_hidden(id, special)) return {};
  return vocab_.is_special(id) ? vocab_.tokens[id] : bytes_[id];
}

}  // namespace snapkv
