// SPDX-License-Identifier: MIT
#include "model/model_spec.h"

#include <cmath>

#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"

namespace snapkv {
namespace {

/// Keys that say that a model computes something else than the decoders of decoder.cpp do. Each is
/// an error unless it is absent or 0.
struct ForeignKey {
  const char* name;
  const char* meaning;
};
constexpr ForeignKey kForeignKeys[] = {
    {"expert_count", "mixtures of experts"},
};

void check_foreign_keys(const MetadataReader& reader) {
  for (const ForeignKey& foreign : kForeignKeys) {
    const uint64_t value = reader.file().get_uint(reader.key(foreign.name), 0);
    if (value == 0) continue;
    fail(ErrorCode::kBadModel, "{}: {} = {}: {} are not supported", reader.file().path(),
         reader.key(foreign.name), value, foreign.meaning);
  }
}

}  // namespace

int64_t ModelSpec::layer_matrix_values() const {
  const ModelConfig& c = config;
  return 2 * c.n_embd * c.n_q() + 2 * c.n_embd * c.n_kv() + 3 * c.n_embd * c.n_ff;
}

ModelSpec read_model_spec(const GgufFile& file) {
  ModelSpec spec;
  spec.family = &find_family(file);
  const MetadataReader reader(file);
  check_foreign_keys(reader);
  spec.config = read_config(reader, *spec.family);
  LayerSpec layer;
  layer.scale = 1.0f / std::sqrt(static_cast<float>(spec.config.head_dim));
  layer.rotation = read_rotation(reader, spec.family->rope, spec.config.head_dim);
  spec.layers.assign(spec.config.n_layer, layer);
  return spec;
}

}  // namespace snapkv
