// SPDX-License-Identifier: MIT
// Small models with random weights, at least one for each family in src/model/families.cpp, to be
// compared with a real llama.cpp (tools/llama_oracle.py). A model has every feature of its family,
// large enough to matter: attention is far from uniform, caps bend scores, windows are shorter than
// the prompts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/random_model.h"

namespace snapkv::test {

struct FamilyModel {
  std::string name;  // "gemma3"; for another model of a family: "llama-yarn"
  RandomModelShape shape;
  RandomModelOptions options;
};

/// Returns all of them.
const std::vector<FamilyModel>& family_models();
/// Size of their vocabularies: 3 special tokens, the bytes, then words.
constexpr int64_t kFamilyVocab = 512;

/// Writes the model with this name, without the tensor `omitted` if one is named.
void write_family_model(const std::string& name, const std::string& path,
                        const std::string& omitted = "");

}  // namespace snapkv::test
