// SPDX-License-Identifier: MIT
// compress.h: checks the caller's views, runs the policy on them in place, copies kept rows.
#include "snapkv/compress.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backend/backend.h"
#include "backend/ops.h"
#include "backend/registry.h"
#include "base/error.h"
#include "base/tensor.h"
#include "engine/core/option_range.h"
#include "policy/policy.h"

namespace snapkv {
namespace {

constexpr int64_t kMostHeadDim = 1 << 16;

void check_shape(const LayerView& layer) {
  require_range("n_tokens", layer.n_tokens, 1, kMostTokens);
  require_range("n_head", layer.n_head, 1, kMostHeads);
  require_range("n_head_kv", layer.n_head_kv, 1, kMostHeads);
  require_range("head_dim", layer.head_dim, 1, kMostHeadDim);
  if (layer.n_head % layer.n_head_kv != 0) {
    fail(ErrorCode::kUsage, "n_head is {}; it must be a multiple of n_head_kv, which is {}",
         layer.n_head, layer.n_head_kv);
  }
}

// Number of elements that n vectors `stride` elements apart span.
int64_t span_of(const char* field, const char* name, int64_t stride, int64_t n, int64_t head_dim) {
  const int64_t most = (int64_t{1} << 56) / n;  // more than any memory has, however it is addressed
  if (stride < head_dim || stride > most) {
    fail(ErrorCode::kUsage, "{}.{} is {} elements; it must be from head_dim, which is {}, to {}",
         field, name, stride, head_dim, most);
  }
  return (n - 1) * stride + head_dim;
}

// Checks a view of n_heads x n_rows vectors. `field` is its name in messages.
template <typename View>
void check_view(const char* field, const View& view, int64_t n_heads, int64_t n_rows,
                int64_t head_dim) {
  require_range(fmt::format("{}.dtype", field).c_str(), static_cast<int>(view.dtype), 0,
                std::ssize(kDTypes) - 1);
  if (view.dtype != DType::f32 && view.dtype != DType::f16 && view.dtype != DType::bf16) {
    fail(ErrorCode::kUsage, "{}.dtype is {}; it must be f32, f16 or bf16", field, name(view.dtype));
  }
  if (view.data == nullptr) fail(ErrorCode::kUsage, "{}.data is null", field);
  const int64_t element = block_bytes(view.dtype);
  if (reinterpret_cast<uintptr_t>(view.data) % static_cast<uintptr_t>(element) != 0) {
    fail(ErrorCode::kUsage, "{}.data is not aligned to {} bytes, the size of {}", field, element,
         name(view.dtype));
  }
  // A stride that is not used may have any value.
  const int64_t head_length =
      n_rows > 1 ? span_of(field, "row_stride", view.row_stride, n_rows, head_dim) : head_dim;
  const int64_t row_length =
      n_heads > 1 ? span_of(field, "head_stride", view.head_stride, n_heads, head_dim) : head_dim;
  if (n_heads < 2 || n_rows < 2) return;
  // Either each head ends before the next begins, or each row does; otherwise vectors of two heads
  // overlap.
  if (view.head_stride >= head_length || view.row_stride >= row_length) return;
  fail(ErrorCode::kUsage,
       "{}: {} heads of {} rows overlap: head_stride is {} and row_stride {} elements; it must be "
       "at least {} and {}, or {} and {}",
       field, n_heads, n_rows, view.head_stride, view.row_stride, head_length, head_dim, head_dim,
       row_length);
}

template <typename View>
char* row_of(const View& view, int64_t h, int64_t r) {
  const int64_t offset = (h * view.head_stride + r * view.row_stride) * block_bytes(view.dtype);
  return static_cast<char*>(const_cast<void*>(static_cast<const void*>(view.data))) + offset;
}

// [n_head_kv, n_tokens, head_dim] over the caller's memory.
Tensor kv_tensor(const LayerView& layer, const KvView& view) {
  Tensor t(const_cast<void*>(view.data), view.dtype,
           {layer.n_head_kv, layer.n_tokens, layer.head_dim});
  if (layer.n_head_kv > 1) t.stride[0] = view.head_stride * block_bytes(view.dtype);
  if (layer.n_tokens > 1) t.stride[1] = view.row_stride * block_bytes(view.dtype);
  return t;
}

// q as f32, [n_window, n_head, head_dim], contiguous. Every vector is converted as a head with one
// row.
Buffer window_queries(Backend& backend, const LayerView& layer) {
  const size_t n = layer.n_window * layer.n_head, row = layer.head_dim * sizeof(float);
  Buffer q = backend.allocate(n * row, "queries of the window");
  std::vector<const void*> src;
  std::vector<void*> dst;
  for (int64_t i = 0; i < layer.n_window; ++i) {
    for (int64_t h = 0; h < layer.n_head; ++h) {
      dst.push_back(static_cast<char*>(q.data()) + src.size() * row);
      src.push_back(row_of(layer.q, h, i));
    }
  }
  const std::vector<int32_t> ones(n, 1);
  ops::convert_rows(backend, {src, layer.q.dtype, layer.head_dim, Tensor(), ones, DType::f32, dst});
  return q;
}

void check_layer(const LayerView& layer, int window_size) {
  check_shape(layer);
  if (layer.head_dim % 8 != 0) {
    fail(ErrorCode::kUsage, "head_dim is {}; it must be a multiple of 8", layer.head_dim);
  }
  check_view("k", layer.k, layer.n_head_kv, layer.n_tokens, layer.head_dim);
  if (layer.v.data != nullptr) {
    check_view("v", layer.v, layer.n_head_kv, layer.n_tokens, layer.head_dim);
    if (layer.v.dtype != layer.k.dtype) {
      fail(ErrorCode::kUsage, "v.dtype is {}; it must be that of k, {}", name(layer.v.dtype),
           name(layer.k.dtype));
    }
  }
  if (!std::isfinite(layer.scale) || layer.scale < 0.0f) {
    fail(ErrorCode::kUsage, "scale is {}; it must be positive, or 0 for 1 / sqrt(head_dim)",
         layer.scale);
  }
  if (layer.n_layer < 1 || layer.il < 0 || layer.il >= layer.n_layer) {
    fail(ErrorCode::kUsage, "il is {}; it must be within 0 and n_layer - 1, and n_layer is {}",
         layer.il, layer.n_layer);
  }
  if (window_size == 0) return;  // the policy reads no queries
  if (layer.n_window < 1 || layer.n_window > layer.n_tokens) {
    fail(ErrorCode::kUsage, "n_window is {}; it must be within 1 and n_tokens, which is {}",
         layer.n_window, layer.n_tokens);
  }
  check_view("q", layer.q, layer.n_head, layer.n_window, layer.head_dim);
}

void check_kept(const LayerView& layer, const KvView& src, const KvSelection& kept) {
  check_shape(layer);
  check_view("src", src, layer.n_head_kv, layer.n_tokens, layer.head_dim);
  if (std::ssize(kept) != layer.n_head_kv) {
    fail(ErrorCode::kUsage, "kept has {} heads; it must have n_head_kv, which is {}", kept.size(),
         layer.n_head_kv);
  }
  for (size_t h = 0; h < kept.size(); ++h) {
    for (int32_t row : kept[h]) {
      if (row < 0 || row >= layer.n_tokens) {
        fail(ErrorCode::kUsage, "kept[{}] holds position {}; n_tokens is {}", h, row,
             layer.n_tokens);
      }
    }
  }
}

}  // namespace

struct Compressor::Impl {
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Backend> backend;
  Buffer rows;  // of the last gather(), whose copies may not be finished
};

Compressor::Compressor(const PolicyConfig& config, const CompressorOptions& options)
    : impl_(std::make_unique<Impl>()) {
  require_range("n_threads", options.n_threads, 0, kMostThreads);
  impl_->policy = Policy::make(config);
  const bool on_host = !find_backend(options.device).info.own_memory;
  impl_->backend =
      Backend::make({.device = options.reference && on_host ? "reference" : options.device,
                     .n_threads = options.n_threads,
                     .compute = Compute::f32,
                     .stream = options.stream});
}

Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

Compressor::Impl& Compressor::state() const {
  if (impl_ == nullptr) fail(ErrorCode::kUsage, "the compressor was moved from");
  return *impl_;
}

const PolicyConfig& Compressor::config() const { return state().policy->config(); }

KvSelection Compressor::select(const LayerView& layer) {
  const Policy& policy = *state().policy;
  check_layer(layer, policy.window_size());
  const std::vector<int32_t> n_rows(layer.n_head_kv, static_cast<int32_t>(layer.n_tokens));
  PolicyInput input;
  input.il = layer.il;
  input.n_layer = layer.n_layer;
  Buffer q;
  if (policy.window_size() > 0) {
    q = window_queries(*state().backend, layer);
    input.q_window = q.view(DType::f32, {layer.n_window, layer.n_head, layer.head_dim});
  }
  input.k = kv_tensor(layer, layer.k);
  if (layer.v.data != nullptr) input.v = kv_tensor(layer, layer.v);
  input.n_rows = n_rows;
  input.scale =
      layer.scale > 0.0f ? layer.scale : 1.0f / std::sqrt(static_cast<float>(layer.head_dim));

  const int64_t budget = policy.layer_budget(layer.n_tokens, layer.il, layer.n_layer);
  const Selection selection = policy.make_selector(*state().backend)->select(input, budget);
  KvSelection kept(layer.n_head_kv);
  for (int64_t h = 0; h < layer.n_head_kv; ++h) {
    if (selection.keep_all) {
      for (int32_t row = 0; row < n_rows[h]; ++row) kept[h].push_back(row);
    } else {
      kept[h].resize(selection.n_kept[h]);
      state().backend->download(kept[h].data(), selection.rows.at<const void>(h),
                                kept[h].size() * sizeof(int32_t));
    }
  }
  return kept;
}

namespace {

// Whether a source vector and a written vector share bytes. The test is exact, since vectors of one
// view may lie in the gaps between those of the other.
bool overlaps(const KvView& src, const KvSelection& kept, const MutableKvView& dst, int64_t bytes) {
  std::vector<uintptr_t> read, written;
  for (size_t h = 0; h < kept.size(); ++h) {
    for (size_t i = 0; i < kept[h].size(); ++i) {
      read.push_back(reinterpret_cast<uintptr_t>(row_of(src, h, kept[h][i])));
      written.push_back(reinterpret_cast<uintptr_t>(row_of(dst, h, i)));
    }
  }
  if (read.empty()) return false;
  const auto [first_read, last_read] = std::minmax_element(read.begin(), read.end());
  const auto [first_written, last_written] = std::minmax_element(written.begin(), written.end());
  if (*last_read + bytes <= *first_written || *last_written + bytes <= *first_read) return false;
  std::sort(read.begin(), read.end());
  return std::any_of(written.begin(), written.end(), [&](uintptr_t at) {
    const uintptr_t before = at - std::min(at, static_cast<uintptr_t>(bytes) - 1);
    const auto next = std::lower_bound(read.begin(), read.end(), before);
    return next != read.end() && *next < at + bytes;
  });
}

// Throws unless the kept rows can be copied; returns the length of the longest list.
int64_t check_gather(const LayerView& layer, const KvView& src, const KvSelection& kept,
                     const MutableKvView& dst) {
  check_kept(layer, src, kept);
  int64_t most = 0;
  for (const std::vector<int32_t>& rows : kept) most = std::max(most, std::ssize(rows));
  check_view("dst", dst, layer.n_head_kv, most, layer.head_dim);
  if (dst.dtype != src.dtype) {
    fail(ErrorCode::kUsage, "dst.dtype is {}; it must be that of src, {}", name(dst.dtype),
         name(src.dtype));
  }
  if (overlaps(src, kept, dst, row_bytes(src.dtype, layer.head_dim))) {
    fail(ErrorCode::kUsage,
         "dst overlaps the kept rows of src: rows cannot be moved within their own memory");
  }
  return most;
}

}  // namespace

void Compressor::gather(const LayerView& layer, const KvView& src, const KvSelection& kept,
                        const MutableKvView& dst) {
  Backend& backend = *state().backend;
  const int64_t most = check_gather(layer, src, kept, dst);
  if (most == 0) return;
  if (most > 1 && dst.row_stride != layer.head_dim) {
    fail(ErrorCode::kUsage, "dst.row_stride is {} elements; it must be head_dim, {}",
         dst.row_stride, layer.head_dim);
  }
  std::vector<int32_t> rows(kept.size() * most, 0), n;
  std::vector<void*> to;
  for (int64_t h = 0; h < layer.n_head_kv; ++h) {
    std::copy(kept[h].begin(), kept[h].end(), rows.begin() + h * most);
    n.push_back(static_cast<int32_t>(kept[h].size()));
    to.push_back(row_of(dst, h, 0));
  }
  state().rows = backend.allocate(rows.size() * sizeof(int32_t), "kept rows");
  backend.upload(state().rows.data(), rows.data(), rows.size() * sizeof(int32_t));
  ops::gather_rows(backend, kv_tensor(layer, src),
                   state().rows.view(DType::i32, {layer.n_head_kv, most}), n, to);
}

void gather_kv(const LayerView& layer, const KvView& src, const KvSelection& kept,
               const MutableKvView& dst) {
  check_gather(layer, src, kept, dst);
  const int64_t bytes = row_bytes(src.dtype, layer.head_dim);
  for (int64_t h = 0; h < layer.n_head_kv; ++h) {
    const std::vector<int32_t>& rows = kept[h];
    for (int64_t i = 0; i < std::ssize(rows); ++i) {
      std::memcpy(row_of(dst, h, i), row_of(src, h, rows[i]), bytes);
    }
  }
}

std::vector<std::vector<std::byte>> gather_kv(const LayerView& layer, const KvView& src,
                                              const KvSelection& kept) {
  check_kept(layer, src, kept);
  const int64_t bytes = row_bytes(src.dtype, layer.head_dim);
  std::vector<std::vector<std::byte>> out(kept.size());
  for (int64_t h = 0; h < layer.n_head_kv; ++h) {
    out[h].resize(kept[h].size() * bytes);
    for (int64_t i = 0; i < std::ssize(kept[h]); ++i) {
      std::memcpy(out[h].data() + i * bytes, row_of(src, h, kept[h][i]), bytes);
    }
  }
  return out;
}

}  // namespace snapkv
