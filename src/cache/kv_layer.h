// SPDX-License-Identifier: MIT
// KvLayer: the keys, values and true positions of one layer's tokens, per KV head, with room to
// grow. The state of a layer of full attention, and of any layer while all of its rows are needed.
#pragma once

#include <string>

#include "base/buffer.h"
#include "cache/layer_state.h"

namespace snapkv {

class KvLayer : public RowState {
 public:
  KvLayer() = default;
  /// An empty layer without room. Rows go to `spill_dir` as make_full_state() says.
  KvLayer(KvMeter& meter, const StateShape& shape, DType dtype, std::string spill_dir = {});
  /// An empty layer with room for capacity[h] rows in head h.
  KvLayer(Backend& backend, KvMeter& meter, const StateShape& shape, DType dtype,
          std::span<const int32_t> capacity, std::string spill_dir = {});
  KvLayer(KvLayer&& other) noexcept { swap(other); }
  KvLayer& operator=(KvLayer&& other) noexcept {
    KvLayer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~KvLayer() override;

  int n_head_kv() const { return static_cast<int>(heads_.size()); }
  DType dtype() const { return dtype_; }

  int32_t n_kv(int head) const { return heads_[head].n_kv; }
  int32_t capacity(int head) const { return heads_[head].capacity; }
  /// Rows of head `head` from `slot` on, in the cache dtype, and their positions.
  void* k(int head, int32_t slot = 0) const {
    return k_ + (heads_[head].first + slot) * k_row_bytes_;
  }
  void* v(int head, int32_t slot = 0) const { return v_ + (heads_[head].first + slot) * v_step_; }
  int32_t* pos(int head, int32_t slot = 0) const { return pos_ + heads_[head].first + slot; }
  HeadRows rows(int head) const { return {k(head), v(head), heads_[head].n_kv}; }

  std::string_view kind() const override { return "rows"; }
  void reserve(Backend& backend, int32_t n, int32_t step) override;
  void append(Backend& backend, const Tensor& k, const Tensor& v,
              std::span<const int32_t> pos) override;
  using RowState::append;
  void append(Backend& backend, const RowState& other, std::span<const int32_t> first,
              int64_t most) override;
  bool reuse(const StateShape& shape, int64_t n) override;
  std::vector<int32_t> n_rows() const override;
  void visible_rows(std::vector<HeadRows>& heads, int32_t n_later = 0) const override;
  std::vector<int32_t> positions(Backend& backend, int head) const override;
  bool has_views() const override;
  Views views() const override;
  void keep(Backend& backend, const RowState& all, const Selection& selection,
            int32_t reserve) override;
  bool take(RowState& all, int64_t n) override;
  void clear() override;
  void snapshot() override {
    saved_ = heads_;
    saved_end_ = end_;
  }
  void roll_back() override {
    heads_ = saved_;
    end_ = saved_end_;
  }
  bool keep_first(int32_t n) override;
  void save(Backend& backend, const ByteSink& out) const override;
  size_t saved_bytes() const override;
  size_t most_saved_bytes(int64_t n) const override;
  void load(Backend& backend, const SavedState& saved, int64_t reserve) override;
  void borrow(const SavedState& saved) override;
  void leave() const override;
  void prefetch() const override;
  std::span<const std::byte> memory() const override {
    return {static_cast<const std::byte*>(storage_.data()), storage_.bytes()};
  }
  size_t bytes_used() const override;

  /// Drops the rows before the last n of each head. Nothing is moved: reserve() reuses their memory
  /// when it makes room.
  void keep_last(int32_t n);
  /// Bytes of one row of one head: key, position, and a value unless that is a part of the key.
  static size_t row_bytes(DType dtype, const StateShape& shape) {
    return snapkv::row_bytes(dtype, shape.head_dim_k) + stored_value_bytes(dtype, shape) +
           sizeof(int32_t);
  }

 protected:
  void allocate(Backend& backend, std::span<const int32_t> capacity);
  /// The position after that of the last row: tokens come one after the other.
  int64_t end() const { return end_; }
  static int64_t end_of(const RowState& rows);
  /// How many rows of a head keep_last() has dropped since the snapshot. They are still there.
  int32_t n_dropped(int head) const {
    return static_cast<int32_t>(heads_[head].first - saved_[head].first);
  }

 private:
  /// The rows that a head has. append() and keep_last() move no rows, so restoring the heads undoes
  /// them.
  struct Head {
    int64_t first = 0;  // row of slot 0 in the layer's memory
    int32_t n_kv = 0;
    int32_t capacity = 0;  // counted from slot 0
  };
  static int64_t stored_value_bytes(DType dtype, const StateShape& shape) {
    return shape.v_in_k ? 0 : snapkv::row_bytes(dtype, shape.head_dim_v);
  }
  /// `other` as a layer of rows of the same sizes, which it must be.
  const KvLayer& rows_of(const RowState& other) const;
  /// Whether slot s of head h is row h * capacity + s.
  bool has_equal_heads() const;
  /// Sets the heads' capacities and the places of keys, values and positions in storage_.
  void lay_out(std::span<const int32_t> capacity);
  /// Where each head's keys and values begin.
  template <typename Address>
  struct Rows {
    std::span<const Address> k, v;
  };
  /// Copies n[h] rows of another type, those listed in `rows` unless that is empty.
  void convert(Backend& backend, const Rows<const void*>& from, DType dtype, const Tensor& rows,
               std::span<const int32_t> n, const Rows<void*>& to) const;
  /// dst[h] = the n[h] rows of head h listed in `rows`, copied as `bytes` bytes each.
  void copy_rows(Backend& backend, char* base, int64_t bytes, const Tensor& rows,
                 std::span<const int32_t> n, std::span<void* const> dst) const;
  void swap(KvLayer& other) noexcept;

  KvMeter* meter_ = nullptr;
  Buffer storage_;  // keys, then values, then positions of all heads
  char* k_ = nullptr;
  char* v_ = nullptr;
  int32_t* pos_ = nullptr;
  DType dtype_ = DType::f16;
  StateShape shape_;
  int64_t k_row_bytes_ = 0;
  int64_t v_row_bytes_ = 0;          // of values that are stored; 0: they are parts of the keys
  int64_t v_step_ = 0;               // from a value to that of the next row
  std::vector<Head> heads_, saved_;  // saved_: of the snapshot
  int64_t end_ = 0, saved_end_ = 0;
  std::string spill_dir_;  // empty: in the backend's memory
};

}  // namespace snapkv
