// SPDX-License-Identifier: MIT
// What the lists of family_models() share, and those of them that have files of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/family_models.h"

namespace snapkv::test {

/// The sizes of nearly all models here. If a family can have a separate output matrix or not, one
/// of its models has it.
RandomModelShape shape_of(RandomFamily family, int64_t n_layer = 3, int64_t head_dim = 16);
FamilyModel model_of(std::string name, RandomModelShape shape);

/// GLM 4, Seed-OSS, EXAONE, ERNIE 4.5, Hunyuan, MiniCPM, Baichuan and Qwen VL, dense.
std::vector<FamilyModel> more_dense_models();
/// Families of before 2024 that people still have.
std::vector<FamilyModel> older_models();
/// Gemma 3n.
std::vector<FamilyModel> with_streams();
/// Mixers of Mamba in most layers, and models without attention.
std::vector<FamilyModel> with_mamba();
/// Mixers of Mamba-2 in most layers.
std::vector<FamilyModel> with_mamba2();
/// RWKV.
std::vector<FamilyModel> with_rwkv();
/// The rows of src/model/families/mixtures.h, and Qwen 3 VL with experts.
std::vector<FamilyModel> more_mixtures();

}  // namespace snapkv::test
