// SPDX-License-Identifier: MIT
// KvHistory: the uncompressed keys and values of a whole conversation, for sessions with
// SessionOptions::kv_refresh. Every turn reads its new tokens over these rows and selects from all
// of them again; decoding reads only the kept rows. The rows are in memory or, with a spill_dir, in
// unnamed files of which about one layer is resident at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/layer_state.h"
#include "model/model_spec.h"

namespace snapkv {

class KvHistory {
 public:
  KvHistory() = default;
  /// Makes an empty history. Layers that no policy compresses have no history: their cache is
  /// complete. `meter` must outlive the history.
  KvHistory(Backend& backend, KvMeter& meter, const ModelSpec& spec, DType dtype,
            const std::string& spill_dir);

  /// Bytes that n_tokens take in all layers, as far as they are resident.
  static size_t resident_bytes(const ModelSpec& spec, DType dtype, int64_t n_tokens, bool spilled);

  bool has_layer(int il) const { return il < std::ssize(layers_) && layers_[il] != nullptr; }
  /// All rows so far, oldest first.
  const LayerState& layer(int il) const { return *layers_[il]; }
  /// Appends each head's rows of `source` from slot first[h] on. Throws as Backend::allocate and
  /// make_file_buffer do, and then adds nothing.
  void append(int il, const LayerState& source, std::span<const int32_t> first);
  /// roll_back() drops the rows that were appended since snapshot().
  void snapshot(int il) { layers_[il]->snapshot(); }
  void roll_back(int il) { layers_[il]->roll_back(); }
  /// leave() says that the layer will not be read for a while, prefetch() that it soon will be. A
  /// spilled layer then leaves the memory or is read ahead.
  void leave(int il) const;
  void prefetch(int il) const;

 private:
  Backend* backend_ = nullptr;
  bool spilled_ = false;
  std::vector<std::unique_ptr<LayerState>> layers_;  // [n_layer]; null: the layer has no history
};

}  // namespace snapkv
