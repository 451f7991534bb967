// SPDX-License-Identifier: MIT
#include "text/vocab.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/log.h"
#include "format/gguf.h"

namespace snapkv {
namespace {

constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";

// The lists of texts below are llama.cpp's: files name few of these tokens in their metadata.

// The first one present serves as end-of-turn token if the metadata names none.
constexpr std::string_view kEndOfTurnTexts[] = {
    "<|eot_id|>",        "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",   "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
    "<end_of_utterance>"};
// These end a generation too, but not a turn.
constexpr std::string_view kEndTexts[] = {
    "<|eom_id|>", "<|return|>", "<|call|>", "<|flush|>",        "<|calls|>", "</s>",
    "[EOS]",      "<eos>",      "<turn|>",  "<|tool_response>", "[e~["};
constexpr std::string_view kEndOfMessageTexts[] = {"<|eom_id|>"};
constexpr std::string_view kFimPrefixTexts[] = {"<|fim_prefix|>",  "<fim-prefix>", "<fim_prefix>",
                                                "<｜fim▁begin｜>", "<PRE>",        "▁<PRE>",
                                                "<|code_prefix|>", "<|prefix|>"};
constexpr std::string_view kFimSuffixTexts[] = {"<|fim_suffix|>",  "<fim-suffix>", "<fim_suffix>",
                                                "<｜fim▁hole｜>",  "<SUF>",        "▁<SUF>",
                                                "<|code_suffix|>", "<|suffix|>"};
constexpr std::string_view kFimMiddleTexts[] = {"<|fim_middle|>",  "<fim-middle>", "<fim_middle>",
                                                "<｜fim▁end｜>",   "<MID>",        "▁<MID>",
                                                "<|code_middle|>", "<|middle|>"};
constexpr std::string_view kFimPadTexts[] = {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>",
                                             "[PAD]"};
constexpr std::string_view kFimRepoTexts[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>",
                                              "<REPO>", "<reponame>"};
constexpr std::string_view kFimFileTexts[] = {"<|file_sep|>"};
// Parts of gpt-oss's answers: who speaks, and where the text begins.
constexpr std::string_view kVisibleTexts[] = {"<|channel|>", "<|message|>", "<|start|>",
                                              "<|constrain|>"};

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
  vocab.index(fmt::format("'{}': metadata key '{}'", file.path(), kTokens));
}

void read_types(const GgufFile& file, bool needed, Vocab& vocab) {
  if (!needed && !file.has(kTypes)) {
    vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
    return;
  }
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

/// An id from the metadata; if it has none, `otherwise` if that is a token, else -1.
int32_t read_id(const GgufFile& file, std::string_view name, int32_t otherwise,
                const Vocab& vocab) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  if (!file.has(key)) return vocab.contains(otherwise) ? otherwise : -1;
  const uint64_t id = file.get_uint(key);
  if (id == std::numeric_limits<uint32_t>::max()) return -1;  // converters write -1 for "none"
  if (id >= vocab.tokens.size()) {
    fail(ErrorCode::kBadModel, "'{}': metadata key '{}' is {}, but the vocabulary has {} tokens",
         file.path(), key, id, vocab.tokens.size());
  }
  return static_cast<int32_t>(id);
}

void read_special(const GgufFile& file, const VocabDefaults& defaults, Vocab& vocab) {
  SpecialTokens& s = vocab.special;
  s.bos = read_id(file, "bos", defaults.bos, vocab);
  s.eos = read_id(file, "eos", defaults.eos, vocab);
  s.unk = read_id(file, "unknown", defaults.unk, vocab);
  s.pad = read_id(file, "padding", defaults.pad, vocab);
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
  const auto named = [&](std::string_view name) { return read_id(file, name, -1, vocab); };
  vocab.find_ends({.eot = named("eot"),
                   .eom = named("eom"),
                   .fim_pre = named("fim_pre"),
                   .fim_suf = named("fim_suf"),
                   .fim_mid = named("fim_mid"),
                   .fim_pad = named("fim_pad"),
                   .fim_rep = named("fim_rep"),
                   .fim_sep = named("fim_sep"),
                   .are_text = defaults.ends_are_text});
}

/// In Phi-3's tokenizer.json, special tokens take the white space after them. Its GGUF files do not
/// say so; they are recognised by their name.
void read_strips(const GgufFile& file, Vocab& vocab) {
  std::string model = file.get_string("general.name", "");
  std::transform(model.begin(), model.end(), model.begin(),
                 [](unsigned char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : char(c); });
  if (model.find("phi-3") == std::string::npos && model.find("phi3") == std::string::npos) return;
  for (int32_t id = 0; id < vocab.size(); ++id) {
    const std::string& text = vocab.tokens[id];
    const bool keeps = text == "<unk>" || text == "<s>" || text == "<|endoftext|>";
    if (!keeps && (vocab.is_special(id) || vocab.types[id] == TokenType::kUserDefined)) {
      vocab.strips[id].right = true;
    }
  }
}

/// Makes `id` a control token, whatever its type in the file.
void make_control(Vocab& vocab, int32_t id) {
  if (vocab.types[id] == TokenType::kControl) return;
  log_info(
      "token {} '{}' has the text of a control token, but is none in the file; it is taken "
      "as one",
      id, vocab.tokens[id]);
  vocab.types[id] = TokenType::kControl;
}

/// `id`; if it is -1, the first of these texts that is a token, which becomes a control token.
int32_t or_by_text(Vocab& vocab, int32_t id, std::span<const std::string_view> texts) {
  for (size_t i = 0; id < 0 && i < texts.size(); ++i) {
    id = vocab.find(texts[i]);
    if (id >= 0) make_control(vocab, id);
  }
  return id;
}

void mark_end(Vocab& vocab, int32_t id) {
  if (id < 0) return;
  vocab.ends[id] = true;
  make_control(vocab, id);
}

}  // namespace

void Vocab::index(const std::string& origin) {
  ids.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) continue;  // a filler, which never matches
    const auto [at, inserted] = ids.emplace(tokens[i], static_cast<int32_t>(i));
    if (!inserted) {
      fail(ErrorCode::kBadModel, "{}: tokens {} and {} have the same text", origin, at->second, i);
    }
  }
}

void Vocab::find_ends(NamedTokens named) {
  ends.assign(tokens.size(), false);
  visible.assign(tokens.size(), false);
  special.eot = or_by_text(*this, named.eot, kEndOfTurnTexts);
  fill_in = {or_by_text(*this, named.fim_pre, kFimPrefixTexts),
             or_by_text(*this, named.fim_suf, kFimSuffixTexts),
             or_by_text(*this, named.fim_mid, kFimMiddleTexts)};
  for (const std::string_view text : kEndOfTurnTexts) mark_end(*this, find(text));
  for (const std::string_view text : kEndTexts) mark_end(*this, find(text));
  for (const int32_t id :
       {special.eos, special.eot, or_by_text(*this, named.eom, kEndOfMessageTexts),
        or_by_text(*this, named.fim_pad, kFimPadTexts),
        or_by_text(*this, named.fim_rep, kFimRepoTexts),
        or_by_text(*this, named.fim_sep, kFimFileTexts)}) {
    if (named.are_text && id >= 0) {
      ends[id] = true;
    } else {
      mark_end(*this, id);
    }
  }
  for (const std::string_view text : kVisibleTexts) {
    if (const int32_t id = find(text); id >= 0) visible[id] = true;
  }
  // In gpt-oss and Solar Open, <|end|> ends a message, after which the answer continues.
  const int32_t end = find("<|end|>");
  const bool calls = find("<|call|>") >= 0 || find("<|calls|>") >= 0;
  if (end >= 0 && calls && (find("<|return|>") >= 0 || find("<|flush|>") >= 0)) {
    ends[end] = false;
    visible[end] = true;
  }
  // In Gemma 4, </s> is HTML.
  const int32_t strike = find("</s>");
  if (strike >= 0 && find("<|tool_response>") >= 0) {
    ends[strike] = false;
    types[strike] = TokenType::kNormal;
  }
}

void Vocab::check(int32_t id) const {
  if (!contains(id)) {
    fail(ErrorCode::kUsage, "token id {} is not in the vocabulary of {}", id, size());
  }
}

Vocab Vocab::from_gguf(const GgufFile& file, const VocabDefaults& defaults) {
  Vocab vocab;
  read_tokens(file, vocab);
  read_types(file, defaults.needs_types, vocab);
  if (defaults.needs_scores) read_scores(file, vocab);
  read_special(file, defaults, vocab);
  vocab.add_space_prefix =
      file.get_bool("tokenizer.ggml.add_space_prefix", defaults.add_space_prefix);
  read_strips(file, vocab);
  return vocab;
}

}  // namespace snapkv
