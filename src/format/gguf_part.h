// SPDX-License-Identifier: MIT
// The parser of one GGUF file's header, for GgufFile (gguf.cpp), which joins the parts of a split.
// The layout is in gguf.h.
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

/// What one file says; the tensors' data point into the bytes it was parsed from.
struct GgufPart {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  // in file order, names unique
};

/// Parses and checks everything before the tensor data. Throws Error{kBadModel} that begins with
/// `label`. `part` is noted in the tensors. `any_type`: ReadOptions::any_type.
GgufPart parse_gguf_part(std::span<const std::byte> bytes, const std::string& label, int part,
                         bool any_type);

/// The files that GgufFile::open() reads for `path`, by their names: itself and, where it is named
/// as a part of a split, the other parts that are there. In gguf.cpp.
std::vector<std::string> gguf_files(const std::string& path);

/// "u32", "array", ...
std::string_view gguf_type_name(GgufType type);

}  // namespace snapkv
