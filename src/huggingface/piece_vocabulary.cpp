// SPDX-License-Identifier: MIT
#include "huggingface/piece_vocabulary.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "format/byte_reader.h"
#include "huggingface/gguf_mapping.h"

namespace snapkv::huggingface {
namespace {

constexpr double kPaddingScore = -10000;  // as llama.cpp's converter writes it

template <typename... Args>
[[noreturn]] void bad_model(const SentencePieceModel& model, fmt::format_string<Args...> format,
                            Args&&... args) {
  fail(ErrorCode::kBadModel, "'{}': {}", model.file,
       fmt::format(format, std::forward<Args>(args)...));
}

std::string_view model_type_name(int64_t type) {
  switch (type) {
    case kUnigramPieces:
      return "UNIGRAM";
    case kBpePieces:
      return "BPE";
    case kWordPieces:
      return "WORD";
    case kCharPieces:
      return "CHAR";
    default:
      return "no known model";
  }
}

/// Fails if the model reads or writes texts as the tokenizer of GGUF's "llama" does not.
void check_kind(const SentencePieceModel& model) {
  if (model.model_type != kBpePieces) {
    bad_model(model, "trainer_spec.model_type is {} ({}), supported is {} (BPE)", model.model_type,
              model_type_name(model.model_type), static_cast<int64_t>(kBpePieces));
  }
  if (!model.byte_fallback) {
    bad_model(model, "trainer_spec.byte_fallback is false, supported is true");
  }
  if (model.treat_whitespace_as_suffix) {
    bad_model(model, "trainer_spec.treat_whitespace_as_suffix is true, supported is false");
  }
  const auto check_charsmap = [&](const char* field, const PieceNormalizer& normalizer) {
    if (normalizer.charsmap_bytes == 0) return;
    bad_model(model,
              "{}.precompiled_charsmap has {} bytes (of the rule '{}'), supported is none, as the "
              "rule 'identity' has",
              field, normalizer.charsmap_bytes, printable(normalizer.name));
  };
  check_charsmap("normalizer_spec", model.normalizer);
  check_charsmap("denormalizer_spec", model.denormalizer);
  if (model.normalizer.remove_extra_whitespaces) {
    bad_model(model, "normalizer_spec.remove_extra_whitespaces is true, supported is false");
  }
  if (!model.normalizer.escape_whitespaces) {
    bad_model(model, "normalizer_spec.escape_whitespaces is false, supported is true");
  }
}

class PieceReader {
 public:
  PieceReader(const SentencePieceModel& model, const Config& config)
      : model_(model), table_("tokenizer.model", config.n_vocab) {}

  PieceVocabulary run(const JsonFields& added_tokens, const JsonFields& tokenizer_config,
                      Keys& keys) {
    check_kind(model_);
    table_.scores.assign(table_.n_vocab, kPaddingScore);
    read_pieces();
    table_.pad();
    read_added(added_tokens);
    table_.read_decoder_tokens(tokenizer_config, Conflict::kReplace);
    table_.log_beyond(model_.file);
    keys.text("tokenizer.ggml.model", "llama");
    keys.text("tokenizer.ggml.pre", "default");
    keys.flag("tokenizer.ggml.add_space_prefix",
              tokenizer_config.flag("add_prefix_space", model_.normalizer.add_dummy_prefix));
    add_user_defined(keys);
    NamedIds named = named_ids();
    keys.texts("tokenizer.ggml.tokens", std::move(table_.tokens));
    keys.i32s("tokenizer.ggml.token_type", std::move(table_.types));
    keys.f32s("tokenizer.ggml.scores", std::move(table_.scores));
    return {std::move(table_), std::move(named)};
  }

 private:
  void read_pieces() {
    std::vector<bool> has_byte(256, false);
    int64_t unknown = -1;
    for (int64_t id = 0; id < std::ssize(model_.pieces); ++id) {
      const SentencePiece& piece = model_.pieces[id];
      const auto [at, inserted] = table_.ids.emplace(piece.text, id);
      if (!inserted) {
        bad_model(model_, "pieces {} and {} have the same text '{}'", at->second, id,
                  printable(piece.text));
      }
      if (piece.type == kUnknown) {
        if (unknown >= 0) {
          bad_model(model_, "pieces {} and {} are of type UNKNOWN, expected one", unknown, id);
        }
        unknown = id;
      } else if (piece.type == kUnused) {
        bad_model(model_, "piece {} ('{}') is of type UNUSED, which is not supported", id,
                  printable(piece.text));
      } else if (piece.type == kByte) {
        if (!is_byte_token(piece.text)) {
          bad_model(model_, "piece {} is of type BYTE, but is '{}', expected '<0x00>' to '<0xFF>'",
                    id, printable(piece.text));
        }
        has_byte[std::stoi(piece.text.substr(3, 2), nullptr, 16)] = true;
      }
      if (id >= table_.n_vocab) {
        ++table_.n_beyond;
        continue;
      }
      table_.tokens[id] = piece.text;
      // llama.cpp's converter writes these as normal tokens.
      table_.types[id] = piece.type == kUserDefined ? int64_t{kNormal} : piece.type;
      table_.scores[id] = piece.score;
    }
    if (unknown < 0) bad_model(model_, "no piece is of type UNKNOWN, expected one");
    for (int byte = 0; byte < 256; ++byte) {
      if (!has_byte[byte]) {
        bad_model(model_, "has no piece '<0x{:02X}>' of type BYTE, though byte_fallback is true",
                  byte);
      }
    }
  }

  void read_added(const JsonFields& added) {
    for (const auto& [text, value] : added.json().items()) {
      const int64_t id = added.integer(text, 0, INT32_MAX);
      const auto [at, inserted] = table_.ids.emplace(text, id);
      if (!inserted && at->second != id) {
        added.bad(text, "is {}, but {} in {}", id, at->second, table_.source);
      }
      if (id >= table_.n_vocab) {
        table_.n_beyond += inserted ? 1 : 0;
        continue;
      }
      if (inserted && table_.types[id] != kUnused) table_.replace(id, text, added.file());
      table_.set_added(id, text, table_.types[id] == kControl);
    }
  }

  /// Pieces that SentencePiece finds in a text before it merges, unless a file made them tokens
  /// that are found earlier still.
  void add_user_defined(Keys& keys) const {
    std::vector<int64_t> ids;
    for (int64_t id = 0; id < std::min(table_.n_vocab, std::ssize(model_.pieces)); ++id) {
      if (model_.pieces[id].type == kUserDefined && table_.types[id] == kNormal) ids.push_back(id);
    }
    if (!ids.empty()) keys.i32s("snapkv.tokenizer.user_defined_pieces", std::move(ids));
  }

  NamedIds named_ids() const {
    NamedIds named;
    for (int64_t id = 0; id < table_.n_vocab; ++id) {
      if (table_.types[id] == kUnknown) named["unk"] = id;
    }
    const auto add = [&](const char* kind, int64_t id) {
      if (id >= 0 && id < table_.n_vocab && table_.types[id] == kControl) named[kind] = id;
    };
    add("bos", model_.bos_id);
    add("eos", model_.eos_id);
    add("pad", model_.pad_id);
    return named;
  }

  const SentencePieceModel& model_;
  TokenTable table_;
};

}  // namespace

PieceVocabulary add_piece_keys(const SentencePieceModel& model, const JsonFields& added_tokens,
                               const JsonFields& tokenizer_config, const Config& config,
                               Keys& keys) {
  if (config.mapping != nullptr && config.mapping->architecture == "chatglm") {
    bad_model(model,
              "ChatGLM's control tokens are not in this file but made by its own code, which is "
              "not supported; expected a folder with tokenizer.json");
  }
  return PieceReader(model, config).run(added_tokens, tokenizer_config, keys);
}

}  // namespace snapkv::huggingface
