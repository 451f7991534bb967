// SPDX-License-Identifier: MIT
// KvPrefix::Impl: the uncompressed rows of the beginning of a prompt, of every layer. Made and used
// by prefill_segment.cpp; kv_prefix_file.cpp is between it and its file.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/kv_layer.h"
#include "engine/session_impl.h"
#include "format/mmap_file.h"
#include "snapkv/prefill.h"

namespace snapkv {

struct KvPrefix::Impl {
  std::shared_ptr<const Model> model;
  int64_t n_ctx = 0;  // of the session that read it: some models rotate keys by it
  std::vector<int32_t> tokens;
  KvMeter meter;                // before the layers, which report to it
  std::vector<KvLayer> layers;  // [n_layer]; in scratch_dtype(), or in a file's type

  // of a file
  std::string path;
  std::optional<MmapFile> file;               // holds the layers
  std::vector<uint64_t> hashes;               // [n_layer]
  std::unique_ptr<std::once_flag[]> checked;  // [n_layer]

  static Backend& backend_of(const Model& model) { return *model.impl_->backend; }
  bool is_file() const { return file.has_value(); }
  /// Layer il; the first time its checksum is compared. Throws Error{kBadModel}.
  const KvLayer& layer(int il) const;
};

/// Throws Error{kUsage} unless the session can begin with the first `n` tokens of `prefix`, which
/// are to be those of `tokens`.
void check_prefix(const KvPrefix& prefix, int64_t n, const Session::Impl& session,
                  std::span<const int32_t> tokens);

}  // namespace snapkv
