// SPDX-License-Identifier: MIT
// KvHistory: the uncompressed keys and values of a whole conversation, for sessions with
// SessionOptions::kv_refresh. Every turn reads its new tokens over these rows and selects from all
// of them again; decoding reads only the kept rows. The rows are in memory or, with a spill_dir, in
// unnamed files of which about one layer is resident at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_layer.h"
#include "model/model_spec.h"

namespace snapkv {

class KvHistory {
 public:
  KvHistory() = default;
  /// Makes an empty history. Layers that no policy compresses have no history: their cache is
  /// complete. `meter` must outlive the history.
  KvHistory(Backend& backend, KvMeter& meter, const ModelSpec& spec, DType dtype,
            std::string spill_dir);

  /// Bytes that n_tokens take in all layers, and how many of those bytes are resident.
  static size_t bytes(const ModelSpec& spec, DType dtype, int64_t n_tokens);
  static size_t resident_bytes(const ModelSpec& spec, DType dtype, int64_t n_tokens, bool spilled);

  bool has_layer(int il) const { return il < std::ssize(spec_) && spec_[il]; }
  /// All rows so far, oldest first.
  const KvLayer& layer(int il) const { return layers_[il]; }
  /// Appends each head's rows of `source` from slot first[h] on. Throws as Backend::allocate and
  /// make_file_buffer do, and then adds nothing.
  void append(int il, const KvLayer& source, std::span<const int32_t> first);
  /// Drops all rows of each head h but the first n_kv[h].
  void truncate(int il, std::span<const int32_t> n_kv);
  /// leave() says that the layer will not be read for a while, prefetch() that it soon will be. A
  /// spilled layer then leaves the memory or is read ahead.
  void leave(int il) const;
  void prefetch(int il) const;

 private:
  Backend* backend_ = nullptr;
  KvMeter* meter_ = nullptr;
  int64_t head_dim_ = 0;
  int64_t n_head_kv_ = 0;
  DType dtype_ = DType::f16;
  std::string spill_dir_;
  std::vector<bool> spec_;       // [n_layer]: whether the layer has a history
  std::vector<KvLayer> layers_;  // [n_layer]
};

}  // namespace snapkv
