// SPDX-License-Identifier: MIT
#include "cache/kv_layer.h"

#include <algorithm>
#include <utility>

#include "base/file_buffer.h"

namespace snapkv {

KvLayer::KvLayer(KvMeter& meter, const StateShape& shape, DType dtype, std::string spill_dir)
    : meter_(&meter),
      dtype_(dtype),
      shape_(shape),
      k_row_bytes_(snapkv::row_bytes(dtype, shape.head_dim_k)),
      v_row_bytes_(stored_value_bytes(dtype, shape)),
      v_step_(shape.v_in_k ? k_row_bytes_ : v_row_bytes_),
      heads_(shape.n_head),
      saved_(shape.n_head),
      spill_dir_(std::move(spill_dir)) {}

KvLayer::KvLayer(Backend& backend, KvMeter& meter, const StateShape& shape, DType dtype,
                 std::span<const int32_t> capacity, std::string spill_dir)
    : KvLayer(meter, shape, dtype, std::move(spill_dir)) {
  SNAPKV_CHECK(std::ssize(capacity) == shape.n_head);
  allocate(backend, capacity);
}

void KvLayer::allocate(Backend& backend, std::span<const int32_t> capacity) {
  int64_t n_rows = 0;
  for (const int32_t rows : capacity) n_rows += rows;
  const size_t size = n_rows * row_bytes(dtype_, shape_);
  storage_ = spill_dir_.empty() ? backend.allocate(size, kLabel)
                                : backend.allocate_in_file(spill_dir_, size, size, kLabel);
  lay_out(capacity);
}

void KvLayer::lay_out(std::span<const int32_t> capacity) {
  int64_t n_rows = 0;
  for (size_t h = 0; h < capacity.size(); ++h) {
    heads_[h] = {n_rows, 0, capacity[h]};
    n_rows += capacity[h];
  }
  saved_ = heads_;
  k_ = static_cast<char*>(storage_.data());
  v_ = k_ + n_rows * k_row_bytes_;
  if (shape_.v_in_k && n_rows > 0) {
    v_ = k_ + k_row_bytes_ - snapkv::row_bytes(dtype_, shape_.head_dim_v);
  }
  pos_ = reinterpret_cast<int32_t*>(k_ + n_rows * (k_row_bytes_ + v_row_bytes_));
  meter_->add(bytes());
}

KvLayer::~KvLayer() {
  if (meter_ != nullptr) meter_->remove(bytes());
}

void KvLayer::swap(KvLayer& other) noexcept {
  std::swap(meter_, other.meter_);
  std::swap(storage_, other.storage_);
  std::swap(k_, other.k_);
  std::swap(v_, other.v_);
  std::swap(pos_, other.pos_);
  std::swap(dtype_, other.dtype_);
  std::swap(shape_, other.shape_);
  std::swap(k_row_bytes_, other.k_row_bytes_);
  std::swap(v_row_bytes_, other.v_row_bytes_);
  std::swap(v_step_, other.v_step_);
  std::swap(heads_, other.heads_);
  std::swap(saved_, other.saved_);
  std::swap(end_, other.end_);
  std::swap(saved_end_, other.saved_end_);
  std::swap(spill_dir_, other.spill_dir_);
}

const KvLayer& KvLayer::rows_of(const RowState& other) const {
  const auto* const rows = dynamic_cast<const KvLayer*>(&other);
  SNAPKV_CHECK(rows != nullptr && rows->shape_.n_head == shape_.n_head &&
               rows->shape_.head_dim_k == shape_.head_dim_k &&
               rows->shape_.head_dim_v == shape_.head_dim_v &&
               rows->shape_.v_in_k == shape_.v_in_k);
  return *rows;
}

int64_t KvLayer::end_of(const RowState& rows) {
  const auto* const layer = dynamic_cast<const KvLayer*>(&rows);
  SNAPKV_CHECK(layer != nullptr);
  return layer->end_;
}

std::vector<int32_t> KvLayer::n_rows() const {
  std::vector<int32_t> n;
  for (const Head& head : heads_) n.push_back(head.n_kv);
  return n;
}

void KvLayer::visible_rows(std::vector<HeadRows>& heads, int32_t n_later) const {
  for (int h = 0; h < n_head_kv(); ++h) heads.push_back({k(h), v(h), n_kv(h) - n_later});
}

bool KvLayer::keep_first(int32_t n) {
  roll_back();  // which forgets the new rows, and leaves them where they are
  for (Head& head : heads_) head.n_kv += n;
  end_ += n;
  return true;
}

std::vector<int32_t> KvLayer::positions(Backend& backend, int head) const {
  std::vector<int32_t> all(n_kv(head));
  backend.download(all.data(), pos(head), all.size() * sizeof(int32_t));
  return all;
}

bool KvLayer::has_equal_heads() const {
  for (int64_t h = 0; h < std::ssize(heads_); ++h) {
    const Head& head = heads_[h];
    if (head.capacity != heads_[0].capacity || head.first != h * head.capacity) return false;
  }
  return true;
}

bool KvLayer::has_views() const { return block_size(dtype_) == 1 && has_equal_heads(); }

KvLayer::Views KvLayer::views() const {
  SNAPKV_CHECK(has_views());
  const auto view = [this](char* base, int64_t head_dim, int64_t step) {
    Tensor rows(base, dtype_, {n_head_kv(), heads_[0].capacity, head_dim});
    rows.stride[1] = step;
    rows.stride[0] = heads_[0].capacity * step;
    return rows;
  };
  return {view(k_, shape_.head_dim_k, k_row_bytes_), view(v_, shape_.head_dim_v, v_step_)};
}

void KvLayer::append(Backend& backend, const Tensor& k, const Tensor& v,
                     std::span<const int32_t> pos) {
  const int32_t n = static_cast<int32_t>(pos.size());
  SNAPKV_CHECK(k.shape[0] == n && (shape_.v_in_k || v.shape[0] == n));
  std::vector<void*> k_dst(heads_.size()), v_dst(heads_.size());
  std::vector<int32_t*> pos_dst(heads_.size());
  for (int h = 0; h < n_head_kv(); ++h) {
    const Head& head = heads_[h];
    SNAPKV_CHECK(head.n_kv + n <= head.capacity);
    k_dst[h] = this->k(h, head.n_kv);
    v_dst[h] = this->v(h, head.n_kv);
    pos_dst[h] = this->pos(h, head.n_kv);
  }
  ops::store_positions(backend, pos, pos_dst);
  ops::store_rows(backend, k, dtype_, k_dst);
  if (!shape_.v_in_k) ops::store_rows(backend, v, dtype_, v_dst);
  for (Head& head : heads_) head.n_kv += n;  // last, since an op may run out of memory
  end_ += n;
}

void KvLayer::append(Backend& backend, const RowState& state, std::span<const int32_t> first,
                     int64_t most) {
  const KvLayer& other = rows_of(state);
  std::vector<const void*> k_src, v_src;
  std::vector<void*> k_dst, v_dst;
  std::vector<int32_t> n_rows;
  for (int h = 0; h < n_head_kv(); ++h) {
    const int32_t begin = first.empty() ? 0 : first[h];
    const auto n = static_cast<int32_t>(std::min<int64_t>(most, other.n_kv(h) - begin));
    const Head& head = heads_[h];
    SNAPKV_CHECK(n >= 0 && head.n_kv + n <= head.capacity);
    n_rows.push_back(n);
    k_src.push_back(other.k(h, begin));
    v_src.push_back(other.v(h, begin));
    k_dst.push_back(k(h, head.n_kv));
    v_dst.push_back(v(h, head.n_kv));
    backend.copy(pos(h, head.n_kv), other.pos(h, begin), n * sizeof(int32_t));
  }
  if (other.dtype_ == dtype_) {
    for (int h = 0; h < n_head_kv(); ++h) {
      backend.copy(k_dst[h], k_src[h], n_rows[h] * k_row_bytes_);
      if (!shape_.v_in_k) backend.copy(v_dst[h], v_src[h], n_rows[h] * v_row_bytes_);
    }
  } else {
    convert(backend, {k_src, v_src}, other.dtype_, Tensor(), n_rows, {k_dst, v_dst});
  }
  // last, since an op may run out of memory
  for (int h = 0; h < n_head_kv(); ++h) heads_[h].n_kv += n_rows[h];
  const int32_t after = other.n_kv(0) - (first.empty() ? 0 : first[0]) - n_rows[0];
  end_ = other.end_ - after;
}

void KvLayer::keep(Backend& backend, const RowState& state, const Selection& selection,
                   int32_t reserve) {
  const KvLayer& all = rows_of(state);
  std::vector<int32_t> capacity = selection.keep_all ? all.n_rows() : selection.n_kept;
  for (int32_t& rows : capacity) rows += reserve;
  allocate(backend, capacity);
  if (selection.keep_all) return append(backend, all);
  end_ = all.end_;
  std::vector<const void*> k_src, v_src;
  std::vector<void*> k_dst, v_dst, pos_dst;
  for (int h = 0; h < n_head_kv(); ++h) {
    k_src.push_back(all.k(h));
    v_src.push_back(all.v(h));
    k_dst.push_back(k(h));
    v_dst.push_back(v(h));
    pos_dst.push_back(pos(h));
    heads_[h].n_kv = selection.n_kept[h];
  }
  const Tensor& rows = selection.rows;
  const std::vector<int32_t>& n = selection.n_kept;
  if (all.dtype_ == dtype_) {
    all.copy_rows(backend, all.k_, k_row_bytes_, rows, n, k_dst);
    if (!shape_.v_in_k) all.copy_rows(backend, all.v_, v_row_bytes_, rows, n, v_dst);
  } else {
    convert(backend, {k_src, v_src}, all.dtype_, rows, n, {k_dst, v_dst});
  }
  all.copy_rows(backend, reinterpret_cast<char*>(all.pos_), sizeof(int32_t), rows, n, pos_dst);
}

bool KvLayer::take(RowState& all, int64_t n) {
  auto* const rows = dynamic_cast<KvLayer*>(&all);
  if (rows == nullptr || rows->dtype_ != dtype_ || rows->capacity(0) > n) return false;
  swap(*rows);
  return true;
}

void KvLayer::clear() {
  KvLayer empty(*meter_, shape_, dtype_, spill_dir_);
  swap(empty);
}

bool KvLayer::reuse(const StateShape& shape, int64_t n) {
  if (shape.n_head != shape_.n_head || shape.head_dim_k != shape_.head_dim_k ||
      shape.head_dim_v != shape_.head_dim_v || shape.v_in_k != shape_.v_in_k || capacity(0) < n) {
    return false;
  }
  for (Head& head : heads_) head.n_kv = 0;
  end_ = 0;
  return true;
}

void KvLayer::convert(Backend& backend, const Rows<const void*>& from, DType dtype,
                      const Tensor& rows, std::span<const int32_t> n, const Rows<void*>& to) const {
  ops::convert_rows(backend, {from.k, dtype, shape_.head_dim_k, rows, n, dtype_, to.k});
  if (shape_.v_in_k) return;
  ops::convert_rows(backend, {from.v, dtype, shape_.head_dim_v, rows, n, dtype_, to.v});
}

void KvLayer::copy_rows(Backend& backend, char* base, int64_t bytes, const Tensor& rows,
                        std::span<const int32_t> n, std::span<void* const> dst) const {
  const int64_t words = bytes / 2;  // a row of any type is a whole number of 16-bit words
  if (has_equal_heads()) {
    const Tensor src(base, DType::f16, {n_head_kv(), heads_[0].capacity, words});
    return ops::gather_rows(backend, src, rows, n, dst);
  }
  for (int64_t h = 0; h < n_head_kv(); ++h) {
    const Head& head = heads_[h];
    const Tensor src(base + head.first * bytes, DType::f16, {1, head.capacity, words});
    ops::gather_rows(backend, src, rows.slice(h, h + 1), n.subspan(h, 1), dst.subspan(h, 1));
  }
}

void KvLayer::reserve(Backend& backend, int32_t n, int32_t step) {
  const bool fits = std::all_of(heads_.begin(), heads_.end(),
                                [n](const Head& h) { return h.n_kv + n <= h.capacity; });
  if (fits) return;
  std::vector<int32_t> capacity;
  for (const Head& head : heads_) capacity.push_back(head.n_kv + std::max(n, step));
  KvLayer grown(backend, *meter_, shape_, dtype_, capacity, spill_dir_);
  if (storage_) grown.append(backend, *this);
  for (int h = 0; h < n_head_kv(); ++h) {  // unless rows before them were dropped since
    grown.saved_[h].n_kv = std::min(saved_[h].n_kv, heads_[h].n_kv);
  }
  grown.end_ = end_;
  grown.saved_end_ = saved_end_;
  swap(grown);
}

void KvLayer::keep_last(int32_t n) {
  for (Head& head : heads_) {
    const int32_t dropped = std::max(0, head.n_kv - n);
    head.first += dropped;
    head.n_kv -= dropped;
    head.capacity -= dropped;
  }
}

void KvLayer::leave() const {
  if (!spill_dir_.empty() && storage_) release_pages(storage_.data(), storage_.bytes());
}

void KvLayer::prefetch() const {
  if (!spill_dir_.empty() && storage_) prefetch_pages(storage_.data(), storage_.bytes());
}

size_t KvLayer::bytes_used() const {
  size_t n_rows = 0;
  for (const Head& head : heads_) n_rows += head.n_kv;
  return n_rows * row_bytes(dtype_, shape_);
}

}  // namespace snapkv
