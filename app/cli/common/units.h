// SPDX-License-Identifier: MIT
// Numbers in a form that people can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "snapkv/engine.h"

namespace snapkv::cli {

/// "512 B", "3.7 MiB", "12.0 GiB"
std::string format_bytes(size_t bytes);
/// "0.31 ms", "612 ms", "3.21 s", "2 min 05 s"
std::string format_seconds(double seconds);
/// A time to come, which nobody knows to the hundredth: "97 s", "2 min 05 s"; at least "1 s"
std::string format_wait(double seconds);
/// "6535 tok/s", "4.37 tok/s"; "-" when nothing was timed
std::string format_rate(int64_t n_tokens, double seconds);
/// 1234567 -> "1.23 M"
std::string format_count(int64_t n);
/// "1 token", "2 tokens"
std::string plural(int64_t n, std::string_view noun);
/// "[1, 3, 128, 32]"
std::string format_shape(const std::vector<int64_t>& shape);
/// "128 rows kept, window 16, kernel 15, max pooling", or "everything kept"
std::string describe_policy(const PolicyConfig& policy);
/// "--kv-memory 256.0 MiB: a budget of 1792 rows per layer and KV head, and 256 rows for generated
/// tokens", for options from resolve_options()
std::string describe_memory_budget(const SessionOptions& options);
/// "128", or "100-128" where heads keep different counts
std::string format_range(const std::vector<int64_t>& values);

}  // namespace snapkv::cli
