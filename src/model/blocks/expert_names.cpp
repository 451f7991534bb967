// SPDX-License-Identifier: MIT
#include "model/blocks/expert_names.h"

#include <charconv>

namespace snapkv {

std::optional<ExpertPart> parse_expert_part(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  if (!name.starts_with("blk.") || !name.ends_with(kWeight)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - kWeight.size());
  const size_t dot = stem.rfind('.');
  const std::string_view matrix = stem.substr(0, dot), number = stem.substr(dot + 1);
  if (!matrix.ends_with(".ffn_gate") && !matrix.ends_with(".ffn_up") &&
      !matrix.ends_with(".ffn_down")) {
    return std::nullopt;
  }
  ExpertPart part;
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, part.expert);
  if (error != std::errc() || at != end) return std::nullopt;
  part.merged = std::string(matrix) + "_exps" + std::string(kWeight);
  return part;
}

bool is_router(std::string_view name) {
  return name.ends_with(".ffn_gate_inp.weight") || name.ends_with(".ffn_gate_inp_shexp.weight");
}

bool is_of_experts(std::string_view name) {
  return name.ends_with("_exps.weight") || parse_expert_part(name).has_value();
}

}  // namespace snapkv
