// SPDX-License-Identifier: MIT
// KvLayer: the keys, values and true positions of one layer, per KV head, with room to grow. The
// engine uses one as prefill's scratch layer and one per layer as the cache of a session.
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
#include "cache/selection.h"

namespace snapkv {

/// Of a layer: rows are counted, and their positions kept, in 32 bits.
inline constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max();

/// Bytes of KV memory of one session, now and at the most.
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
  /// `spill_dir` is empty, the rows lie in a file without a name in that folder (make_file_buffer);
  /// only backends that work on host memory can have that.
  KvLayer(Backend& backend, KvMeter& meter, int64_t head_dim, DType dtype,
          std::span<const int32_t> capacity, std::string spill_dir = {});
  /// A layer of n_rows rows in each head whose memory is somebody else's, laid out as that of a
  /// layer with room for just these: it takes no more.
  KvLayer(KvMeter& meter, int64_t head_dim, DType dtype, int n_head_kv, int32_t n_rows,
          Buffer storage);
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
  /// Rows of head `head` from `slot` on: [.., head_dim] cache dtype, and their positions.
  void* k(int head, int32_t slot = 0) const { return row(k_, head, slot); }
  void* v(int head, int32_t slot = 0) const { return row(v_, head, slot); }
  int32_t* pos(int head, int32_t slot = 0) const;
  HeadRows rows(int head) const { return {k(head), v(head), heads_[head].n_kv}; }

  /// Whether policies can read it: its type is plain, and all heads have the same capacity.
  bool has_views() const;
  /// [n_head_kv, capacity, head_dim] views; every head must have the same capacity.
  Tensor k_view() const { return view(k_); }
  Tensor v_view() const { return view(v_); }

  /// Appends n tokens: k, v [n, n_head_kv, head_dim] f32 (after RoPE), their true positions [n].
  /// There must be room.
  void append(Backend& backend, const Tensor& k, const Tensor& v, std::span<const int32_t> pos);
  /// Copies all rows of `other`, converted to this layer's type, behind the rows there are. There
  /// must be room.
  void append(Backend& backend, const KvLayer& other);
  /// Copies only the rows of `other` from slot first[h] of each head on.
  void append(Backend& backend, const KvLayer& other, std::span<const int32_t> first);
  /// Copies only the first n rows of each head of `other`, which must have them.
  void append_first(Backend& backend, const KvLayer& other, int32_t n);
  /// A new layer of the selected rows in type `dtype`, with room for `reserve` more in each head;
  /// its memory is counted by `meter`.
  KvLayer gather(Backend& backend, KvMeter& meter, const Selection& selection, int32_t reserve,
                 DType dtype) const;
  /// A new layer of the last n rows of each head, or of all of them where there are fewer.
  KvLayer gather_last(Backend& backend, KvMeter& meter, int32_t n, int32_t reserve,
                      DType dtype) const;
  /// Makes room for n more rows in every head; grows by at least `step` rows when it must.
  void reserve(Backend& backend, int32_t n, int32_t step);
  /// Drops the rows behind the first n_kv[h] of each head.
  void truncate(std::span<const int32_t> n_kv);
  /// Drops the rows before the last n of each head. Nothing is moved: their memory is used again
  /// when reserve() makes room. For layers whose attention has a sliding window.
  void keep_last(int32_t n);
  void clear();
  /// Which rows every head has. append() and keep_last() move no row, so restoring the heads undoes
  /// what they did. restore_heads() never fails.
  struct Head {
    int64_t first = 0;  // row of slot 0 in the layer's memory
    int32_t n_kv = 0;
    int32_t capacity = 0;  // from slot 0 on
  };
  std::span<const Head> heads() const { return heads_; }
  void restore_heads(std::span<const Head> heads) {
    std::copy(heads.begin(), heads.end(), heads_.begin());
  }

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
  /// Heads of these capacities, and where in storage_ keys, values and positions are.
  void lay_out(std::span<const int32_t> capacity);
  /// dst[h] = the n[h] rows of head h that `rows` names, each of `bytes` bytes, as they are.
  void copy_rows(Backend& backend, char* base, int64_t bytes, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst) const;
  void append_last(Backend& backend, const KvLayer& other, int32_t most);
  /// Rows [first[h], first[h] + n[h]) of each head of `other`.
  void append_rows(Backend& backend, const KvLayer& other, std::span<const int32_t> first,
                   std::span<const int32_t> n);
  void* row(char* base, int head, int32_t slot) const {
    return base + (heads_[head].first + slot) * row_bytes_;
  }
  Tensor view(char* base) const;
  void swap(KvLayer& other) noexcept;

  KvMeter* meter_ = nullptr;
  Buffer storage_;  // keys of all heads, values of all heads, positions of all heads
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
