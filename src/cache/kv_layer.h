// SPDX-License-Identifier: MIT
// KvLayer: the keys, values and true positions of one layer, per KV head, with room to grow. It
// serves as prefill's scratch layer and, one per layer, as a session's cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/ops.h"
#include "base/buffer.h"
#include "base/tensor.h"
#include "cache/saved_state.h"
#include "cache/selection.h"

namespace snapkv {

/// The most rows of a layer: rows and their positions are 32-bit numbers.
inline constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

/// Bytes of KV memory of one session: current and peak.
struct KvMeter {
  size_t now = 0;
  size_t peak = 0;
  void add(size_t bytes) {
    now += bytes;
    if (now > peak) peak = now;
  }
  void remove(size_t bytes) { now -= bytes; }
};

class KvLayer {
 public:
  KvLayer() = default;
  /// An empty layer with room for capacity[h] rows in head h. `meter` must outlive it. Unless
  /// `spill_dir` is empty, the rows are in an unnamed file in that folder (make_file_buffer), which
  /// works only with backends on host memory.
  KvLayer(Backend& backend, KvMeter& meter, int64_t head_dim, DType dtype,
          std::span<const int32_t> capacity, std::string spill_dir = {});
  KvLayer(KvLayer&& other) noexcept { swap(other); }
  KvLayer& operator=(KvLayer&& other) noexcept {
    KvLayer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~KvLayer();

  explicit operator bool() const { return !heads_.empty(); }
  int n_head_kv() const { return static_cast<int>(heads_.size()); }
  DType dtype() const { return dtype_; }

  int32_t n_kv(int head) const { return heads_[head].n_kv; }
  int32_t capacity(int head) const { return heads_[head].capacity; }
  std::vector<int32_t> n_kv() const;
  /// Rows of head `head` from `slot` on, [.., head_dim] in the cache dtype, and their positions.
  void* k(int head, int32_t slot = 0) const { return row(k_, head, slot); }
  void* v(int head, int32_t slot = 0) const { return row(v_, head, slot); }
  int32_t* pos(int head, int32_t slot = 0) const;
  HeadRows rows(int head) const { return {k(head), v(head), heads_[head].n_kv}; }

  /// Whether policies can read it: its type is not quantized, and all heads have the same capacity.
  bool has_views() const;
  /// [n_head_kv, capacity, head_dim] views; every head must have the same capacity.
  Tensor k_view() const { return view(k_); }
  Tensor v_view() const { return view(v_); }

  /// Appends n tokens: k, v [n, n_head_kv, head_dim] f32 (after RoPE), and their true positions
  /// [n]. There must be room.
  void append(Backend& backend, const Tensor& k, const Tensor& v, std::span<const int32_t> pos);
  /// Appends all rows of `other`, converted to this layer's type. There must be room.
  void append(Backend& backend, const KvLayer& other);
  /// Appends only the rows of `other` from slot first[h] of each head on.
  void append(Backend& backend, const KvLayer& other, std::span<const int32_t> first);
  /// Appends only the first n rows of each head of `other`, which must have them.
  void append_first(Backend& backend, const KvLayer& other, int32_t n);
  /// A new layer with the selected rows in type `dtype` and room for `reserve` more in each head.
  /// `meter` counts its memory.
  KvLayer gather(Backend& backend, KvMeter& meter, const Selection& selection, int32_t reserve,
                 DType dtype) const;
  /// A new layer with the last n rows of each head, or with all rows if there are fewer.
  KvLayer gather_last(Backend& backend, KvMeter& meter, int32_t n, int32_t reserve,
                      DType dtype) const;
  /// Makes room for n more rows in every head; if it has to grow, then by at least `step` rows.
  void reserve(Backend& backend, int32_t n, int32_t step);
  /// Drops all rows of each head h but the first n_kv[h].
  void truncate(std::span<const int32_t> n_kv);
  /// Drops the rows before the last n of each head. Nothing is moved: reserve() reuses their memory
  /// when it makes room. For layers with a sliding window.
  void keep_last(int32_t n);
  void clear();
  /// The rows that a head has. append() and keep_last() move no rows, so restoring the heads undoes
  /// them. restore_heads() never fails.
  struct Head {
    int64_t first = 0;  // row of slot 0 in the layer's memory
    int32_t n_kv = 0;
    int32_t capacity = 0;  // counted from slot 0
  };
  std::span<const Head> heads() const { return heads_; }
  void restore_heads(std::span<const Head> heads) {
    std::copy(heads.begin(), heads.end(), heads_.begin());
  }

  /// Gives a sink the rows, as docs/session-file.md describes them.
  void save(Backend& backend, const ByteSink& out) const;
  /// The most bytes that save() makes of n_tokens tokens.
  static size_t most_saved_bytes(int64_t head_dim, DType dtype, int n_head_kv, int64_t n_tokens);
  /// A copy of saved rows, with room for `reserve` more in each head. Throws Error{kBadModel} naming
  /// what differs unless they are of this size and type, with ascending positions up to the last
  /// token's.
  static KvLayer load(Backend& backend, KvMeter& meter, int64_t head_dim, DType dtype,
                      int n_head_kv, const SavedState& saved, int64_t reserve);
  /// Reads saved rows where they are. It cannot grow, and is valid as long as the bytes. Throws as
  /// load() does.
  static KvLayer borrow(KvMeter& meter, int64_t head_dim, DType dtype, int n_head_kv,
                        const SavedState& saved);

  const void* data() const { return storage_.data(); }
  size_t bytes() const { return storage_.bytes(); }
  /// Bytes of one row of one head: key, value and position.
  static size_t row_bytes(DType dtype, int64_t head_dim) {
    return 2 * snapkv::row_bytes(dtype, head_dim) + sizeof(int32_t);
  }
  size_t bytes_used() const;

 private:
  /// Whether slot s of head h is row h * capacity + s.
  bool has_equal_heads() const;
  /// Sets the heads' capacities and the places of keys, values and positions in storage_.
  void lay_out(std::span<const int32_t> capacity);
  /// dst[h] = the n[h] rows of head h listed in `rows`, copied as `bytes` bytes each.
  void copy_rows(Backend& backend, char* base, int64_t bytes, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst) const;
  void append_last(Backend& backend, const KvLayer& other, int32_t most);
  /// Appends rows [first[h], first[h] + n[h]) of each head of `other`.
  void append_rows(Backend& backend, const KvLayer& other, std::span<const int32_t> first,
                   std::span<const int32_t> n);
  void* row(char* base, int head, int32_t slot) const {
    return base + (heads_[head].first + slot) * row_bytes_;
  }
  Tensor view(char* base) const;
  void swap(KvLayer& other) noexcept;

  KvMeter* meter_ = nullptr;
  Buffer storage_;  // keys, then values, then positions of all heads
  char* k_ = nullptr;
  char* v_ = nullptr;
  int32_t* pos_ = nullptr;
  DType dtype_ = DType::f16;
  int64_t head_dim_ = 0;
  int64_t row_bytes_ = 0;  // of a key or a value
  std::vector<Head> heads_;
  std::string spill_dir_;  // empty: in the backend's memory
};

}  // namespace snapkv
