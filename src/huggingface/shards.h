// SPDX-License-Identifier: MIT
// Shards: the safetensors files of a Hugging Face folder, opened and checked against their index.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/gguf.h"
#include "format/mmap_file.h"
#include "huggingface/safetensors.h"

namespace snapkv::huggingface {

struct ShardTensor {
  SafetensorsEntry entry;
  int file = 0;                     // index into Shards::files
  const std::byte* data = nullptr;  // in that file
};

struct Shards {
  std::vector<std::string> paths;
  std::vector<MmapFile> files;
  std::vector<ShardTensor> tensors;  // with unique names

  /// A hash of the files' headers.
  uint64_t fingerprint() const;
};

/// Opens model.safetensors of `folder`, or the files that model.safetensors.index.json names, which
/// must all be in the folder itself. Throws Error{kRuntime} if a file cannot be read, and
/// Error{kBadModel} naming the file, the field, and the expected and actual values.
Shards open_shards(const std::string& folder, const ReadOptions& options);

}  // namespace snapkv::huggingface
