// SPDX-License-Identifier: MIT
#include "text/json_vocab.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "text/byte_alphabet.h"

namespace snapkv {
namespace {

// Vocabularies leave out few ids. A file must not make us allocate memory for ids it merely names.
constexpr int64_t kMaxHoles = 1 << 16;

std::vector<AddedToken> read_added(const JsonField& field) {
  std::vector<AddedToken> added;
  if (field.is_null()) return added;
  for (const JsonField& entry : field.elements()) {
    AddedToken token;
    const int64_t id = entry["id"].integer();
    if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
      entry["id"].fail_expected("0 to 2^31 - 1");
    }
    token.id = static_cast<int32_t>(id);
    token.content = entry["content"].string();
    token.single_word = entry["single_word"].boolean(false);
    token.lstrip = entry["lstrip"].boolean(false);
    token.rstrip = entry["rstrip"].boolean(false);
    token.special = entry["special"].boolean(false);
    token.normalized = entry["normalized"].boolean(!token.special);
    added.push_back(std::move(token));
  }
  return added;
}

/// The number of ids, checked to be about as large as the number of tokens.
int64_t count_ids(const TokenizerFile& file, const std::vector<AddedToken>& added) {
  int64_t n = std::ssize(file.scored_vocab);
  for (const auto& [text, id] : file.vocab) {
    if (id < 0) {
      fail(ErrorCode::kBadModel, "{}: model.vocab: '{}' has the id {}", file.origin, text, id);
    }
    n = std::max(n, id < std::numeric_limits<int64_t>::max() ? id + 1 : id);
  }
  for (const AddedToken& token : added) n = std::max<int64_t>(n, int64_t{token.id} + 1);
  const int64_t n_tokens =
      std::ssize(file.scored_vocab) + std::ssize(file.vocab) + std::ssize(added);
  if (n_tokens == 0) fail(ErrorCode::kBadModel, "{}: the vocabulary is empty", file.origin);
  if (n > 2 * n_tokens + kMaxHoles || n > std::numeric_limits<int32_t>::max()) {
    fail(ErrorCode::kBadModel, "{}: the highest id is {}, but there are only {} tokens",
         file.origin, n - 1, n_tokens);
  }
  return n;
}

void put(JsonVocab& v, const TokenizerFile& file, int64_t id, const std::string& text) {
  if (!v.vocab.tokens[id].empty()) {
    fail(ErrorCode::kBadModel, "{}: model.vocab: '{}' and '{}' both have the id {}", file.origin,
         v.vocab.tokens[id], text, id);
  }
  v.vocab.tokens[id] = text;
  v.text_may_be[id] = true;
}

void put_added(JsonVocab& v, const TokenizerFile& file) {
  for (size_t i = 0; i < v.added.size(); ++i) {
    const AddedToken& token = v.added[i];
    std::string& text = v.vocab.tokens[token.id];
    if (token.content.empty()) {
      fail(ErrorCode::kBadModel, "{}: added_tokens[{}]: content is empty", file.origin, i);
    }
    if (!text.empty() && text != token.content) {
      fail(ErrorCode::kBadModel, "{}: added_tokens[{}]: '{}' has the id {}, which is '{}' already",
           file.origin, i, token.content, token.id, text);
    }
    text = token.content;
    v.vocab.types[token.id] = token.special ? TokenType::kControl : TokenType::kUserDefined;
    if (token.special) v.text_may_be[token.id] = false;
  }
}

}  // namespace

JsonVocab read_json_vocab(const TokenizerFile& file) {
  JsonVocab v;
  v.added = read_added(JsonField(file.json, file.origin)["added_tokens"]);
  const int64_t n = count_ids(file, v.added);
  v.vocab.tokens.resize(n);
  v.vocab.types.resize(n, TokenType::kNormal);
  v.text_may_be.resize(n);
  for (const auto& [text, id] : file.vocab) put(v, file, id, text);
  if (!file.scored_vocab.empty()) {
    v.scores.resize(n);
    v.lowest_score = std::numeric_limits<double>::max();
  }
  for (size_t i = 0; i < file.scored_vocab.size(); ++i) {
    const auto& [text, score] = file.scored_vocab[i];
    if (!std::isfinite(score)) {
      fail(ErrorCode::kBadModel, "{}: model.vocab[{}]: the score is not finite", file.origin, i);
    }
    put(v, file, static_cast<int64_t>(i), text);
    v.scores[i] = score;
    v.lowest_score = std::min(v.lowest_score, score);
  }
  put_added(v, file);
  if (JsonField(file.json, file.origin)["model"]["byte_fallback"].boolean(false)) {
    for (int64_t id = 0; id < n; ++id) {
      if (!v.text_may_be[id] || !byte_alphabet::hex_byte(v.vocab.tokens[id])) continue;
      v.vocab.types[id] = TokenType::kByte;
      // In a Unigram model, text with this spelling becomes the byte, as in Hugging Face's library.
      if (v.scores.empty()) v.text_may_be[id] = false;
    }
  }
  v.vocab.index(file.origin);
  return v;
}

}  // namespace snapkv
