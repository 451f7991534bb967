// SPDX-License-Identifier: MIT
// SnapKV (arXiv 2404.14469) on its own, for engines with their own model and cache. After the
// prefill of a layer, pass views of the prompt's last queries and of its keys, and get the
// positions to keep; gather_kv() then copies the kept rows.
//
//   snapkv::Compressor compressor({.budget = 1024, .window_size = 32});
//   // your tensors: q [n_tokens, n_head, head_dim]; k and v [n_tokens, n_head_kv, head_dim]
//   const int64_t n_window = std::min<int64_t>(n_tokens, 32);
//   snapkv::LayerView layer;
//   layer.n_tokens = n_tokens, layer.n_window = n_window;
//   layer.n_head = n_head, layer.n_head_kv = n_head_kv, layer.head_dim = head_dim;
//   layer.q = {q + (n_tokens - n_window) * n_head * head_dim, snapkv::DType::bf16,
//              head_dim, n_head * head_dim};
//   layer.k = {k, snapkv::DType::bf16, head_dim, n_head_kv * head_dim};
//   layer.v = {v, snapkv::DType::bf16, head_dim, n_head_kv * head_dim};
//   snapkv::KvSelection kept = compressor.select(layer);   // kept[h][i]: a position, ascending
//   std::vector<std::vector<std::byte>> k_kept = snapkv::gather_kv(layer, layer.k, kept);
//   std::vector<std::vector<std::byte>> v_kept = snapkv::gather_kv(layer, layer.v, kept);
//
// Positions count tokens from 0. Keys and queries are after RoPE; kept keys keep their rotation,
// and the next token's position is n_tokens, however many rows were kept. Select only after the
// whole prompt has been read: during prefill every token attends to the full layer. Every function
// throws snapkv::Error (error.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "snapkv/compute.h"
#include "snapkv/dtype.h"
#include "snapkv/error.h"
#include "snapkv/policy.h"

namespace snapkv {

/// Vectors of head_dim contiguous values, one per head and row. The vector of head h and row r
/// starts at element h * head_stride + r * row_stride. No two vectors may overlap: either each head
/// ends before the next begins, or each row does. So [n_rows, n_head, head_dim] has head_stride
/// head_dim and row_stride n_head * head_dim; [n_head, n_rows, head_dim] has head_stride n_rows *
/// head_dim and row_stride head_dim. Strides count elements, not bytes.
struct KvView {
  const void* data = nullptr;  ///< aligned to the element's size
  DType dtype = DType::f32;    ///< f32, f16 or bf16
  int64_t head_stride = 0;
  int64_t row_stride = 0;
};

/// Same, for writing.
struct MutableKvView {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
};

/// One layer of one sequence.
struct LayerView {
  int64_t n_tokens = 0;   ///< rows of k and v: the whole prompt
  int64_t n_window = 0;   ///< rows of q: at most n_tokens
  int64_t n_head = 0;     ///< query heads, a multiple of n_head_kv
  int64_t n_head_kv = 0;  ///< KV heads; query head h reads KV head h / (n_head / n_head_kv)
  int64_t head_dim = 0;   ///< a multiple of 8, since kernels read whole vectors
  KvView q;               ///< [n_window, n_head, head_dim]: the prompt's last n_window tokens
  KvView k;               ///< [n_head_kv, n_tokens, head_dim]
  KvView v;               ///< as k; may be empty if the policy reads no values ("snapkv")
  float scale = 0.0f;     ///< of q . k; 0: 1 / sqrt(head_dim)
  int il = 0;             ///< the layer's index, for policies whose budget depends on it
  int n_layer = 1;
};

/// Kept positions per KV head, ascending: [n_head_kv][n_kept]. Their numbers may differ between
/// heads.
using KvSelection = std::vector<std::vector<int32_t>>;

struct CompressorOptions {
  /// Up to kMostThreads; 0: cpu_threads(). The result does not depend on it.
  int n_threads = 0;
  bool reference = false;  ///< plain loops in f64 with one thread: slow, for comparison
  /// Where the views are, a name that devices() lists. "cuda": in the memory of the current GPU;
  /// `stream` is then the cudaStream_t in whose order the kernels run, which may still be writing
  /// the views; nullptr: a new stream, and the views must be complete.
  std::string device = "cpu";
  void* stream = nullptr;
};

/// A policy and the kernels it runs on; make one and use it for every layer. Only one thread may
/// use it at a time.
class Compressor {
 public:
  /// Throws Error{kUsage} naming the field of `config` that is invalid (see validate()).
  explicit Compressor(const PolicyConfig& config, const CompressorOptions& options = {});
  ~Compressor();
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;

  /// The positions to keep: all of them if n_tokens does not exceed the budget; otherwise `budget`
  /// per head, of which the last min(n_window, window_size) are the window itself. Pass window_size
  /// queries (or n_tokens, if there are fewer); with fewer queries, fewer vote. Scores are computed
  /// in f32 whatever the types. Throws Error{kUsage} naming the field of `layer` that is wrong,
  /// kDoesNotFit, and kRuntime naming head and row if a score is NaN or infinite.
  KvSelection select(const LayerView& layer);

  /// gather_kv() below, on the compressor's device. It returns before the copies, which follow the
  /// order of its stream, are done. Rows of `dst` must be contiguous (row_stride == head_dim).
  void gather(const LayerView& layer, const KvView& src, const KvSelection& kept,
              const MutableKvView& dst);

  const PolicyConfig& config() const;

 private:
  struct Impl;
  Impl& state() const;  // throws Error{kUsage} if the compressor was moved from
  std::unique_ptr<Impl> impl_;
};

/// Copies row kept[h][i] of head h of `src` (layer.k or layer.v, or another view of their shape) to
/// row i of head h of `dst`. The types must be equal, the memory must not overlap, and `dst` must
/// have room for the longest kept[h]. For host memory. Throws Error{kUsage} before anything is
/// written.
void gather_kv(const LayerView& layer, const KvView& src, const KvSelection& kept,
               const MutableKvView& dst);

/// Same, into new memory: [n_head_kv] of [n_kept, head_dim], contiguous, in src.dtype.
std::vector<std::vector<std::byte>> gather_kv(const LayerView& layer, const KvView& src,
                                              const KvSelection& kept);

}  // namespace snapkv
