// SPDX-License-Identifier: MIT
#include "backend/partial/host_copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace snapkv {
namespace {

constexpr const char* kLabel = "copies for the reference";

// From the first byte to the last one, whatever the strides.
size_t extent(const Tensor& t) {
  if (t.numel() == 0) return 0;
  size_t bytes = row_bytes(t.dtype, t.n_cols());
  for (int i = 0; i + 1 < t.rank; ++i) bytes += (t.shape[i] - 1) * t.stride[i];
  return bytes;
}

}  // namespace

Tensor HostCopies::tensor(const Tensor& t) {
  Tensor copy = t;
  if (t && !weights_.has(t)) copy.data = rows(t.data, extent(t));
  return copy;
}

const void* HostCopies::at(const void* data, size_t bytes) {
  if (data == nullptr || bytes == 0) return data;
  char* begin = static_cast<char*>(const_cast<void*>(data));
  if (!downloaded_) {
    pieces_.push_back({.begin = begin, .end = begin + bytes});
    return data;
  }
  const auto next =
      std::upper_bound(pieces_.begin(), pieces_.end(), begin,
                       [](const char* p, const Piece& piece) { return p < piece.begin; });
  SNAPKV_CHECK(next != pieces_.begin());
  const Piece& piece = *(next - 1);
  SNAPKV_CHECK(begin + bytes <= piece.end);
  return static_cast<char*>(piece.host.data()) + (begin - piece.begin);
}

Buffer HostCopies::content(const Tensor& t) {
  const size_t bytes = extent(t);
  Buffer copy = Buffer::host(bytes, kLabel);
  memory_.download(copy.data(), t.data, bytes);
  return copy;
}

void HostCopies::download() {
  std::sort(pieces_.begin(), pieces_.end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  std::vector<Piece> merged;
  for (Piece& piece : pieces_) {  // arguments may be the same tensor, or parts of one
    if (!merged.empty() && piece.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, piece.end);
    } else {
      merged.push_back(std::move(piece));
    }
  }
  pieces_ = std::move(merged);
  for (Piece& piece : pieces_) {
    piece.host = Buffer::host(piece.bytes(), kLabel);
    piece.before = Buffer::host(piece.bytes(), kLabel);
    memory_.download(piece.host.data(), piece.begin, piece.bytes());
    std::memcpy(piece.before.data(), piece.host.data(), piece.bytes());
  }
  downloaded_ = true;
}

void HostCopies::upload() {
  for (const Piece& piece : pieces_) {
    if (std::memcmp(piece.host.data(), piece.before.data(), piece.bytes()) == 0) continue;
    memory_.upload(piece.begin, piece.host.data(), piece.bytes());
  }
}

}  // namespace snapkv
