// SPDX-License-Identifier: MIT
#include "text/tokenizer_unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "format/gguf.h"
#include "text/byte_alphabet.h"
#include "text/sentencepiece_space.h"

namespace snapkv {
namespace {

constexpr VocabDefaults kUnigramDefaults = {.bos = -1,
                                            .eos = 1,
                                            .unk = 2,
                                            .pad = 0,
                                            .add_bos = false,
                                            .add_eos = true,
                                            .needs_scores = true,
                                            .needs_types = true};

std::string read_chars_map(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
  std::string bytes;
  if (!file.has(kKey)) return bytes;
  const auto values = file.get_ints(kKey);
  bytes.reserve(values.size());
  for (const int64_t value : values) {
    if (value < -128 || value > 255) {
      fail(ErrorCode::kBadModel, "'{}': metadata key '{}' holds {}, expected bytes", file.path(),
           kKey, value);
    }
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::vector<double> scores_of(const Vocab& vocab) {
  std::vector<double> scores(vocab.scores.begin(), vocab.scores.end());
  for (int32_t id = 0; id < vocab.size(); ++id) {
    if (vocab.types[id] == TokenType::kUserDefined) scores[id] = 0;
  }
  return scores;
}

double lowest_score(const Vocab& vocab) {
  double lowest = std::numeric_limits<float>::max();
  for (int32_t id = 0; id < vocab.size(); ++id) {
    if (vocab.types[id] == TokenType::kNormal) lowest = std::min<double>(lowest, vocab.scores[id]);
  }
  return lowest;
}

std::vector<bool> matched(const Vocab& vocab) {
  std::vector<bool> text_may_be(vocab.tokens.size());
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const TokenType type = vocab.types[id];
    text_may_be[id] =
        type == TokenType::kNormal || type == TokenType::kUserDefined || type == TokenType::kUnused;
  }
  return text_may_be;
}

}  // namespace

UnigramTokenizer::UnigramTokenizer(const GgufFile& file)
    : SplitTokenizer(Vocab::from_gguf(file, kUnigramDefaults)),
      chars_map_(
          read_chars_map(file),
          fmt::format("'{}': metadata key 'tokenizer.ggml.precompiled_charsmap'", file.path())),
      merge_spaces_(file.get_bool("tokenizer.ggml.remove_extra_whitespaces", false)),
      model_(vocab_, scores_of(vocab_), matched(vocab_), lowest_score(vocab_),
             {.unknown = vocab_.special.unk}, fmt::format("'{}'", file.path())) {
  for (int32_t id = 0; id < vocab_.size(); ++id) {
    const bool is_byte = vocab_.types[id] == TokenType::kByte;
    if (is_byte && !byte_alphabet::hex_byte(vocab_.tokens[id])) {
      fail(ErrorCode::kBadModel,
           "'{}': token {} is of type byte, but its text is not '<0x00>' to '<0xFF>'", file.path(),
           id);
    }
    if (vocab_.types[id] == TokenType::kUserDefined) user_defined_.push_back(vocab_.tokens[id]);
  }
  std::sort(user_defined_.begin(), user_defined_.end());
}

size_t UnigramTokenizer::kept_prefix(std::string_view text) const {
  auto begin = user_defined_.begin();
  auto end = user_defined_.end();
  size_t n = 0;
  while (n < text.size()) {
    const auto c = static_cast<unsigned char>(text[n]);
    // The tokens in [begin, end) share their first n bytes and are sorted by the next; shorter come
    // first.
    begin = std::partition_point(begin, end, [&](std::string_view t) {
      return t.size() <= n || static_cast<unsigned char>(t[n]) < c;
    });
    end = std::partition_point(
        begin, end, [&](std::string_view t) { return static_cast<unsigned char>(t[n]) == c; });
    if (begin == end) break;
    ++n;
  }
  return n;
}

std::string UnigramTokenizer::normalized(std::string_view text) const {
  std::string out;
  bool prefixed = false;
  bool in_word = false;
  const auto put = [&](std::string_view part) {
    for (const char c : part) {
      if (c == ' ') {
        in_word = false;
        if (!merge_spaces_) out += kSentencePieceSpace;
        continue;
      }
      if (!in_word && ((vocab_.add_space_prefix && !prefixed) || merge_spaces_)) {
        out += kSentencePieceSpace;
        prefixed = true;
      }
      in_word = true;
      out += c;
    }
  };
  while (!text.empty()) {
    size_t n = kept_prefix(text);
    if (n > 0) {
      put(text.substr(0, n));
    } else if (const auto replacement = chars_map_.find(text); replacement.length > 0) {
      n = replacement.length;
      put(replacement.text);
    } else {
      n = utf8::valid_length(text);
      put(n > 0 ? text.substr(0, n) : utf8::kReplacement);
      n = std::max<size_t>(n, 1);
    }
    text.remove_prefix(n);
  }
  return out;
}

void UnigramTokenizer::encode_fragment(std::string_view text, bool,
                                       std::vector<int32_t>& out) const {
  // A table may split a character, but the model needs whole ones.
  std::string prepared = normalized(text);
  if (!utf8::is_valid(prepared)) prepared = utf8::with_replacements(prepared);
  model_.encode(prepared, out);
}

std::string UnigramTokenizer::piece(int32_t id, bool special) const {
  vocab_.check(id);
  if (is_hidden(id, special)) return {};
  const std::string& text = vocab_.tokens[id];
  const TokenType type = vocab_.types[id];
  if (type == TokenType::kByte) {
    return std::string(1, static_cast<char>(byte_alphabet::hex_byte(text).value()));
  }
  if (vocab_.is_special(id) || type == TokenType::kUserDefined) return text;
  return without_sentencepiece_spaces(text);
}

}  // namespace snapkv
