// SPDX-License-Identifier: MIT
#include "huggingface/mapped_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "format/block_types.h"
#include "format/quantize.h"

namespace snapkv::huggingface {
namespace {

/// Row t n_rot / 2 + j of a head becomes row 2 j + t (t = 0, 1); those from n_rot on stay.
int64_t unrotated_row(int64_t i, int64_t head_dim, int64_t n_rot) {
  const int64_t in_head = i % head_dim;
  if (in_head >= n_rot) return i;
  return i - in_head + in_head % 2 * (n_rot / 2) + in_head / 2;
}

/// What GGUF's values are greater by than the folder's.
float added(Edit edit) {
  switch (edit) {
    case Edit::add_one:
      return 1.0f;
    case Edit::add_fifth:
      return 0.2f;
    case Edit::add_small:
      return static_cast<float>(1 / std::pow(5.0, 1.5));
    default:
      return 0.0f;
  }
}

/// Where values of a key head's queries, keys, values and gates begin in in_proj_qkvz, and row i of
/// the queries, keys and values of all heads, or of the gates.
int64_t grouped_row(const LinearHeads& heads, int64_t i, bool is_gate) {
  const int64_t n_shared = heads.n_shared() * heads.d_v;  // values that a head of keys has
  const int64_t n_group = 2 * heads.d_k + 2 * n_shared;
  if (is_gate) return i / n_shared * n_group + 2 * heads.d_k + n_shared + i % n_shared;
  const int64_t n_keys = heads.n_keys();
  if (i >= 2 * n_keys) {
    const int64_t value = i - 2 * n_keys;
    return value / n_shared * n_group + 2 * heads.d_k + value % n_shared;
  }
  const int64_t is_key = i / n_keys, in_part = i % n_keys;
  return in_part / heads.d_k * n_group + is_key * heads.d_k + in_part % heads.d_k;
}

/// Head h of all queries, keys and values, in groups of a key's head: queries, key, value.
int64_t grouped_head(int64_t h, int64_t n_head, int64_t n_head_kv) {
  const int64_t n_shared = n_head / n_head_kv, n_group = n_shared + 2;
  if (h < n_head) return h / n_shared * n_group + h % n_shared;
  if (h < n_head + n_head_kv) return (h - n_head) * n_group + n_shared;
  return (h - n_head - n_head_kv) * n_group + n_shared + 1;
}

/// The folder's number of GGUF's head h of queries, of which those with one head of keys are
/// neighbours in GGUF, and n_head_kv apart in the folder.
int64_t turn_of_head(int64_t h, int64_t n_head, int64_t n_head_kv) {
  const int64_t n_shared = n_head / n_head_kv;
  return h % n_shared * n_head_kv + h / n_shared;
}

/// Divides a row by its length.
void normalize(float* row, int64_t n) {
  double squares = 0;
  for (int64_t j = 0; j < n; ++j) squares += static_cast<double>(row[j]) * row[j];
  const double length = std::max(std::sqrt(squares), 1e-12);
  for (int64_t j = 0; j < n; ++j) row[j] = static_cast<float>(row[j] / length);
}

}  // namespace

int64_t MappedTensor::row_values() const {
  return tensor.rank == 1 && block_size(tensor.dtype) == 1 ? 1 : tensor.n_cols();
}

/// The last rows are of heads of values: d_v of each head, or one.
int64_t MappedTensor::value_row(int64_t i) const {
  const int64_t n_rows = tensor.shape[0];
  const int64_t n_of_head = n_rows < heads.n_values() ? 1 : heads.d_v;
  const int64_t first = n_rows - heads.n_head * n_of_head;
  if (i < first) return i;
  const int64_t h = (i - first) / n_of_head;
  return first + heads.source_head(h) * n_of_head + (i - first) % n_of_head;
}

int64_t MappedTensor::row_of_groups(int64_t i) const {
  const int64_t first = edit == Edit::queries_of_groups ? 0
                        : edit == Edit::keys_of_groups  ? n_head
                                                        : n_head + n_head_kv;
  const int64_t head = grouped_head(first + i / head_dim, n_head, n_head_kv);
  const int64_t row = edit == Edit::values_of_groups ? i : unrotated_row(i, head_dim, n_rot);
  return head * head_dim + row % head_dim;
}

int64_t MappedTensor::source_index(int64_t i, int64_t j) const {
  const int64_t n = row_values();
  if (!block_order.empty()) {
    const int64_t n_rows_of_block = n_rows() / std::ssize(block_order);
    i = block_order[i / n_rows_of_block] * n_rows_of_block + i % n_rows_of_block;
  }
  switch (edit) {
    case Edit::none:
    case Edit::add_one:
    case Edit::add_fifth:
    case Edit::add_small:
    case Edit::growth_rate:
    case Edit::turned_back:
    case Edit::flattened:
    case Edit::taps:
    case Edit::stacked:
    case Edit::unit_rows:
    case Edit::mixes:
      return i * n + j;
    case Edit::permute_q:
    case Edit::permute_k:
      return unrotated_row(i, head_dim, n_rot) * n + j;
    case Edit::value_heads:
    case Edit::decay_rate:
      return value_row(i) * n + j;
    case Edit::value_columns:
      return i * n + heads.source_head(j / heads.d_v) * heads.d_v + j % heads.d_v;
    case Edit::head_groups:
      return (grouped_head(i / head_dim, n_head, n_head_kv) * head_dim + i % head_dim) * n + j;
    case Edit::queries_of_groups:
    case Edit::keys_of_groups:
    case Edit::values_of_groups:
      return row_of_groups(i) * n + j;
    case Edit::head_turns:
      return (turn_of_head(i / head_dim, n_head, n_head_kv) * head_dim + i % head_dim) * n + j;
    case Edit::head_turn_columns:
      return i * n + turn_of_head(j / head_dim, n_head, n_head_kv) * head_dim + j % head_dim;
    case Edit::grouped_qkv:
    case Edit::grouped_gate:
      return grouped_row(heads, i, edit == Edit::grouped_gate) * n + j;
    case Edit::head_keys:
    case Edit::head_values:
    case Edit::transposed:
    case Edit::gate_of_pairs:
    case Edit::up_of_pairs:
    case Edit::gate_of_halves:
    case Edit::up_of_halves:
    case Edit::first_half:
    case Edit::second_half:
      break;
  }
  return strides.start + i / strides.n_rows * strides.matrix + i % strides.n_rows * strides.row +
         j * strides.column;
}

int64_t MappedTensor::source_row(int64_t i) const {
  const int64_t row = source_index(i, 0) / row_values();
  if (source == nullptr) return row;
  const auto* data = static_cast<const std::byte*>(tensor.data);
  return row + (data - source->data) / row_bytes(tensor.dtype, row_values());
}

bool MappedTensor::has_whole_rows() const {
  return edit != Edit::value_columns && edit != Edit::head_turn_columns && strides.column == 1;
}

bool MappedTensor::is_negated(int64_t i) const {
  return edit == Edit::turned_back && i % head_dim >= head_dim / 2;
}

void MappedTensor::copy_row(int64_t i, std::byte* to) const {
  SNAPKV_CHECK(!changes_values());
  if (scales != nullptr) {
    copy_mxfp4_row(i, to);
    return;
  }
  const int64_t n = row_values();
  const auto* from = static_cast<const std::byte*>(tensor.data);
  if (has_whole_rows()) {
    const int64_t bytes = row_bytes(tensor.dtype, n);
    std::memcpy(to, from + source_index(i, 0) / n * bytes, bytes);
    const int64_t size = block_bytes(tensor.dtype);
    for (int64_t at = size - 1; at < bytes && is_negated(i); at += size) to[at] ^= std::byte{0x80};
    return;
  }
  const int64_t bytes = block_bytes(tensor.dtype);
  for (int64_t j = 0; j < n; ++j) {
    std::memcpy(to + j * bytes, from + source_index(i, j) * bytes, bytes);
  }
}

/// A folder has the numbers of a block in pairs, value 2 k in the low half of byte k; GGUF has
/// value k there and value k + 16 in the high half.
void MappedTensor::copy_mxfp4_row(int64_t i, std::byte* to) const {
  constexpr int64_t kPairs = kBlockSize / 2;
  const int64_t first = source_index(i, 0) / kBlockSize;
  const auto* bytes = reinterpret_cast<const uint8_t*>(source->data) + first * kPairs;
  const auto* exponents = reinterpret_cast<const uint8_t*>(scales->data) + first;
  const auto number = [&](int64_t k) { return bytes[k / 2] >> (k % 2 * 4) & 15; };
  for (int64_t b = 0; b < row_values() / kBlockSize; ++b, bytes += kPairs) {
    BlockMXFP4 block;
    block.e = exponents[b];
    for (int64_t k = 0; k < kPairs; ++k) {
      block.qs[k] = static_cast<uint8_t>(number(k) | number(k + kPairs) << 4);
    }
    std::memcpy(to + b * static_cast<int64_t>(sizeof block), &block, sizeof block);
  }
}

void MappedTensor::read_row(int64_t i, float* to) const {
  const int64_t n = row_values(), bytes = block_bytes(tensor.dtype);
  const auto* from = static_cast<const std::byte*>(tensor.data);
  if (has_whole_rows()) {
    widen(from + source_index(i, 0) * bytes, tensor.dtype, n, to);
  } else {
    for (int64_t j = 0; j < n; ++j) {
      widen(from + source_index(i, j) * bytes, tensor.dtype, 1, to + j);
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    to[j] += added(edit);
    if (is_negated(i)) to[j] = -to[j];
    if (edit == Edit::decay_rate) to[j] = -std::exp(to[j]);
    if (edit == Edit::growth_rate) to[j] = std::exp(to[j]);
  }
  if (edit == Edit::unit_rows) normalize(to, n);
  if (!factors.empty()) multiply(i, to);
  for (size_t j = 0; j < divisors.size(); ++j) to[j] /= divisors[j];
}

void MappedTensor::multiply(int64_t i, float* row) const {
  const auto of_row = std::find_if(factors.begin(), factors.end(),
                                   [i](const RowFactor& rows) { return i < rows.end; });
  SNAPKV_CHECK(of_row != factors.end());
  const auto factor = static_cast<float>(of_row->factor);
  std::for_each(row, row + row_values(), [factor](float& value) { value *= factor; });
}

void MappedTensor::keep_in_place() {
  factors.clear();
  heads.take_turns = false;
  const bool orders_only = edit == Edit::permute_q || edit == Edit::permute_k ||
                           edit == Edit::value_heads || edit == Edit::value_columns ||
                           edit == Edit::taps ||
                           edit == Edit::flattened;  // whose values are GGUF's
  if (orders_only) edit = Edit::none;
}

}  // namespace snapkv::huggingface
