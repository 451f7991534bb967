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

/// The first bytes of saved rows. The number of rows of each head follows, i64, then zeros up to a
/// multiple of Buffer::kAlignment.
struct SavedHead {
  char type[8];  // padded with zeros
  int64_t head_dim;
  int64_t n_head_kv;
};

SavedHead make_head(int64_t head_dim, DType dtype, int n_head_kv) {
  SavedHead head = {{}, head_dim, n_head_kv};
  name(dtype).copy(head.type, sizeof(head.type));
  return head;
}

size_t head_bytes(int n_head_kv) {
  const size_t bytes = sizeof(SavedHead) + n_head_kv * sizeof(int64_t);
  return (bytes + Buffer::kAlignment - 1) / Buffer::kAlignment * Buffer::kAlignment;
}

/// Compares the head of saved rows with what it should be, and their number with the bytes; returns
/// the number of each head's.
std::vector<int32_t> read_counts(const SavedState& saved, const SavedHead& expected,
                                 size_t row_bytes) {
  const auto n_head_kv = static_cast<int>(expected.n_head_kv);
  SavedHead head;
  if (saved.bytes.size() < head_bytes(n_head_kv)) {
    fail(ErrorCode::kBadModel, "{} has {} bytes, {} are needed for {} heads", saved.name,
         saved.bytes.size(), head_bytes(n_head_kv), n_head_kv);
  }
  std::memcpy(&head, saved.bytes.data(), sizeof(head));
  if (std::memcmp(&head, &expected, sizeof(head)) != 0) {
    fail(ErrorCode::kBadModel, "{}: its type or sizes are not those of the model that it names",
         saved.name);
  }
  std::vector<int32_t> counts;
  size_t bytes = head_bytes(n_head_kv);
  for (int h = 0; h < n_head_kv; ++h) {
    int64_t n;
    std::memcpy(&n, saved.bytes.data() + sizeof(head) + h * sizeof(n), sizeof(n));
    if (n < 1 || n > saved.n_tokens) {
      fail(ErrorCode::kBadModel, "{}: head {} has {} rows, expected 1 to {}", saved.name, h, n,
           saved.n_tokens);
    }
    counts.push_back(static_cast<int32_t>(n));
    bytes += n * row_bytes;
  }
  if (saved.bytes.size() != bytes) {
    fail(ErrorCode::kBadModel, "{} has {} bytes, expected {}", saved.name, saved.bytes.size(),
         bytes);
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
  std::vector<std::byte> bytes(head_bytes(n_head_kv()));
  const SavedHead head = make_head(head_dim_, dtype_, n_head_kv());
  std::memcpy(bytes.data(), &head, sizeof(head));
  for (int h = 0; h < n_head_kv(); ++h) {
    const int64_t n = n_kv(h);
    std::memcpy(bytes.data() + sizeof(head) + h * sizeof(n), &n, sizeof(n));
  }
  out(bytes);
  const auto write = [&](const void* rows, size_t n) {
    bytes.resize(n);
    backend.download(bytes.data(), rows, n);
    out(bytes);
  };
  for (int h = 0; h < n_head_kv(); ++h) write(k(h), n_kv(h) * row_bytes_);
  for (int h = 0; h < n_head_kv(); ++h) write(v(h), n_kv(h) * row_bytes_);
  for (int h = 0; h < n_head_kv(); ++h) write(pos(h), n_kv(h) * sizeof(int32_t));
}

size_t KvLayer::most_saved_bytes(int64_t n) const {
  return head_bytes(n_head_kv()) + n * n_head_kv() * row_bytes(dtype_, head_dim_);
}

void KvLayer::borrow(const SavedState& saved) {
  const std::vector<int32_t> n = read_counts(saved, make_head(head_dim_, dtype_, n_head_kv()),
                                             row_bytes(dtype_, head_dim_));
  const auto rows = saved.bytes.subspan(head_bytes(n_head_kv()));
  const int64_t n_rows = std::accumulate(n.begin(), n.end(), int64_t{0});
  check_positions(saved, rows.last(n_rows * sizeof(int32_t)).data(), n);
  // the layer never writes to it
  storage_ = Buffer(const_cast<std::byte*>(rows.data()), rows.size(), nullptr);
  lay_out(n);
  for (int h = 0; h < n_head_kv(); ++h) heads_[h].n_kv = n[h];
}

void KvLayer::load(Backend& backend, const SavedState& saved, int64_t reserve) {
  KvMeter of_file;
  KvLayer from(of_file, {.n_head = n_head_kv(), .head_dim = head_dim_}, dtype_);
  from.borrow(saved);
  std::vector<int32_t> capacity = from.n_rows();
  for (int32_t& n : capacity) n = static_cast<int32_t>(std::min(n + reserve, kMostRows));
  allocate(backend, capacity);
  for (int h = 0; h < n_head_kv(); ++h) {
    const int64_t n = heads_[h].n_kv = from.n_kv(h);
    backend.upload(k(h), from.k(h), n * row_bytes_);
    backend.upload(v(h), from.v(h), n * row_bytes_);
    backend.upload(pos(h), from.pos(h), n * sizeof(int32_t));
  }
}

}  // namespace snapkv
