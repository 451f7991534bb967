// SPDX-License-Identifier: MIT
// The vocabulary of a tokenizer.json: the model's tokens and the added tokens, by id.
#pragma once

#include <vector>

#include "text/added_tokens.h"
#include "text/json_file.h"
#include "text/vocab.h"

namespace snapkv {

struct JsonVocab {
  Vocab vocab;                    // without the fields that find_ends() fills
  std::vector<double> scores;     // [n_vocab], only for a Unigram model
  std::vector<bool> text_may_be;  // [n_vocab]: whether the model may turn text into this token
  std::vector<AddedToken> added;
  double lowest_score = 0;  // only for a Unigram model
};

/// Throws Error{kBadModel} naming the field, what was expected and what was found.
JsonVocab read_json_vocab(const TokenizerFile& file);

}  // namespace snapkv
