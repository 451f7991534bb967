// SPDX-License-Identifier: MIT
// Small models with random weights, one or more for each family that src/model/families.cpp knows,
// for comparison with a real llama.cpp (tools/llama_oracle.py). Every feature of a family is in its
// model and large enough to matter: attention is far from uniform, caps bend scores, windows are
// shorter than the prompts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/random_model.h"

namespace snapkv::test {

struct FamilyModel {
  std::string name;  // "gemma3"; more than one of a family: "llama-yarn"
  RandomModelShape shape;
  RandomModelOptions options;
};

/// All of them.
const std::vector<FamilyModel>& family_models();
/// Tokens of their vocabularies: 3 special ones, the bytes, then words.
constexpr int64_t kFamilyVocab = 512;

/// Writes the model of this name, without the tensor `omitted` if one is named.
void write_family_model(const std::string& name, const std::string& path,
                        const std::string& omitted = "");

}  // namespace snapkv::test
