// SPDX-License-Identifier: MIT
#include "model/feed_forward.h"

#include <vector>

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

/// The parts of a layer with experts.
std::vector<FeedForwardPart> read_experts_parts(const MetadataReader& reader, SharedExpert shared) {
  constexpr const char* kShared = "expert_shared_feed_forward_length";
  std::vector<FeedForwardPart> parts = {
      {FeedForwardKind::experts, read_width(reader, "expert_feed_forward_length")}};
  const bool gated = shared == SharedExpert::gated;
  if (gated ||
      (shared == SharedExpert::if_sized && reader.file().get_uint(reader.key(kShared), 0) > 0)) {
    parts.push_back({FeedForwardKind::shared_expert, read_width(reader, kShared), gated});
  }
  return parts;
}

}  // namespace

void add_feed_forward(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const int64_t n_dense = c.n_expert > 0 ? read_n_dense(reader, c) : c.n_layer;
  for (int64_t il = 0; il < c.n_layer; ++il) {
    std::vector<FeedForwardPart>& ffn = spec.layers[il].ffn;
    if (!ffn.empty()) continue;
    if (il < n_dense) {
      ffn = {{FeedForwardKind::dense, read_width(reader, "feed_forward_length")}};
    } else {
      ffn = read_experts_parts(reader, spec.family->shared_expert);
    }
  }
}

}  // namespace snapkv
