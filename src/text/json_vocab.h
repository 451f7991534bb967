// SPDX-License-Identifier: MIT
// The vocabulary of a tokenizer.json: the model's tokens and the added ones, by id. JsonTokenizer
// reads it.
#pragma once

#include <vector>

#include "text/added_tokens.h"
#include "text/json_file.h"
#include "text/vocab.h"

namespace snapkv {

struct JsonVocab {
  Vocab vocab;                    // without what find_ends() fills
  std::vector<double> scores;     // [n_vocab], of a Unigram model
  std::vector<bool> text_may_be;  // [n_vocab]: a text becomes this token through the model
  std::vector<AddedToken> added;
  double lowest_score = 0;  // of a Unigram model
};

/// Throws Error{kBadModel} naming the field, expected and found.
JsonVocab read_json_vocab(const TokenizerFile& file);

}  // namespace snapkv
