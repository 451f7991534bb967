// SPDX-License-Identifier: MIT
// Checks the options of a session and turns kv_memory into a budget.
#include "engine/session_options.h"

#include <algorithm>

#include "base/error.h"
#include "base/parse_number.h"
#include "cache/layer_state.h"
#include "engine/core/kv_types.h"
#include "engine/core/option_range.h"
#include "policy/params.h"
#include "snapkv/options.h"

namespace snapkv {
namespace {

/// SessionOptions::chunk where it is 0.
int64_t usual_chunk(const ModelInfo& info) {
  constexpr int64_t kLeast = 512, kMost = 2048, kRowsOfExpert = 64;
  if (info.n_expert == 0) return kLeast;
  const int64_t wanted = kRowsOfExpert * info.n_expert / info.n_expert_used;
  return std::clamp((wanted + kLeast - 1) / kLeast * kLeast, kLeast, kMost);
}

/// Bytes that no budget changes: those of layers among whose rows no policy chooses, decode_reserve
/// included, and of states without rows.
size_t bytes_without_policy(const SessionOptions& options, const ModelInfo& info) {
  const int64_t n_ctx = options.n_ctx > 0 ? options.n_ctx : info.n_ctx_train;
  size_t bytes = 0;
  for (int64_t il = 0; il < info.n_layer; ++il) {
    const LayerInfo& layer = info.layers[il];
    const int64_t n_rows =
        layer.compressed ? 0 : std::min(layer.window, n_ctx) + options.decode_reserve;
    bytes += kv_layer_bytes(info, options.kv_type, il, n_rows);
  }
  return bytes;
}

/// Bytes of one row of every layer among whose rows a policy chooses.
size_t row_bytes_with_policy(const SessionOptions& options, const ModelInfo& info) {
  size_t bytes = 0;
  for (int64_t il = 0; il < info.n_layer; ++il) {
    if (!info.layers[il].compressed) continue;
    bytes += kv_layer_bytes(info, options.kv_type, il, 1);
    bytes -= kv_layer_bytes(info, options.kv_type, il, 0);
  }
  return bytes;
}

/// The largest budget whose rows fit into kv_memory.
int64_t budget_in_memory(const SessionOptions& options, const ModelInfo& info) {
  if (options.kv.ratio > 0.0) {
    fail(ErrorCode::kUsage, "{} and {} exclude each other; they are {} and {}",
         OptionName("kv_memory"), param_name("ratio"), options.kv_memory, options.kv.ratio);
  }
  PolicyConfig config = options.kv;
  config.budget = kMostRows;  // the value is about to be replaced
  const auto policy = Policy::make(config);
  if (!policy->info().has_budget) return options.kv.budget;
  const int64_t n_layer = info.n_compressed();
  if (n_layer == 0) return options.kv.budget;  // no layer has a budget
  require_range("n_head_kv", info.n_head_kv, 1, kMostRows);
  const size_t row = row_bytes_with_policy(options, info);
  const size_t windows = bytes_without_policy(options, info);
  const size_t left = options.kv_memory - std::min(options.kv_memory, windows);
  const int64_t budget = static_cast<int64_t>(left / row) - options.decode_reserve;
  const int64_t least = policy->least_budget();
  if (budget < least) {
    const auto text_of = [](size_t bytes) {
      return fmt::format("{} B ({} KiB)", bytes, (bytes + 1023) / 1024);
    };
    fail(ErrorCode::kUsage,
         "{} is {}; the least that works is {}: {} rows (window, sinks and 1) and a {} of {}, in "
         "{} layers of {} KV heads{}",
         OptionName("kv_memory"), size_text(static_cast<int64_t>(options.kv_memory)),
         text_of(windows + (least + options.decode_reserve) * row), least,
         OptionName("decode_reserve"), options.decode_reserve, n_layer, info.n_head_kv,
         windows > 0 ? fmt::format(", and {} that no budget changes", text_of(windows)) : "");
  }
  return std::min(budget, kMostRows);
}

void check_decode_limit(const SessionOptions& options, const Policy& policy) {
  const int64_t limit = options.kv_decode_limit;
  if (limit == 0 || !policy.info().has_budget) return;
  if (policy.info().observes) {
    fail(ErrorCode::kUsage,
         "{}: policy \"{}\" chooses by all queries of the text, and decoding keeps only those of "
         "the "
         "last {} tokens",
         OptionName("kv_decode_limit"), options.kv.name, param_name("window_size"));
  }
  if (options.kv.ratio > 0.0) {
    fail(ErrorCode::kUsage,
         "{} needs a budget of rows; with {}, which is {}, it would grow with the text",
         OptionName("kv_decode_limit"), param_name("ratio"), options.kv.ratio);
  }
  if (limit <= options.kv.budget) {
    fail(ErrorCode::kUsage, "{} is {}; it must be greater than {}, which is {}",
         OptionName("kv_decode_limit"), limit, param_name("budget"), options.kv.budget);
  }
}

}  // namespace

CheckedOptions check_session_options(const SessionOptions& options, const ModelInfo& info) {
  CheckedOptions checked{options, nullptr};
  session_option_table().check(options);
  validate_kv_type(options.kv_type, info);
  if (options.chunk == 0) checked.options.chunk = usual_chunk(info);
  if (options.kv_memory > 0) checked.options.kv.budget = budget_in_memory(options, info);
  checked.policy = Policy::make(checked.options.kv);
  check_decode_limit(checked.options, *checked.policy);
  if (checked.policy->info().shares_layers && options.kv_refresh) {
    fail(ErrorCode::kUsage, "{}: policy \"{}\" chooses rows once, of the first prompt",
         OptionName("kv_refresh"), options.kv.name);
  }
  if (checked.policy->info().shares_layers && options.draft == Draft::self) {
    fail(ErrorCode::kUsage,
         "{} self chooses rows anew in each turn, and policy \"{}\" once, of the first prompt",
         OptionName("draft"), options.kv.name);
  }
  if (options.draft == Draft::self && !checked.policy->info().has_budget) {
    fail(ErrorCode::kUsage,
         "{} self guesses with the rows that a policy keeps, and \"{}\" keeps all of them",
         OptionName("draft"), options.kv.name);
  }
  if (options.draft == Draft::model && info.draft == nullptr) {
    fail(ErrorCode::kUsage, "{} model needs a model that guesses: {}", OptionName("draft"),
         OptionName("draft_model"));
  }
  if (options.draft_min > options.draft_max) {
    fail(ErrorCode::kUsage, "{} is {}; it must be at most {}, which is {}", OptionName("draft_min"),
         options.draft_min, OptionName("draft_max"), options.draft_max);
  }
  return checked;
}

SessionOptions resolve_options(const SessionOptions& options, const ModelInfo& info) {
  return check_session_options(options, info).options;
}

}  // namespace snapkv
