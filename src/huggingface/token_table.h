// SPDX-License-Identifier: MIT
// TokenTable: the tokens of a Hugging Face folder by id, filled from the file with the vocabulary
// and then from those that add tokens to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "huggingface/json_file.h"

namespace snapkv::huggingface {

inline constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, SentencePiece's space

/// Kinds of tokens, with the numbers of GGUF files.
enum TokenKind : int64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

std::string replaced(std::string text, std::string_view from, std::string_view to);
/// Whether the text is of the form "<0x0A>".
bool is_byte_token(std::string_view text);

/// What happens where a token is added under the id of another one.
enum class Conflict { kError, kReplace };

struct TokenTable {
  TokenTable(std::string source_file, int64_t rows)
      : source(std::move(source_file)), n_vocab(rows) {
    tokens.resize(n_vocab);
    types.assign(n_vocab, 0);
  }

  /// The id of a token as spelled in the files; -1 if there is none.
  int64_t find(const std::string& content) const {
    const auto at = ids.find(content);
    return at == ids.end() ? -1 : at->second;
  }
  /// Fills the rows of the embeddings that have no token.
  void pad();
  /// Makes a token one that is found in texts before all others: a control token if it is `special`
  /// or its text is that of one, else a user-defined one.
  void set_added(int64_t id, const std::string& text, bool special);
  /// Reads `added_tokens_decoder` of tokenizer_config.json: {ID: {"content", "special"}}, mostly
  /// the tokens that tokenizer.json adds too. In some folders it has more, or says that one is
  /// special.
  void read_decoder_tokens(const JsonFields& tokenizer_config, Conflict conflict);
  /// Gives a token's id to another text.
  void replace(int64_t id, const std::string& text, const std::string& file);
  /// Logs how many tokens have no row in the embeddings, if any.
  void log_beyond(const std::string& file) const;

  std::string source;  // the vocabulary's file, as messages name it
  int64_t n_vocab;
  int64_t n_beyond = 0;                          // tokens without a row in the embeddings
  std::vector<std::string> tokens;               // [n_vocab]
  std::vector<int64_t> types;                    // [n_vocab], 0 for none yet
  std::vector<double> scores;                    // [n_vocab] or empty
  std::unordered_map<std::string, int64_t> ids;  // by the file's spelling
};

}  // namespace snapkv::huggingface
