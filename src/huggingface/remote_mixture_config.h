// SPDX-License-Identifier: MIT
// What config.json says of mixtures of experts that transformers has no class for: their folders
// bring their own Python code.
#pragma once

#include "huggingface/config.h"
#include "huggingface/json_file.h"
#include "huggingface/keys.h"

namespace snapkv::huggingface {

/// Ling 2 and Ring 2.
void read_bailing2(const JsonFields& c, Config& config);
/// Ling 1.
void read_bailing1(const JsonFields& c, Config& config);
/// DeepSeek MoE 16B.
void read_deepseek1(const JsonFields& c, Config& config);
void read_deepseek_ocr_sizes(const JsonFields& c, Config& config);
void read_deepseek_ocr(const JsonFields& c, Config& config);
void read_grove(const JsonFields& c, Config& config);
void read_smallthinker_sizes(const JsonFields& c, Config& config);
void read_smallthinker(const JsonFields& c, Config& config);
void read_arctic(const JsonFields& c, Config& config);

/// Numbers of shared experts and dense layers, which files of Ling and DeepSeek always have.
void add_counted_experts_keys(const Config& config, Keys& keys);
void add_grove_keys(const Config& config, Keys& keys);
void add_arctic_keys(const Config& config, Keys& keys);

}  // namespace snapkv::huggingface
