// SPDX-License-Identifier: MIT
#include "text/vocab.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

// Tokens that end a turn or a file but that files do not name in their metadata; the first one
// present serves as end-of-turn where the metadata gives none. From llama.cpp's list.
constexpr std::string_view kEndOfTurnTexts[] = {
    "<|eot_id|>",        "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",   "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
    "<end_of_utterance>"};
// These end a generation too, but are no turn's end.
constexpr std::string_view kEndTexts[] = {"<|eom_id|>",  "<|return|>",    "<|call|>",
                                          "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"};

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";

void check_length(const GgufFile& file, std::string_view key, size_t length, size_t n_vocab) {
  if (length == n_vocab) return;
  fail(ErrorCode::kBadModel, "'{}': metadata key '{}' has {} elements, but '{}' has {}",
       file.path(), key, length, kTokens, n_vocab);
}

void read_tokens(const GgufFile& file, Vocab& vocab) {
  vocab.tokens = file.get_strings(kTokens);
  if (vocab.tokens.empty() || vocab.tokens.size() > std::numeric_limits<int32_t>::max()) {
    fail(ErrorCode::kBadModel, "'{}': metadata key '{}' has {} elements, expected 1 to 2^31 - 1",
         file.path(), kTokens, vocab.tokens.size());
  }
  vocab.ids.reserve(vocab.tokens.size());
  for (size_t i = 0; i < vocab.tokens.size(); ++i) {
    if (vocab.tokens[i].empty()) continue;  // a filler, never matched
    const auto [at, inserted] = vocab.ids.emplace(vocab.tokens[i], static_cast<int32_t>(i));
    if (!inserted) {
      fail(ErrorCode::kBadModel, "'{}': metadata key '{}': tokens {} and {} have the same text",
           file.path(), kTokens, at->second, i);
    }
  }
}

void read_types(const GgufFile& file, Vocab& vocab) {
  const auto types = file.get_ints(kTypes);
  check_length(file, kTypes, types.size(), vocab.tokens.size());
  vocab.types.reserve(types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 0 || types[i] > static_cast<int64_t>(TokenType::kByte)) {
      fail(ErrorCode::kBadModel, "'{}': metadata key '{}': token {} has type {}, expected 0 to {}",
           file.path(), kTypes, i, types[i], static_cast<int>(TokenType::kByte));
    }
    vocab.types.push_back(static_cast<TokenType>(types[i]));
  }
}

void read_scores(const GgufFile& file, Vocab& vocab) {
  const auto scores = file.get_floats(kScores);
  check_length(file, kScores, scores.size(), vocab.tokens.size());
  vocab.scores.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      fail(ErrorCode::kBadModel, "'{}': metadata key '{}': the score of token {} is not a number",
           file.path(), kScores, i);
    }
    vocab.scores.push_back(static_cast<float>(scores[i]));
  }
}

/// An id from the metadata, or `otherwise` where that is a token.
int32_t read_id(const GgufFile& file, std::string_view name, int32_t otherwise,
                const Vocab& vocab) {
  const std::string key = fmt::format("tokenizer.ggml.{}", name);
  if (!file.has(key)) return vocab.contains(otherwise) ? otherwise : -1;
  const uint64_t id = file.get_uint(key);
  if (id == std::numeric_limits<uint32_t>::max()) return -1;  // converters write -1 for "none"
  if (id >= vocab.tokens.size()) {
    fail(ErrorCode::kBadModel, "'{}': metadata key '{}' is {}, but the vocabulary has {} tokens",
         file.path(), key, id, vocab.tokens.size());
  }
  return static_cast<int32_t>(id);
}

/// Marks `id` as an end; its text is hidden from output, whatever type the file gave it.
void mark_end(Vocab& vocab, int32_t id) {
  if (id < 0) return;
  const auto i = static_cast<size_t>(id);
  vocab.ends[i] = true;
  if (vocab.types[i] != TokenType::kControl) {
    log_warn(
        "token {} '{}' ends a generation, but is no control token in the file; it is taken "
        "as one",
        id, vocab.tokens[i]);
    vocab.types[i] = TokenType::kControl;
  }
}

void read_special(const GgufFile& file, const VocabDefaults& defaults, Vocab& vocab) {
  SpecialTokens& s = vocab.special;
  s.bos = read_id(file, "bos_token_id", defaults.bos, vocab);
  s.eos = read_id(file, "eos_token_id", defaults.eos, vocab);
  s.unk = read_id(file, "unknown_token_id", defaults.unk, vocab);
  s.pad = read_id(file, "padding_token_id", -1, vocab);
  s.eot = read_id(file, "eot_token_id", -1, vocab);
  s.add_bos = file.get_bool("tokenizer.ggml.add_bos_token", defaults.add_bos);
  s.add_eos = file.get_bool("tokenizer.ggml.add_eos_token", defaults.add_eos);
  if (s.add_bos && s.bos < 0) {
    fail(ErrorCode::kBadModel,
         "'{}': a BOS token is to be added, but 'tokenizer.ggml.bos_token_id' "
         "names none",
         file.path());
  }
  if (s.add_eos && s.eos < 0) {
    fail(ErrorCode::kBadModel,
         "'{}': an EOS token is to be added, but 'tokenizer.ggml.eos_token_id' "
         "names none",
         file.path());
  }
  vocab.ends.assign(vocab.tokens.size(), false);
  for (const std::string_view text : kEndOfTurnTexts) {
    const int32_t id = vocab.find(text);
    if (s.eot < 0) s.eot = id;
    mark_end(vocab, id);
  }
  for (const std::string_view text : kEndTexts) mark_end(vocab, vocab.find(text));
  for (const int32_t id : {s.eos, s.eot, read_id(file, "eom_token_id", -1, vocab)}) {
    mark_end(vocab, id);
  }
}

bool is_phi3(const GgufFile& file) {
  std::string model = file.get_string("general.name", "");
  std::transform(model.begin(), model.end(), model.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : char(c); });
  return model.find("phi-3") != std::string::npos || model.find("phi3") != std::string::npos;
}

}  // namespace

Vocab Vocab::from_gguf(const GgufFile& file, const VocabDefaults& defaults) {
  Vocab vocab;
  read_tokens(file, vocab);
  read_types(file, vocab);
  if (defaults.needs_scores) read_scores(file, vocab);
  read_special(file, defaults, vocab);
  vocab.add_space_prefix =
      file.get_bool("tokenizer.ggml.add_space_prefix", defaults.add_space_prefix);
  vocab.strip_after_special = is_phi3(file);
  return vocab;
}

}  // namespace snapkv
