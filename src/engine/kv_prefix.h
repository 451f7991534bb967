// SPDX-License-Identifier: MIT
// KvPrefix::Impl: the uncompressed rows of a prompt's beginning, in all layers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cache/layer_state.h"
#include "engine/cache_file.h"
#include "engine/session_impl.h"
#include "format/mmap_file.h"
#include "snapkv/prefill.h"

namespace snapkv {

struct KvPrefix::Impl {
  std::shared_ptr<const Model> model;
  int64_t n_ctx = 0;  // of the session that read it; some models rotate keys by it
  std::vector<int32_t> tokens;
  DType type = DType::f16;  // scratch_dtype() or, of a file, any
  KvMeter meter;            // declared before the layers, which report to it
  std::vector<std::unique_ptr<LayerState>> layers;  // [n_layer]; empty if they are in a file

  struct File {
    explicit File(const std::string& path);
    MmapFile map;
    CacheFile blocks;  // its bytes are the map's
    SavedPrefix saved;
  };
  std::unique_ptr<const File> file;  // holds the layers; null if they are in memory

  static Backend& backend_of(const Model& model) { return *model.impl_->backend; }
  /// Calls `use` with layer il, which is valid during the call; a layer stored as a zstd frame is
  /// decoded for it. The first call for a layer compares its checksum. Throws Error{kBadModel}.
  void with_layer(int il, const std::function<void(const LayerState&)>& use) const;
};

/// Throws Error{kUsage} unless the session can begin with the first `n` tokens of `prefix`, which
/// must equal those of `tokens`.
void check_prefix(const KvPrefix& prefix, int64_t n, const Session::Impl& session,
                  std::span<const int32_t> tokens);

}  // namespace snapkv
