// SPDX-License-Identifier: MIT
#include "cache/kv_layer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/file_buffer.h"

namespace snapkv {

KvLayer::KvLayer(Backend& backend, KvMeter& meter, int64_t head_dim, DType dtype,
                 std::span<const int32_t> capacity, std::string spill_dir)
    : meter_(&meter),
      dtype_(dtype),
      head_dim_(head_dim),
      row_bytes_(snapkv::row_bytes(dtype, head_dim)),
      spill_dir_(std::move(spill_dir)) {
  int64_t n_rows = 0;
  for (const int32_t rows : capacity) n_rows += rows;
  const size_t size = n_rows * row_bytes(dtype, head_dim);
  storage_ = spill_dir_.empty() ? backend.allocate(size, "KV cache")
                                : make_file_buffer(spill_dir_, size, "KV cache");
  lay_out(capacity);
  meter_->add(bytes());
}

void KvLayer::lay_out(std::span<const int32_t> capacity) {
  int64_t n_rows = 0;
  for (const int32_t rows : capacity) {
    heads_.push_back({n_rows, 0, rows});
    n_rows += rows;
  }
  k_ = static_cast<char*>(storage_.data());
  v_ = k_ + n_rows * row_bytes_;
  pos_ = reinterpret_cast<int32_t*>(v_ + n_rows * row_bytes_);
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
  std::swap(head_dim_, other.head_dim_);
  std::swap(row_bytes_, other.row_bytes_);
  std::swap(heads_, other.heads_);
  std::swap(spill_dir_, other.spill_dir_);
}

std::vector<int32_t> KvLayer::n_kv() const {
  std::vector<int32_t> n;
  for (const Head& head : heads_) n.push_back(head.n_kv);
  return n;
}

int32_t* KvLayer::pos(int head, int32_t slot) const { return pos_ + heads_[head].first + slot; }

bool KvLayer::has_equal_heads() const {
  for (int64_t h = 0; h < std::ssize(heads_); ++h) {
    const Head& head = heads_[h];
    if (head.capacity != heads_[0].capacity || head.first != h * head.capacity) return false;
  }
  return true;
}

bool KvLayer::has_views() const { return block_size(dtype_) == 1 && has_equal_heads(); }

Tensor KvLayer::view(char* base) const {
  SNAPKV_CHECK(has_views());
  return Tensor(base, dtype_, {n_head_kv(), heads_[0].capacity, head_dim_});
}

void KvLayer::append(Backend& backend, const Tensor& k, const Tensor& v,
                     std::span<const int32_t> pos) {
  const int32_t n = static_cast<int32_t>(pos.size());
  SNAPKV_CHECK(k.shape[0] == n && v.shape[0] == n);
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
  ops::store_rows(backend, v, dtype_, v_dst);
  for (Head& head : heads_) head.n_kv += n;  // last, since an op may run out of memory
}

void KvLayer::append(Backend& backend, const KvLayer& other) {
  append_last(backend, other, std::numeric_limits<int32_t>::max());
}

void KvLayer::append_last(Backend& backend, const KvLayer& other, int32_t most) {
  std::vector<int32_t> first = other.n_kv();
  for (int32_t& n : first) n -= std::min(most, n);
  append(backend, other, first);
}

void KvLayer::append(Backend& backend, const KvLayer& other, std::span<const int32_t> first) {
  std::vector<int32_t> n_rows = other.n_kv();
  for (size_t h = 0; h < n_rows.size(); ++h) n_rows[h] -= first[h];
  append_rows(backend, other, first, n_rows);
}

void KvLayer::append_first(Backend& backend, const KvLayer& other, int32_t n) {
  const std::vector<int32_t> first(heads_.size(), 0), n_rows(heads_.size(), n);
  append_rows(backend, other, first, n_rows);
}

void KvLayer::append_rows(Backend& backend, const KvLayer& other, std::span<const int32_t> first,
                          std::span<const int32_t> n_rows) {
  SNAPKV_CHECK(other.head_dim_ == head_dim_ && other.n_head_kv() == n_head_kv());
  std::vector<const void*> k_src, v_src;
  std::vector<void*> k_dst, v_dst;
  for (int h = 0; h < n_head_kv(); ++h) {
    const int32_t n = n_rows[h];
    const Head& head = heads_[h];
    SNAPKV_CHECK(n >= 0 && first[h] + n <= other.n_kv(h) && head.n_kv + n <= head.capacity);
    k_src.push_back(other.k(h, first[h]));
    v_src.push_back(other.v(h, first[h]));
    k_dst.push_back(k(h, head.n_kv));
    v_dst.push_back(v(h, head.n_kv));
    backend.copy(pos(h, head.n_kv), other.pos(h, first[h]), n * sizeof(int32_t));
  }
  if (other.dtype_ == dtype_) {
    for (int h = 0; h < n_head_kv(); ++h) {
      backend.copy(k_dst[h], k_src[h], n_rows[h] * row_bytes_);
      backend.copy(v_dst[h], v_src[h], n_rows[h] * row_bytes_);
    }
  } else {
    ops::convert_rows(backend, {k_src, other.dtype_, head_dim_, Tensor(), n_rows, dtype_, k_dst});
    ops::convert_rows(backend, {v_src, other.dtype_, head_dim_, Tensor(), n_rows, dtype_, v_dst});
  }
  // last, since an op may run out of memory
  for (int h = 0; h < n_head_kv(); ++h) heads_[h].n_kv += n_rows[h];
}

KvLayer KvLayer::gather(Backend& backend, KvMeter& meter, const Selection& selection,
                        int32_t reserve, DType dtype) const {
  std::vector<int32_t> capacity = selection.keep_all ? n_kv() : selection.n_kept;
  for (int32_t& rows : capacity) rows += reserve;
  KvLayer out(backend, meter, head_dim_, dtype, capacity);
  if (selection.keep_all) {
    out.append(backend, *this);
    return out;
  }
  std::vector<const void*> k_src(heads_.size()), v_src(heads_.size());
  std::vector<void*> k_dst(heads_.size()), v_dst(heads_.size()), pos_dst(heads_.size());
  for (int h = 0; h < n_head_kv(); ++h) {
    k_src[h] = k(h);
    v_src[h] = v(h);
    k_dst[h] = out.k(h);
    v_dst[h] = out.v(h);
    pos_dst[h] = out.pos(h);
    out.heads_[h].n_kv = selection.n_kept[h];
  }
  const Tensor& rows = selection.rows;
  const std::vector<int32_t>& n = selection.n_kept;
  if (dtype == dtype_) {
    copy_rows(backend, k_, row_bytes_, rows, n, k_dst);
    copy_rows(backend, v_, row_bytes_, rows, n, v_dst);
  } else {
    ops::convert_rows(backend, {k_src, dtype_, head_dim_, rows, n, dtype, k_dst});
    ops::convert_rows(backend, {v_src, dtype_, head_dim_, rows, n, dtype, v_dst});
  }
  copy_rows(backend, reinterpret_cast<char*>(pos_), sizeof(int32_t), rows, n, pos_dst);
  return out;
}

KvLayer KvLayer::gather_last(Backend& backend, KvMeter& meter, int32_t n, int32_t reserve,
                             DType dtype) const {
  std::vector<int32_t> capacity;
  for (const Head& head : heads_) capacity.push_back(std::min(n, head.n_kv) + reserve);
  KvLayer out(backend, meter, head_dim_, dtype, capacity);
  out.append_last(backend, *this, n);
  return out;
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
  KvLayer grown(backend, *meter_, head_dim_, dtype_, capacity, spill_dir_);
  grown.append(backend, *this);
  *this = std::move(grown);
}

void KvLayer::truncate(std::span<const int32_t> n_kv) {
  for (int h = 0; h < n_head_kv(); ++h) {
    SNAPKV_CHECK(n_kv[h] <= heads_[h].n_kv);
    heads_[h].n_kv = n_kv[h];
  }
}

void KvLayer::keep_last(int32_t n) {
  for (Head& head : heads_) {
    const int32_t dropped = std::max(0, head.n_kv - n);
    head.first += dropped;
    head.n_kv -= dropped;
    head.capacity -= dropped;
  }
}

void KvLayer::clear() {
  for (Head& head : heads_) head.n_kv = 0;
}

size_t KvLayer::bytes_used() const {
  size_t n_rows = 0;
  for (const Head& head : heads_) n_rows += head.n_kv;
  return n_rows * row_bytes(dtype_, head_dim_);
}

}  // namespace snapkv
