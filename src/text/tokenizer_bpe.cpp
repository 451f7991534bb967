// SPDX-License-Identifier: MIT
#include "text/tokenizer_bpe.h"

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "format/gguf.h"
#include "text/byte_alphabet.h"
#include "text/sentencepiece_space.h"

namespace snapkv {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

std::string pre_name_of(const GgufFile& file) {
  if (file.get_string(kModelKey) == "gemma4") return "gemma4";
  return file.get_string(kPreKey, "default");
}

void warn_without_pre(const GgufFile& file) {
  if (file.has(kPreKey) || file.get_string(kModelKey) == "gemma4") return;
  log_warn(
      "'{}' does not say how to cut a text into words ('{}'): 'default' is used, and the model may "
      "answer worse than it could",
      file.path(), kPreKey);
}

const PreTokenizer& pre_of(const GgufFile& file, std::string_view name) {
  const PreTokenizer* pre = find_pre_tokenizer(name);
  if (pre == nullptr) {
    fail(ErrorCode::kBadModel,
         "'{}': metadata key '{}' is '{}', which is not supported; supported: {}", file.path(),
         kPreKey, name, pre_tokenizer_names());
  }
  return *pre;
}

Vocab read_vocab(const GgufFile& file) {
  const PreTokenizer& pre = pre_of(file, pre_name_of(file));
  const bool gemma4 = file.get_string(kModelKey) == "gemma4";
  VocabDefaults defaults;
  defaults.bos = pre.has_bos && !gemma4 ? 11 : -1;
  defaults.eos = gemma4 ? -1 : 11;
  defaults.add_bos = pre.add_bos;
  Vocab vocab = Vocab::from_gguf(file, defaults);
  if (pre.always_adds_bos && vocab.special.bos >= 0) vocab.special.add_bos = true;
  return vocab;
}

BpeModel::Merges read_merges(const GgufFile& file) {
  const auto& lines = file.get_strings(kMergesKey);
  BpeModel::Merges merges;
  merges.reserve(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
      fail(ErrorCode::kBadModel,
           "'{}': metadata key '{}': merge {} is '{}', expected two parts with a space between "
           "them",
           file.path(), kMergesKey, i, line);
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

std::vector<bool> not_special(const Vocab& vocab) {
  std::vector<bool> text_may_be(vocab.tokens.size());
  for (int32_t id = 0; id < vocab.size(); ++id) {
    text_may_be[id] = !vocab.is_special(id) && vocab.types[id] != TokenType::kByte;
  }
  return text_may_be;
}

void check_byte_tokens(const GgufFile& file, const Vocab& vocab) {
  for (int32_t id = 0; id < vocab.size(); ++id) {
    if (vocab.types[id] != TokenType::kByte || byte_alphabet::hex_byte(vocab.tokens[id])) continue;
    fail(ErrorCode::kBadModel,
         "'{}': token {} is of type byte, but its text is not '<0x00>' to '<0xFF>'", file.path(),
         id);
  }
}

}  // namespace

BpeTokenizer::BpeTokenizer(const GgufFile& file)
    : SplitTokenizer(read_vocab(file)),
      pre_(pre_of(file, pre_name_of(file))),
      pre_name_(pre_name_of(file)),
      rules_(pre_.rules, fmt::format("'{}': pre-tokenizer '{}'", file.path(), pre_name_)),
      model_(vocab_, read_merges(file), not_special(vocab_),
             {.alphabet =
                  pre_.sentencepiece ? BpeModel::Alphabet::characters : BpeModel::Alphabet::bytes,
              .ignore_merges = pre_.ignore_merges,
              .whole_newlines = pre_.whole_newlines},
             fmt::format("'{}'", file.path())) {
  check_byte_tokens(file, vocab_);
  warn_without_pre(file);
}

void BpeTokenizer::encode_fragment(std::string_view text, bool, std::vector<int32_t>& out) const {
  std::string prepared;
  if (!utf8::is_valid(text)) text = prepared = utf8::with_replacements(text);
  if (pre_.sentencepiece) text = prepared = with_sentencepiece_spaces(text);
  BpeModel::Encoder encoder(model_, text.size(), out);
  for (const uint32_t length : rules_.split(text)) {
    encoder.add(text.substr(0, length));
    text.remove_prefix(length);
  }
}

std::string BpeTokenizer::piece(int32_t id, bool special) const {
  vocab_.check(id);
  if (is_hidden(id, special)) return {};
  const std::string& text = vocab_.tokens[id];
  if (vocab_.types[id] == TokenType::kByte) {
    return std::string(1, static_cast<char>(byte_alphabet::hex_byte(text).value()));
  }
  if (vocab_.is_special(id) || vocab_.types[id] == TokenType::kUserDefined) return text;
  if (pre_.sentencepiece) return without_sentencepiece_spaces(text);
  return byte_alphabet::bytes_of(text).value_or(text);
}

std::string BpeTokenizer::description() const { return "BPE, " + pre_name_; }

}  // namespace snapkv
