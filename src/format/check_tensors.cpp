// SPDX-License-Identifier: MIT
#include "format/check_tensors.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "base/error.h"
#include "format/block_types.h"
#include "format/byte_reader.h"

namespace snapkv {
namespace {

constexpr uint32_t kExponentF32 = 0x7f800000;  // all ones: infinity or NaN
constexpr uint16_t kExponentF16 = 0x7c00;
constexpr uint16_t kExponentBf16 = 0x7f80;

/// Index of the first of n numbers whose exponent bits are all ones, or n.
template <typename Bits>
int64_t find_plain(const std::byte* data, int64_t n, Bits exponent) {
  constexpr int64_t kPiece = 2048;  // examined without branches, so that it becomes SIMD code
  Bits piece[kPiece];
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t count = std::min(kPiece, n - begin);
    std::memcpy(piece, data + begin * sizeof(Bits), count * sizeof(Bits));
    Bits found = 0;
    for (int64_t i = 0; i < count; ++i) {
      found |= static_cast<Bits>((piece[i] & exponent) == exponent ? 1 : 0);
    }
    if (found == 0) continue;
    for (int64_t i = 0; i < count; ++i) {
      if ((piece[i] & exponent) == exponent) return begin + i;
    }
  }
  return n;
}

/// Index of the first of n blocks in which an f16 number at one of `offsets` is not finite, or n.
template <size_t kBytes, size_t... kOffsets>
int64_t find_block(const std::byte* data, int64_t n) {
  for (int64_t b = 0; b < n; ++b) {
    const auto bad = [&](size_t offset) {
      uint16_t bits = 0;
      std::memcpy(&bits, data + b * kBytes + offset, sizeof bits);
      return (bits & kExponentF16) == kExponentF16;
    };
    if ((bad(kOffsets) || ...)) return b;
  }
  return n;
}

/// Same for a block type: its f16 scale and minimum are checked, or the block itself tells whether
/// its values are finite.
template <DType T>
int64_t find_block_of(const std::byte* data, int64_t n) {
  using B = Block<T>;
  if constexpr (kHasMin<T>) {
    return find_block<sizeof(B), kScaleAt<T>, kMinAt<T>>(data, n);
  } else if constexpr (kHasF16Scale<T>) {
    return find_block<sizeof(B), kScaleAt<T>>(data, n);
  } else {
    const auto* blocks = reinterpret_cast<const B*>(data);
    return std::find_if_not(blocks, blocks + n, [](const B& b) { return b.is_finite(); }) - blocks;
  }
}

/// Index of the first of n blocks (values, for a plain type) that is not finite, or n.
int64_t find_bad(DType dtype, const std::byte* data, int64_t n) {
  if (dtype == DType::i32) return n;
  return visit_weight_type(dtype, [=](auto type) {
    if constexpr (type.dtype == DType::f32) {
      return find_plain<uint32_t>(data, n, kExponentF32);
    } else if constexpr (type.dtype == DType::f16) {
      return find_plain<uint16_t>(data, n, kExponentF16);
    } else if constexpr (type.dtype == DType::bf16) {
      return find_plain<uint16_t>(data, n, kExponentBf16);
    } else {
      return find_block_of<type.dtype>(data, n);
    }
  });
}

/// Blocks [begin, end) of tensor `index`.
struct Piece {
  size_t index;
  int64_t begin, end;
};

std::vector<Piece> pieces_of(const GgufFile& file) {
  constexpr int64_t kPieceBytes = int64_t{4} << 20;
  std::vector<Piece> pieces;
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const Tensor& t = file.tensors()[i].tensor;
    if (!t) continue;
    const int64_t n = t.numel() / block_size(t.dtype);
    const int64_t step = std::max<int64_t>(1, kPieceBytes / block_bytes(t.dtype));
    for (int64_t begin = 0; begin < n; begin += step) {
      pieces.push_back({i, begin, std::min(n, begin + step)});
    }
  }
  return pieces;
}

/// "[3, 17]": the position of a value in a tensor.
std::string place_of(const Tensor& t, int64_t index) {
  std::string text;
  for (int i = t.rank - 1; i >= 0; --i) {
    text = fmt::format("{}{}{}", index % t.shape[i], text.empty() ? "" : ", ", text);
    index /= t.shape[i];
  }
  return "[" + text + "]";
}

}  // namespace

std::optional<int64_t> first_non_finite(const Tensor& t) {
  const int64_t n = t.numel() / block_size(t.dtype);
  const int64_t bad = find_bad(t.dtype, static_cast<const std::byte*>(t.data), n);
  if (bad == n) return std::nullopt;
  return bad * block_size(t.dtype);
}

void check_tensors(const GgufFile& file, int n_threads, const std::function<void(double)>& report) {
  const std::vector<Piece> pieces = pieces_of(file);
  std::atomic<size_t> next{0};
  std::atomic<size_t> first_bad{pieces.size()};  // later pieces need not be examined
  const auto look = [&](size_t p) {
    const Tensor& t = file.tensors()[pieces[p].index].tensor;
    const auto* data = static_cast<const std::byte*>(t.data);
    const int64_t n = pieces[p].end - pieces[p].begin;
    if (find_bad(t.dtype, data + pieces[p].begin * block_bytes(t.dtype), n) == n) return;
    size_t known = first_bad.load();
    while (p < known && !first_bad.compare_exchange_weak(known, p)) {
    }
  };
  const auto work = [&] {
    for (size_t p = next++; p < first_bad; p = next++) look(p);
  };
  report(0.0);  // the helpers may do all the rest
  std::vector<std::jthread> helpers;
  for (int i = 1; i < n_threads; ++i) helpers.emplace_back(work);
  try {
    for (size_t p = next++; p < first_bad; p = next++) {
      look(p);
      report(static_cast<double>(p) / static_cast<double>(pieces.size()));
    }
  } catch (...) {
    next = pieces.size();  // the helpers end after their current pieces
    throw;
  }
  helpers.clear();
  if (first_bad == pieces.size()) return;
  const GgufTensor& t = file.tensors()[pieces[first_bad].index];
  const int64_t index = first_non_finite(t.tensor).value_or(0);
  const bool block = block_size(t.tensor.dtype) > 1;
  fail(ErrorCode::kBadModel,
       "'{}': tensor '{}' ({} {}) holds an infinity or a NaN: {} {}, the first of its kind",
       file.path(), printable(t.name), name(t.tensor.dtype), t.tensor.shape_string(),
       block ? "in the scale of the block at" : "value", place_of(t.tensor, index));
}

}  // namespace snapkv
