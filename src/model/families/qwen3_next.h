// SPDX-License-Identifier: MIT
// Qwen3-Next and Qwen 3.5: in three of four layers linear attention by the gated delta rule, in the
// others attention whose output has a gate.
#pragma once

#include <array>
#include <string_view>

namespace snapkv {

class MetadataReader;
struct ModelSpec;

/// Family::make_layers of `qwen3next`: heads of values are grouped by the head of keys they share.
void make_qwen3next_layers(const MetadataReader& reader, ModelSpec& spec);
/// Of `qwen35` and `qwen35moe`: heads of keys take turns.
void make_qwen35_layers(const MetadataReader& reader, ModelSpec& spec);

/// Family::own_keys of both.
inline constexpr std::array<std::string_view, 2> kQwen3NextKeys = {"ssm.", "nextn_predict_layers"};

}  // namespace snapkv
