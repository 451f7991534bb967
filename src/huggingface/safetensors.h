// SPDX-License-Identifier: MIT
// The header of a safetensors file, the format of the weights in Hugging Face folders.
//
// Layout (little endian):
//   u64 N    N bytes of JSON, which begin with '{' and may end with spaces    data
//   { "__metadata__": { "key": "text", ... },
//     "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end] }, ... }
// Offsets count from the beginning of the data. As in the format's own reader, N is at most
// 100,000,000, names are unique, and the tensors cover the data without gaps or overlaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "snapkv/dtype.h"

namespace snapkv::huggingface {

/// One of the format's value types.
struct SafetensorsType {
  std::string_view name;
  int bits = 0;
  std::optional<DType> dtype;  // set for the types that the project reads
};

struct SafetensorsEntry {
  std::string name;
  const SafetensorsType* type = nullptr;
  std::vector<int64_t> shape;  // outermost first; empty for a single value
  uint64_t begin = 0;          // of the data, counted from the start of the file
  uint64_t end = 0;
};

/// The tensors of a file, in the order of their data. Throws Error{kBadModel} with a message that
/// begins with `label` and names the field, and the expected and actual values.
std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file,
                                                const std::string& label);

}  // namespace snapkv::huggingface
