// SPDX-License-Identifier: MIT
#include "engine/memory_plan.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/error.h"
#include "cache/kv_layer.h"
#include "engine/hidden_states.h"
#include "engine/model_impl.h"
#include "engine/query_ring.h"
#include "model/architecture.h"
#include "policy/policy.h"

namespace snapkv {
namespace {

/// "MemAvailable:   12345 kB" of /proc/meminfo.
size_t system_available() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  while (in >> word) {
    if (word == "MemAvailable:") {
      size_t kib = 0;
      in >> kib;
      return kib * 1024;
    }
  }
  return std::numeric_limits<size_t>::max();
}

/// What a version 2 control group leaves; no limit when there is none.
size_t cgroup_available() {
  std::ifstream limit_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
  size_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return std::numeric_limits<size_t>::max();
  return limit > used ? limit - used : 0;
}

struct PackedMinTokens {
  DType weights;
  int64_t bf16, f32;  // by compute type
};
constexpr PackedMinTokens kPackedMinTokens[] = {
    {DType::q4_0, 192, 64}, {DType::q4_k, 96, 24},  {DType::q5_k, 72, 24}, {DType::q6_k, 112, 24},
    {DType::q8_0, 80, 80},  {DType::bf16, 80, 256}, {DType::f16, 40, 192}, {DType::f32, 32, 96}};

/// Not measured: project.cu multiplies 16 rows at a time, and reads all weights for each.
constexpr int64_t kPackedMinTokensCuda = 33;

}  // namespace

int64_t packed_min_tokens(const ModelInfo& info, DType compute, Device device) {
  if (device == Device::cuda) return kPackedMinTokensCuda;
  for (const PackedMinTokens& row : kPackedMinTokens) {  // the model's most frequent type
    if (info.file_type == name(row.weights)) return compute == DType::bf16 ? row.bf16 : row.f32;
  }
  return 80;
}

void validate_kv_type(DType kv_type, int64_t head_dim) {
  if (kv_type != DType::f32 && kv_type != DType::f16 && kv_type != DType::bf16 &&
      kv_type != DType::q8_0) {
    fail(ErrorCode::kUsage, "kv_type must be f32, f16, bf16 or q8_0, it is {}", name(kv_type));
  }
  if (head_dim % block_size(kv_type) != 0) {
    fail(ErrorCode::kUsage,
         "kv_type {} needs a head_dim that is a multiple of {}, the model's is {}", name(kv_type),
         block_size(kv_type), head_dim);
  }
}

size_t available_memory() { return std::min(system_available(), cgroup_available()); }

MemoryPlan plan_memory(const ModelInfo& info, const SessionOptions& given, int64_t n_tokens,
                       DType compute, Device device) {
  const SessionOptions options = resolve_options(given, info);
  ModelConfig c;
  copy_sizes(info, c);
  const auto n_head_kv = static_cast<size_t>(c.n_head_kv);
  const auto policy = Policy::make(options.kv);
  const int64_t n_q = c.n_head * c.head_dim, n_kv = c.n_head_kv * c.head_dim;
  const bool packed = n_tokens >= packed_min_tokens(info, compute, device);
  const DType dtype = packed ? compute : DType::f32;
  int64_t kept = 0;  // rows per KV head, all layers
  bool keeps_all = true;
  for (int il = 0; il < c.n_layer; ++il) {
    const int64_t budget = policy->layer_budget(n_tokens, il, static_cast<int>(c.n_layer));
    kept += std::min(n_tokens, budget) + options.decode_reserve;
    keeps_all = keeps_all && budget >= n_tokens;
  }
  const DType scratch = scratch_dtype(options.kv_type);
  const size_t row = KvLayer::row_bytes(options.kv_type, c.head_dim) * n_head_kv;
  const size_t scratch_row = KvLayer::row_bytes(scratch, c.head_dim) * n_head_kv;
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };

  MemoryPlan plan;
  plan.weights = info.weight_bytes;
  if (packed) {
    const int64_t layer = 2 * c.n_embd * n_q + 2 * c.n_embd * n_kv + 3 * c.n_embd * c.n_ff;
    plan.packed_weights = static_cast<size_t>(row_bytes(compute, layer));
  }
  plan.hidden_states = HiddenStates::bytes(
      n_tokens, c.n_embd, options.chunk,
      options.spill_dir.empty() ? HiddenStates::Place::memory : HiddenStates::Place::file);
  plan.activations = ActivationBuffer::bytes(c, std::min(n_tokens, options.chunk), dtype);
  if (options.kv_decode_limit > 0) plan.queries = QueryRing::bytes(c, policy->window_size());
  plan.budget = policy->budget_for(n_tokens);
  plan.kv_full = row * size(n_tokens) * size(c.n_layer);
  plan.kv_kept = row * size(kept);
  // when everything is kept a scratch layer of its type becomes the cache: no layer beside it
  const bool taken = keeps_all && scratch == options.kv_type;
  plan.kv_scratch = taken ? 0 : scratch_row * size(n_tokens);
  return plan;
}

}  // namespace snapkv
