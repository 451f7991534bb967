// SPDX-License-Identifier: MIT
#include "model/families/shared_rows.h"

#include <cmath>
#include <string>
#include <variant>

#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {

std::vector<bool> read_window_flags(const MetadataReader& reader, int64_t n_layer) {
  const GgufFile& file = reader.file();
  const std::string key = reader.key("attention.sliding_window_pattern");
  const auto it = file.metadata().find(key);
  const auto* flags =
      it == file.metadata().end() ? nullptr : std::get_if<std::vector<bool>>(&it->second.value);
  if (flags != nullptr && std::ssize(*flags) == n_layer) return *flags;
  fail(ErrorCode::kBadModel, "{}: {} must be an array of {} bools, one for each layer", file.path(),
       key, n_layer);
}

int64_t read_n_shared(const MetadataReader& reader, int64_t n_layer) {
  const std::string key = reader.key("attention.shared_kv_layers");
  const auto it = reader.file().metadata().find(key);
  if (it == reader.file().metadata().end()) return 0;
  const auto* real = std::get_if<double>(&it->second.value);
  if (real != nullptr && (*real != std::floor(*real) || *real < 0 || *real >= 1e9)) {
    fail(ErrorCode::kBadModel, "{}: {} is {}, expected a whole number", reader.file().path(), key,
         *real);
  }
  const uint64_t n = real != nullptr ? static_cast<uint64_t>(*real) : reader.file().get_uint(key);
  if (n < static_cast<uint64_t>(n_layer)) return static_cast<int64_t>(n);
  fail(ErrorCode::kBadModel, "{}: {} is {}, expected less than {}, the number of layers",
       reader.file().path(), key, n, n_layer);
}

void share_rows(const MetadataReader& reader, const std::vector<bool>& windowed, int64_t n_own,
                int64_t il, ModelSpec& spec) {
  const std::string& path = reader.file().path();
  int64_t source = n_own - 1;
  while (source >= 0 && windowed[source] != windowed[il]) --source;
  if (source < 0) {
    fail(ErrorCode::kBadModel,
         "{}: {} is {}: layer {} would read the rows of an earlier layer with{} sliding window, "
         "and there is none among the first {}",
         path, reader.key("attention.shared_kv_layers"), spec.config.n_layer - n_own, il,
         windowed[il] ? " a" : "out a", n_own);
  }
  LayerSpec& layer = spec.layers[il];
  const LayerSpec& other = spec.layers[source];
  if (layer.n_head != other.n_head || layer.state.n_head != other.state.n_head) {
    fail(ErrorCode::kBadModel,
         "{}: layer {} has {} = {} and {} = {}, and layer {}, whose rows it reads, {} and {}", path,
         il, reader.key("attention.head_count"), layer.n_head,
         reader.key("attention.head_count_kv"), layer.state.n_head, source, other.n_head,
         other.state.n_head);
  }
  layer.source = static_cast<int>(source);
  layer.state.shared = true;
  layer.compressed = false;
}

}  // namespace snapkv
