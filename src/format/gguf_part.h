// SPDX-License-Identifier: MIT
// The parser of one GGUF file's header. gguf.h has the layout; gguf.cpp joins the parts of a split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/gguf.h"

namespace snapkv {

/// The content of one file; the tensors' data point into the bytes that were parsed.
struct GgufPart {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  // in file order, names unique
};

/// Parses and checks everything before the tensor data. Throws Error{kBadModel} with a message that
/// begins with `label`. `part` is recorded in the tensors. `any_type`: ReadOptions::any_type.
GgufPart parse_gguf_part(std::span<const std::byte> bytes, const std::string& label, int part,
                         bool any_type);

/// The files that GgufFile::open() reads for `path`, by name: the file itself and, if it is named
/// as a part of a split, the other parts that exist. In gguf.cpp.
std::vector<std::string> gguf_files(const std::string& path);

/// "u32", "array", ...
std::string_view gguf_type_name(GgufType type);

}  // namespace snapkv
