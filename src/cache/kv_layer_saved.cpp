// SPDX-License-Identifier: MIT
// KvLayer in files: a head with type and sizes, then the keys, values and positions of all heads,
// laid out as in memory.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "cache/kv_layer.h"

namespace snapkv {
namespace {

constexpr size_t kTypeBytes = 8;

/// Type, width of a key, number of heads and their numbers of rows, then zeros up to a multiple of
/// Buffer::kAlignment.
size_t head_bytes(size_t n_head) {
  const size_t bytes = kTypeBytes + (2 + n_head) * sizeof(int64_t);
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

std::vector<std::byte> make_head(DType dtype, const StateShape& shape,
                                 std::span<const int32_t> n_rows) {
  std::vector<std::byte> head(head_bytes(n_rows.size()));
  std::memcpy(head.data(), name(dtype).data(), std::min(name(dtype).size(), kTypeBytes));
  std::vector<int64_t> numbers = {shape.head_dim_k, std::ssize(n_rows)};
  numbers.insert(numbers.end(), n_rows.begin(), n_rows.end());
  std::memcpy(head.data() + kTypeBytes, numbers.data(), numbers.size() * sizeof(int64_t));
  return head;
}

/// Reads the number of rows of each head, and compares type, sizes and bytes with what they say.
std::vector<int32_t> read_counts(const SavedState& saved, DType dtype, const StateShape& shape) {
  const auto n_head = static_cast<int>(shape.n_head);
  const size_t n_bytes = saved.bytes.size(), head = head_bytes(n_head);
  if (n_bytes < head) {
    fail(ErrorCode::kBadModel, "{} has {} bytes, {} are needed for {} heads", saved.name, n_bytes,
         head, n_head);
  }
  std::vector<int32_t> counts;
  for (int h = 0; h < n_head; ++h) {
    int64_t n;
    std::memcpy(&n, saved.bytes.data() + kTypeBytes + (2 + h) * sizeof(n), sizeof(n));
    if (n < 1 || n > saved.n_tokens) {
      fail(ErrorCode::kBadModel, "{}: head {} has {} rows, expected 1 to {}", saved.name, h, n,
           saved.n_tokens);
    }
    counts.push_back(static_cast<int32_t>(n));
  }
  const std::vector<std::byte> expected = make_head(dtype, shape, counts);
  if (!std::equal(expected.begin(), expected.end(), saved.bytes.begin())) {
    fail(ErrorCode::kBadModel, "{}: its type or sizes are not those of the model that it names",
         saved.name);
  }
  const int64_t n_rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  if (const size_t all = head + n_rows * KvLayer::row_bytes(dtype, shape); n_bytes != all) {
    fail(ErrorCode::kBadModel, "{} has {} bytes, expected {}", saved.name, n_bytes, all);
  }
  return counts;
}

/// `pos` are the positions of all heads, one after the other.
void check_positions(const SavedState& saved, const std::byte* pos, std::span<const int32_t> n_kv) {
  for (size_t h = 0; h < n_kv.size(); ++h) {
    int32_t before = -1;
    for (int32_t slot = 0; slot < n_kv[h]; ++slot, pos += sizeof(int32_t)) {
      int32_t at;
      std::memcpy(&at, pos, sizeof(at));
      if (at <= before) {
        fail(ErrorCode::kBadModel, "{}, head {}: position {} comes after position {}", saved.name,
             h, at, before);
      }
      before = at;
    }
    if (before != saved.n_tokens - 1) {
      fail(ErrorCode::kBadModel, "{}, head {}: the last position is {}, expected {}", saved.name, h,
           before, saved.n_tokens - 1);
    }
  }
}

}  // namespace

void KvLayer::save(Backend& backend, const ByteSink& out) const {
  std::vector<std::byte> bytes = make_head(dtype_, shape_, n_rows());
  out(bytes);
  const auto write = [&](const void* rows, size_t n) {
    bytes.resize(n);
    backend.download(bytes.data(), rows, n);
    out(bytes);
  };
  for (int h = 0; h < n_head_kv(); ++h) write(k(h), n_kv(h) * k_row_bytes_);
  for (int h = 0; h < n_head_kv(); ++h) {
    if (!shape_.v_in_k) write(v(h), n_kv(h) * v_row_bytes_);
  }
  for (int h = 0; h < n_head_kv(); ++h) write(pos(h), n_kv(h) * sizeof(int32_t));
}

size_t KvLayer::saved_bytes() const { return head_bytes(n_head_kv()) + bytes_used(); }

size_t KvLayer::most_saved_bytes(int64_t n) const {
  return head_bytes(n_head_kv()) + n * n_head_kv() * row_bytes(dtype_, shape_);
}

void KvLayer::borrow(const SavedState& saved) {
  const std::vector<int32_t> n = read_counts(saved, dtype_, shape_);
  const auto rows = saved.bytes.subspan(head_bytes(n_head_kv()));
  const int64_t n_rows = std::accumulate(n.begin(), n.end(), int64_t{0});
  check_positions(saved, rows.last(n_rows * sizeof(int32_t)).data(), n);
  // the layer never writes to it
  storage_ = Buffer(const_cast<std::byte*>(rows.data()), rows.size(), nullptr);
  lay_out(n);
  for (int h = 0; h < n_head_kv(); ++h) heads_[h].n_kv = n[h];
  end_ = saved_end_ = saved.n_tokens;
}

void KvLayer::load(Backend& backend, const SavedState& saved, int64_t reserve) {
  KvMeter of_file;
  KvLayer from(of_file, shape_, dtype_);
  from.borrow(saved);
  std::vector<int32_t> capacity = from.n_rows();
  for (int32_t& n : capacity) n = static_cast<int32_t>(std::min(n + reserve, kMostRows));
  allocate(backend, capacity);
  end_ = saved_end_ = saved.n_tokens;
  for (int h = 0; h < n_head_kv(); ++h) {
    const int64_t n = heads_[h].n_kv = from.n_kv(h);
    backend.upload(k(h), from.k(h), n * k_row_bytes_);
    if (!shape_.v_in_k) backend.upload(v(h), from.v(h), n * v_row_bytes_);
    backend.upload(pos(h), from.pos(h), n * sizeof(int32_t));
  }
}

}  // namespace snapkv
