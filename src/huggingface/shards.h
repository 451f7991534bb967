// SPDX-License-Identifier: MIT
// Shards: the safetensors files of a Hugging Face folder, opened and checked against their index.
// Used by folder.cpp.
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
  int file = 0;                     // in Shards::files
  const std::byte* data = nullptr;  // in that file
};

struct Shards {
  std::vector<std::string> paths;
  std::vector<MmapFile> files;
  std::vector<ShardTensor> tensors;  // names unique

  /// A hash of the headers.
  uint64_t fingerprint() const;
};

/// model.safetensors of `folder`, or the files that model.safetensors.index.json names: all of them
/// in the folder itself. Throws Error{kRuntime} when a file can't be read, Error{kBadModel} naming
/// file, field, expected and actual.
Shards open_shards(const std::string& folder, const ReadOptions& options);

}  // namespace snapkv::huggingface
