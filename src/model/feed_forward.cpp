// SPDX-License-Identifier: MIT
#include "model/feed_forward.h"

#include <cstdint>
#include <vector>

#include "backend/ops.h"
#include "base/error.h"
#include "format/gguf.h"
#include "model/metadata_reader.h"
#include "model/model_spec.h"

namespace snapkv {
namespace {

/// A width, or that of dense networks where the header has no such key.
int64_t read_width(const MetadataReader& reader, const char* name) {
  return reader.size(reader.has(name) ? name : "feed_forward_length", 1 << 22);
}

/// The number of first layers that have no experts.
int64_t read_n_dense(const MetadataReader& reader, const ModelConfig& c) {
  const GgufFile& file = reader.file();
  const uint64_t n = file.get_uint(reader.key("leading_dense_block_count"), 0);
  if (n < static_cast<uint64_t>(c.n_layer)) return static_cast<int64_t>(n);
  fail(ErrorCode::kBadModel, "{}: {} is {}, expected less than {}, the number of layers",
       file.path(), reader.key("leading_dense_block_count"), n, c.n_layer);
}

/// The width of a shared expert; 0: the layers have none. `n_ff`: of the other experts.
int64_t read_shared_width(const MetadataReader& reader, SharedExpert shared, int64_t n_ff) {
  constexpr const char* kShared = "expert_shared_feed_forward_length";
  constexpr const char* kCount = "expert_shared_count";
  if (shared == SharedExpert::none) return 0;
  if (shared == SharedExpert::gated || reader.file().get_uint(reader.key(kShared), 0) > 0) {
    return read_width(reader, kShared);
  }
  const bool counted =
      shared == SharedExpert::if_counted && reader.file().get_uint(reader.key(kCount), 0) > 0;
  return counted ? n_ff * reader.size(kCount, kMostExperts) : 0;
}

/// The parts of a layer with experts.
std::vector<FeedForwardPart> read_experts_parts(const MetadataReader& reader, SharedExpert shared) {
  const int64_t n_ff = read_width(reader, "expert_feed_forward_length");
  std::vector<FeedForwardPart> parts = {{FeedForwardKind::experts, n_ff}};
  const int64_t n_ff_shared = read_shared_width(reader, shared, n_ff);
  if (n_ff_shared > 0) {
    parts.push_back({FeedForwardKind::shared_expert, n_ff_shared, shared == SharedExpert::gated});
  }
  return parts;
}

}  // namespace

void add_feed_forward(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const int64_t n_dense = c.n_expert > 0 ? read_n_dense(reader, c) : c.n_layer;
  // of every so many layers, the last has experts
  const int64_t step = c.n_expert > 0 ? reader.size("interleave_moe_layer_step", 1, INT32_MAX) : 1;
  for (int64_t il = 0; il < c.n_layer; ++il) {
    std::vector<FeedForwardPart>& ffn = spec.layers[il].ffn;
    if (!ffn.empty()) continue;
    if (il < n_dense || (il + 1) % step != 0) {
      ffn = {{FeedForwardKind::dense, read_width(reader, "feed_forward_length")}};
    } else {
      ffn = read_experts_parts(reader, spec.family->shared_expert);
    }
  }
}

}  // namespace snapkv
