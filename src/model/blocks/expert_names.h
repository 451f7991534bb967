// SPDX-License-Identifier: MIT
// The names of experts' tensors. Files have one tensor for each matrix of all experts of a layer,
// [n_expert, n_out, n_in]: blk.0.ffn_gate_exps.weight. Files of before April 2024, and Hugging Face
// folders, have one for each expert: blk.0.ffn_gate.3.weight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snapkv {

/// The part of a merged tensor that is one expert's.
struct ExpertPart {
  std::string merged;  // blk.0.ffn_gate_exps.weight
  int64_t expert = 0;
};

/// What blk.0.ffn_gate.3.weight is part of; nothing for other names. Adjugates of folders are
/// blk.0.ffn_gate_ch.3.weight, and all of a layer's blk.0.ffn_gate_chexps.weight.
std::optional<ExpertPart> parse_expert_part(std::string_view name);

/// The same for the matrices of Gemma 3n's streams: altup_proj.1.weight is the second part of
/// altup_proj.weight.
std::optional<ExpertPart> parse_stream_part(std::string_view name);

/// Whether a tensor is the matrix that chooses a layer's experts, or says how much the shared one
/// counts.
bool is_router(std::string_view name);

/// Whether a tensor is a matrix of one expert, or of all experts of a layer.
bool is_of_experts(std::string_view name);

}  // namespace snapkv
