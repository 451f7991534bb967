// SPDX-License-Identifier: MIT
// JsonTokenizer: a tokenizer.json; gives the same ids as Hugging Face's tokenizers library.
//
// A text is cut at added tokens and normalized, cut at the added tokens that are normalized too,
// and cut into pieces, each of which goes through the model. Steps that the file does not ask for
// are skipped; a step that is not supported is an error that names it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe_model.h"
#include "text/json_file.h"
#include "text/json_vocab.h"
#include "text/normalizers.h"
#include "text/piece_cutter.h"
#include "text/piece_decoder.h"
#include "text/unigram_model.h"
#include "text/vocab_tokenizer.h"

namespace snapkv {

class JsonTokenizer final : public VocabTokenizer {
 public:
  /// The other files in the folder of tokenizer.json; null if there is none.
  struct Config {
    nlohmann::json tokenizer;   // tokenizer_config.json: which tokens are BOS, EOS ...
    nlohmann::json generation;  // generation_config.json: which tokens end a generation
    std::string tokenizer_path;
    std::string generation_path;
  };
  static std::unique_ptr<Tokenizer> make(const TokenizerFile& file, const Config& config);

  std::vector<int32_t> encode(std::string_view text, bool add_special,
                              bool parse_special) const override;
  std::vector<int32_t> encode_chat(const RenderedChat& chat, bool add_bos) const override;
  std::string piece(int32_t id, bool special) const override;
  std::string decode(std::span<const int32_t> ids, bool special) const override;
  std::string description() const override;

 private:
  JsonTokenizer(const TokenizerFile& file, const Config& config, JsonVocab vocab);
  void read_post_processor(const JsonField& field);
  void read_template(const JsonField& field);
  void read_special(const Config& config);
  void read_ends(const JsonField& generation_config);
  /// Marks control tokens so that the model never produces them, including tokens that are control
  /// tokens only by their text, which Hugging Face's tokenizers do not know, or by the
  /// configuration. An EOS token of the configuration becomes an added token, as in the
  /// transformers library.
  void close_control_tokens(JsonVocab& vocab) const;
  void read_added(std::vector<AddedToken> added);
  void read_model(const TokenizerFile& file, const JsonVocab& vocab);
  /// Appends the ids of `text`, which is valid UTF-8; special tokens that overlap `plain` stay
  /// text. `first`: no text comes before it.
  void encode_sections(std::string_view text, bool first, bool parse_special,
                       std::span<const ByteRange> plain, std::vector<int32_t>& out) const;
  /// Appends the ids of text between added tokens. `first`: it begins where the user's text begins.
  void encode_section(std::string_view text, bool first, bool parse_special,
                      std::span<const ByteRange> plain, std::vector<int32_t>& out) const;
  /// Appends the ids of normalized text between added tokens.
  void encode_text(std::string_view text, bool first, std::vector<int32_t>& out) const;

  std::unique_ptr<Normalizer> normalizer_;
  PieceCutter cutter_;
  PieceDecoder decoder_;
  std::vector<bool> is_added_;   // [n_vocab]
  AddedTokens as_written_;       // searched for in the text as it is
  AddedTokens normalized_;       // searched for in the normalized text
  std::optional<BpeModel> bpe_;  // this model or the next
  std::optional<UnigramModel> unigram_;
  std::vector<int32_t> before_, after_;  // ids around the text, if add_special
};

}  // namespace snapkv
