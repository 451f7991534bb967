// SPDX-License-Identifier: MIT
// The kinds of states besides KvLayer, and where all are made.
#include "cache/layer_state.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cache/kv_layer.h"
#include "cache/recurrent_state.h"

namespace snapkv {
namespace {

/// The state of a layer that reads the rows of another one: nothing.
class SharedRows final : public LayerState {
 public:
  std::string_view kind() const override { return "shared"; }
  void reserve(Backend&, int32_t, int32_t) override {}
  int64_t last_cut(int64_t n) const override { return n; }
  void snapshot() override {}
  void roll_back() override {}
  bool keep_first(int32_t) override { return true; }
  void save(Backend&, const ByteSink&) const override {}
  size_t saved_bytes() const override { return 0; }
  size_t most_saved_bytes(int64_t) const override { return 0; }
  void load(Backend&, const SavedState& saved, int64_t) override { borrow(saved); }
  void borrow(const SavedState& saved) override {
    if (saved.bytes.empty()) return;
    fail(ErrorCode::kBadModel, "{}: {} bytes, expected none: the layer has no rows of its own",
         saved.name, saved.bytes.size());
  }
  size_t bytes() const override { return 0; }
  size_t bytes_used() const override { return 0; }
};

/// The state of a layer with a sliding window: the last tokens, among which no policy chooses.
class SlidingWindowLayer final : public KvLayer {
 public:
  SlidingWindowLayer(KvMeter& meter, const StateShape& shape, DType dtype)
      : KvLayer(meter, shape, dtype), window_(static_cast<int32_t>(shape.window)) {}

  std::string_view kind() const override { return "window"; }
  using KvLayer::append;
  void append(Backend& backend, const Tensor& k, const Tensor& v,
              std::span<const int32_t> pos) override {
    KvLayer::append(backend, k, v, pos);
    keep_last(window_);
  }
  void visible_rows(std::vector<HeadRows>& heads, int32_t n_later = 0) const override {
    if (n_later == 0) return KvLayer::visible_rows(heads);
    for (int h = 0; h < n_head_kv(); ++h) {
      const int32_t n = std::min(window_, n_kv(h) + n_dropped(h) - n_later);
      const int32_t slot = n_kv(h) - n_later - n;  // below 0: of a row that later tokens don't see
      heads.push_back({k(h, slot), v(h, slot), n});
    }
  }
  bool keep_first(int32_t n) override {
    KvLayer::keep_first(n);
    keep_last(window_);
    return true;
  }
  void keep(Backend& backend, const RowState& all, const Selection&, int32_t reserve) override {
    std::vector<int32_t> first, capacity;
    for (const int32_t n : all.n_rows()) {
      first.push_back(std::max(0, n - window_));
      capacity.push_back(n - first.back() + reserve);
    }
    allocate(backend, capacity);
    append(backend, all, first, window_);
  }

 private:
  int32_t window_;
};

/// The state of a layer with attention in chunks: the tokens since the last multiple of a chunk's
/// length, among which no policy chooses.
class ChunkLayer final : public KvLayer {
 public:
  ChunkLayer(KvMeter& meter, const StateShape& shape, DType dtype)
      : KvLayer(meter, shape, dtype), chunk_(shape.chunk) {}

  std::string_view kind() const override { return "chunk"; }
  using KvLayer::append;
  void append(Backend& backend, const Tensor& k, const Tensor& v,
              std::span<const int32_t> pos) override {
    KvLayer::append(backend, k, v, pos);
    keep_last(seen_by(end() - 1));
  }
  void visible_rows(std::vector<HeadRows>& heads, int32_t n_later = 0) const override {
    const int32_t n_seen = seen_by(end() - 1 - n_later);
    for (int h = 0; h < n_head_kv(); ++h) {
      const int32_t n = std::min(n_seen, n_kv(h) + n_dropped(h) - n_later);
      const int32_t slot = n_kv(h) - n_later - n;  // below 0: of the chunk before the last token's
      heads.push_back({k(h, slot), v(h, slot), n});
    }
  }
  bool keep_first(int32_t n) override {
    KvLayer::keep_first(n);
    keep_last(seen_by(end() - 1));
    return true;
  }
  void keep(Backend& backend, const RowState& all, const Selection&, int32_t reserve) override {
    const int32_t n_seen = seen_by(end_of(all) - 1);
    std::vector<int32_t> first, capacity;
    for (const int32_t n : all.n_rows()) {
      first.push_back(std::max(0, n - n_seen));
      capacity.push_back(n - first.back() + reserve);
    }
    allocate(backend, capacity);
    append(backend, all, first, n_seen);
  }

 private:
  /// The number of tokens that the one at `pos` sees, itself included.
  int32_t seen_by(int64_t pos) const { return static_cast<int32_t>(pos % chunk_ + 1); }

  int64_t chunk_;
};

}  // namespace

RowState& LayerState::rows() {
  RowState* const rows = as_rows();
  SNAPKV_CHECK(rows != nullptr);
  return *rows;
}

int32_t RowState::most_rows() const {
  int32_t most = 0;
  for (const int32_t n : n_rows()) most = std::max(most, n);
  return most;
}

size_t StateShape::bytes(DType dtype, int64_t n) const {
  if (shared) return 0;
  // two copies of the values, so that a step can be undone
  const size_t recurrent = 2 * n_recurrent * sizeof(float);
  return n_head > 0 ? recurrent + KvLayer::row_bytes(dtype, *this) * n_head * n : recurrent;
}

std::unique_ptr<LayerState> make_state(const StateShape& shape, KvMeter& meter, DType dtype) {
  if (shape.shared) return std::make_unique<SharedRows>();
  std::unique_ptr<RowState> rows;
  if (shape.has_rows() && shape.window > 0) {
    rows = std::make_unique<SlidingWindowLayer>(meter, shape, dtype);
  } else if (shape.has_rows() && shape.chunk > 0) {
    rows = std::make_unique<ChunkLayer>(meter, shape, dtype);
  } else if (shape.has_rows()) {
    rows = std::make_unique<KvLayer>(meter, shape, dtype);
  }
  std::unique_ptr<RecurrentState> recurrent;
  if (shape.has_recurrent()) recurrent = std::make_unique<RecurrentState>(meter, shape);
  return join_states(std::move(rows), std::move(recurrent));
}

std::unique_ptr<RowState> make_full_state(const StateShape& shape, KvMeter& meter, DType dtype,
                                          std::string spill_dir) {
  return std::make_unique<KvLayer>(meter, shape, dtype, std::move(spill_dir));
}

}  // namespace snapkv
