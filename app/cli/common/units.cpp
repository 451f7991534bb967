// SPDX-License-Identifier: MIT
#include "cli/common/units.h"

#include <fmt/core.h>

#include <algorithm>

#include "snapkv/policy.h"

namespace snapkv::cli {

std::string format_bytes(size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  const double ms = seconds * 1000;
  if (ms < 9.95) return fmt::format("{:.2f} ms", ms);
  if (ms < 999.5) return fmt::format("{:.0f} ms", ms);
  if (seconds < 99.95) return fmt::format("{:.2f} s", seconds);
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string format_wait(double seconds) {
  const auto whole = static_cast<int64_t>(std::max(1.0, seconds + 0.5));
  return whole < 100 ? fmt::format("{} s", whole) : format_seconds(static_cast<double>(whole));
}

std::string format_rate(int64_t n_tokens, double seconds) {
  if (n_tokens <= 0 || seconds <= 0) return "-";
  const double rate = static_cast<double>(n_tokens) / seconds;
  const int decimals = rate < 10 ? 2 : rate < 100 ? 1 : 0;
  return fmt::format("{:.{}f} tok/s", rate, decimals);
}

std::string format_count(int64_t n) {
  const auto value = static_cast<double>(n);
  if (n >= 1'000'000'000) return fmt::format("{:.2f} G", value / 1e9);
  if (n >= 1'000'000) return fmt::format("{:.2f} M", value / 1e6);
  return fmt::format("{}", n);
}

std::string plural(int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string format_shape(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  return text + "]";
}

std::string describe_policy(const PolicyConfig& policy) {
  if (!policy_info(policy.name).has_budget) return "everything kept";
  const std::string rows = policy.ratio > 0 ? fmt::format("{:g}% of the rows", policy.ratio * 100)
                                            : plural(policy.budget, "row");
  return fmt::format("{}{} kept, {}", keeps_by_attention(policy) ? "up to " : "", rows,
                     describe_params(policy));
}

std::string describe_memory_budget(const SessionOptions& options) {
  return fmt::format(
      "--kv-memory {}: a budget of {} per layer and KV head, and {} for generated tokens",
      format_bytes(options.kv_memory), plural(options.kv.budget, "row"),
      plural(options.decode_reserve, "row"));
}

std::string format_range(const std::vector<int64_t>& values) {
  if (values.empty()) return "0";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return *low == *high ? fmt::format("{}", *low) : fmt::format("{}-{}", *low, *high);
}

}  // namespace snapkv::cli
