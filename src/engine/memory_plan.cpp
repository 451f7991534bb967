// SPDX-License-Identifier: MIT
#include "engine/memory_plan.h"

#include <algorithm>
#include <limits>

#include "backend/cpu_scratch.h"
#include "base/available_memory.h"
#include "base/error.h"
#include "cache/layer_state.h"
#include "engine/hidden_states.h"
#include "engine/layer_budget.h"
#include "engine/option_range.h"
#include "engine/query_ring.h"
#include "model/architecture.h"
#include "model/packing.h"
#include "policy/policy.h"

namespace snapkv {
namespace {

/// Bytes of the window's queries and of what the policy allocates to choose a layer's rows.
size_t score_bytes(const ModelConfig& c, const Policy& policy, int64_t n_tokens, int64_t chunk) {
  const SelectionShape shape{.n_rows = n_tokens,
                             .n_kept = policy.budget_for(n_tokens),
                             .n_chunk = std::min(n_tokens, chunk),
                             .n_embd = c.n_embd,
                             .n_head = c.n_head,
                             .n_head_kv = c.n_head_kv,
                             .head_dim = c.head_dim};
  const int64_t n_window = std::min<int64_t>(n_tokens, policy.window_size());
  const bool selects = policy.info().has_budget && shape.n_kept < n_tokens;
  return n_window * c.n_q() * sizeof(float) + (selects ? policy.selection_bytes(shape) : 0);
}

/// Resident bytes of the rows that are kept for later turns.
size_t history_bytes(const ModelSpec& spec, const SessionOptions& options, int64_t n_tokens) {
  size_t all = 0, largest = 0;
  for (const LayerSpec& layer : spec.layers) {
    if (!layer.compressed) continue;
    const size_t bytes = layer.state.bytes(options.kv_type, n_tokens + kHistoryGrowth);
    all += bytes;
    largest = std::max(largest, bytes);
  }
  // if spilled, two layers are in memory: the current one and the one that is read ahead
  return options.spill_dir.empty() ? all : 2 * largest;
}

ByteProducts byte_products(const ModelInfo& info) {
  const auto known = info.spec->byte_products;
  return known.has_value() ? *known : cpu_byte_products();
}

KernelShape kernel_shape(const ModelSpec& spec, const Policy& policy, const SessionOptions& options,
                         int64_t n_tokens, bool packed, DType compute, ByteProducts bytes,
                         int n_threads) {
  const ModelConfig& c = spec.config;
  const PolicyInfo& info = policy.info();
  return {.n_tokens = n_tokens,
          .n_chunk = std::min(n_tokens, options.chunk),
          .n_embd = c.n_embd,
          .n_ff = c.n_ff,
          .n_ff_rows = spec.ffn_rows(std::min(n_tokens, options.chunk)),
          .n_expert = c.n_expert,
          .n_head = c.n_head,
          .n_head_kv = c.n_head_kv,
          .head_dim = c.head_dim,
          .kv_type = scratch_dtype(options.kv_type),
          .compute = compute,
          .packed = packed,
          .byte_products = bytes,
          .n_threads = n_threads,
          .selects = info.has_budget && policy.budget_for(n_tokens) < n_tokens,
          .observes = info.observes,
          .shares_budget = info.shares_budget};
}

/// The most values of a layer's matrices that are packed.
int64_t packed_layer_values(const ModelSpec& spec, const KernelShape& kernels) {
  const int64_t most = spec.layer_matrix_values();
  int64_t packed = 0;
  for (const auto& [type, values] : spec.layer_values_of_type) {
    if (packed_products_in_bytes(kernels.byte_products, type)) continue;
    packed += std::min(values, most - packed);
  }
  return packed;
}

/// What packed weights take. Experts' matrices are packed by each product.
size_t packed_bytes(const ModelSpec& spec, const KernelShape& kernels, bool at_use, Device device) {
  const auto is_packed = [&](DType type) {
    return device == Device::cuda || !packed_products_in_bytes(kernels.byte_products, type);
  };
  const bool packs_experts =
      std::any_of(spec.expert_types.begin(), spec.expert_types.end(), is_packed);
  const int64_t ahead =
      device == Device::cuda ? spec.layer_matrix_values() : packed_layer_values(spec, kernels);
  if (device == Device::cuda) {
    const int64_t of_expert = packs_experts ? spec.config.n_embd * spec.config.n_ff : 0;
    return row_bytes(kernels.compute, ahead + of_expert);
  }
  size_t bytes = at_use ? 0 : row_bytes(kernels.compute, ahead);
  if (packs_experts || (at_use && ahead > 0)) bytes += cpu_pack_workspace_bytes(kernels);
  return bytes;
}

}  // namespace

size_t logits_bytes(const ModelSpec& spec, int64_t n_logits) {
  const int64_t most = std::min(kOutputRows, n_logits);
  const int64_t rows = std::max<int64_t>(n_logits + most, 3);  // a decode step needs three
  return rows * spec.config.n_vocab * sizeof(float) +
         ActivationBuffer::bytes(spec, most, DType::f32);
}

void validate_kv_type(DType kv_type, int64_t head_dim) {
  require_range("kv_type", static_cast<int>(kv_type), 0, std::ssize(kDTypes) - 1);
  if (kv_type != DType::f32 && kv_type != DType::f16 && kv_type != DType::bf16 &&
      kv_type != DType::q8_0) {
    fail(ErrorCode::kUsage, "{} is {}; it must be f32, f16, bf16 or q8_0", OptionName("kv_type"),
         name(kv_type));
  }
  if (head_dim % block_size(kv_type) != 0) {
    fail(ErrorCode::kUsage,
         "{} {} needs a head_dim that is a multiple of {}, the model's is {}", OptionName("kv_type"),
         name(kv_type),
         block_size(kv_type), head_dim);
  }
}

bool packs_weights(const ModelInfo& info, int64_t n_tokens, DType compute, Device device) {
  return n_tokens >= packed_min_tokens(info.file_type, compute, device, byte_products(info));
}

MemoryPlan plan_memory(const ModelInfo& info, const SessionOptions& given, int64_t n_tokens,
                       DType compute, Device device, int n_threads) {
  if (info.spec == nullptr) {
    fail(ErrorCode::kUsage, "plan_memory: info must come from Model::info() or describe_model()");
  }
  require_range("n_tokens", n_tokens, 1, std::numeric_limits<int32_t>::max());
  const SessionOptions options = resolve_options(given, info);
  const ModelSpec& spec = *info.spec;
  const ModelConfig& c = spec.config;
  const auto policy = Policy::make(options.kv);
  const bool packed = packs_weights(info, n_tokens, compute, device);
  const DType scratch = scratch_dtype(options.kv_type);
  MemoryPlan plan;
  bool keeps_all = true;
  for (int il = 0; il < c.n_layer; ++il) {
    const LayerSpec& layer = spec.layers[il];
    const int64_t rows = std::min(n_tokens, layer_budget(spec, *policy, n_tokens, il));
    plan.kv_full += layer.state.bytes(options.kv_type, layer.visible_rows(n_tokens));
    plan.kv_kept += layer.state.bytes(options.kv_type, rows + options.decode_reserve);
    plan.kv_scratch = std::max(plan.kv_scratch, layer.state.bytes(scratch, n_tokens));
    keeps_all = keeps_all && rows == n_tokens;
  }
  // if everything is kept, a scratch layer of the cache's type becomes the cache: no second layer
  if (keeps_all && scratch == options.kv_type) plan.kv_scratch = 0;
  plan.weights = info.weight_bytes;
  KernelShape kernels = kernel_shape(spec, *policy, options, n_tokens, packed, compute,
                                     byte_products(info), n_threads);
  if (packed) {
    const bool at_use = packs_at_use(n_tokens, options.chunk, device);
    plan.packed_weights = packed_bytes(spec, kernels, at_use, device);
  }
  if (plan.packed_weights == 0) kernels.n_expert = 0;  // no product of the library's
  plan.hidden_states = HiddenStates::bytes(
      n_tokens, c.n_embd, options.chunk,
      options.spill_dir.empty() ? HiddenStates::Place::memory : HiddenStates::Place::file);
  plan.activations = ActivationBuffer::bytes(spec, std::min(n_tokens, options.chunk),
                                             packed ? compute : DType::f32);
  if (options.kv_refresh && policy->info().has_budget) {
    plan.kv_history = history_bytes(spec, options, n_tokens);
  }
  if (options.kv_decode_limit > 0) plan.queries = QueryRing::bytes(c, policy->window_size());
  plan.logits = logits_bytes(spec, 1);
  plan.scores = score_bytes(c, *policy, n_tokens, options.chunk);
  if (device != Device::cuda) {
    plan.kernels =
        cpu_kernel_bytes(kernels, policy->window_size()) + n_tokens * sizeof(int32_t);  // positions
  }
  plan.budget = policy->budget_for(n_tokens);
  return plan;
}

int64_t longest_prompt(const ModelInfo& info, const SessionOptions& options, size_t bytes,
                       DType compute, Device device) {
  const auto fits = [&](int64_t n) {
    const MemoryPlan plan = plan_memory(info, options, n, compute, device);
    return plan.total() - plan.weights <= bytes;
  };
  constexpr int64_t kMost = int64_t{1} << 30;  // positions are 32 bits wide
  if (!fits(1)) return 0;
  int64_t low = 1, high = 2;  // low fits
  while (high < kMost && fits(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

size_t free_memory() { return available_memory(); }

size_t kv_row_bytes(const ModelInfo& info, DType kv_type) {
  validate_kv_type(kv_type, info.head_dim);
  return StateShape{.n_head = info.n_head_kv, .head_dim = info.head_dim}.bytes(kv_type, 1);
}

}  // namespace snapkv
