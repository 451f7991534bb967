// SPDX-License-Identifier: MIT
#include "model/blocks/expert_names.h"

#include <charconv>
#include <utility>

namespace snapkv {

namespace {

constexpr std::string_view kWeight = ".weight";

/// "altup_proj.1.weight" as altup_proj and 1.
std::optional<std::pair<std::string_view, int64_t>> parse_number(std::string_view name) {
  if (!name.ends_with(kWeight)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - kWeight.size());
  const size_t dot = stem.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view number = stem.substr(dot + 1);
  int64_t n = 0;
  const char* const end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, n);
  if (error != std::errc() || at != end) return std::nullopt;
  return std::pair{stem.substr(0, dot), n};
}

}  // namespace

std::optional<ExpertPart> parse_expert_part(std::string_view name) {
  const auto part = parse_number(name);
  if (!part || !name.starts_with("blk.")) return std::nullopt;
  const auto& [matrix, number] = *part;
  const bool adjugate = matrix.ends_with("_ch");
  const std::string_view of_experts = matrix.substr(0, matrix.size() - (adjugate ? 3 : 0));
  if (!of_experts.ends_with(".ffn_gate") && !of_experts.ends_with(".ffn_up") &&
      !of_experts.ends_with(".ffn_down")) {
    return std::nullopt;
  }
  const std::string_view ending = adjugate ? "exps" : "_exps";
  return ExpertPart{std::string(matrix) + std::string(ending) + std::string(kWeight), number};
}

std::optional<ExpertPart> parse_stream_part(std::string_view name) {
  const auto part = parse_number(name);
  if (!part || (part->first != "altup_proj" && part->first != "altup_unembd_proj")) {
    return std::nullopt;
  }
  return ExpertPart{std::string(part->first) + std::string(kWeight), part->second};
}

bool is_router(std::string_view name) {
  return name.ends_with(".ffn_gate_inp.weight") || name.ends_with(".ffn_gate_inp_shexp.weight");
}

bool is_of_experts(std::string_view name) {
  return name.ends_with("_exps.weight") || name.ends_with("_chexps.weight") ||
         parse_expert_part(name).has_value();
}

}  // namespace snapkv
