// SPDX-License-Identifier: MIT
#include "model/feed_forward.h"

#include <cmath>
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

/// Those of dense networks, of each layer.
std::vector<int64_t> read_dense_widths(const MetadataReader& reader, const ModelSpec& spec) {
  constexpr const char* kKey = "feed_forward_length";
  std::vector<int64_t> widths = reader.sizes(kKey, spec.config.n_layer, {}, 1, 1 << 22);
  if (!spec.family->counts_both) return widths;
  for (int64_t& n : widths) {
    if (n % 2 != 0) {
      fail(ErrorCode::kBadModel, "{}: {} = {} must be even: it counts gates and ups together",
           reader.file().path(), reader.key(kKey), n);
    }
    n /= 2;
  }
  return widths;
}

/// The number of first layers that have no experts.
int64_t read_n_dense(const MetadataReader& reader, const ModelConfig& c, bool counts_routers) {
  const GgufFile& file = reader.file();
  uint64_t without = 0;
  const auto has_router = [&file](uint64_t il) {
    return file.find_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", il)) != nullptr;
  };
  if (counts_routers) {
    while (without + 1 < static_cast<uint64_t>(c.n_layer) && !has_router(without)) ++without;
  }
  const uint64_t n = file.get_uint(reader.key("leading_dense_block_count"), without);
  if (n < static_cast<uint64_t>(c.n_layer)) return static_cast<int64_t>(n);
  fail(ErrorCode::kBadModel, "{}: {} is {}, expected less than {}, the number of layers",
       file.path(), reader.key("leading_dense_block_count"), n, c.n_layer);
}

/// The width of a shared expert; 0: the layers have none. `n_ff`: of the other experts.
int64_t read_shared_width(const MetadataReader& reader, SharedExpert shared, int64_t n_ff) {
  constexpr const char* kShared = "expert_shared_feed_forward_length";
  constexpr const char* kCount = "expert_shared_count";
  if (shared == SharedExpert::none) return 0;
  if (shared == SharedExpert::alike) return reader.size(kShared, n_ff, 1 << 22);
  if (shared == SharedExpert::gated || reader.file().get_uint(reader.key(kShared), 0) > 0) {
    return read_width(reader, kShared);
  }
  const bool counted =
      shared == SharedExpert::if_counted && reader.file().get_uint(reader.key(kCount), 0) > 0;
  return counted ? n_ff * reader.size(kCount, kMostExperts) : 0;
}

/// The parts of a layer with experts.
std::vector<FeedForwardPart> read_experts_parts(const MetadataReader& reader,
                                                const Family& family) {
  const int64_t n_ff = read_width(reader, "expert_feed_forward_length");
  constexpr const char* kLatent = "moe_latent_size";
  const int64_t n_latent =
      reader.file().get_uint(reader.key(kLatent), 0) > 0 ? reader.size(kLatent, 1 << 20) : 0;
  std::vector<FeedForwardPart> parts = {
      {.kind = FeedForwardKind::experts, .n_ff = n_ff, .n_latent = n_latent}};
  const int64_t n_ff_shared = read_shared_width(reader, family.shared_expert, n_ff);
  if (n_ff_shared == 0 && family.norm_places != NormPlaces::before) {
    fail(ErrorCode::kBadModel,
         "{}: {} is 0 or missing: layers of experts without a shared one are not supported for "
         "\"{}\"",
         reader.file().path(), reader.key("expert_shared_count"), family.name);
  }
  if (n_ff_shared > 0) {
    parts.push_back({.kind = FeedForwardKind::shared_expert,
                     .n_ff = n_ff_shared,
                     .token_gate = family.shared_expert == SharedExpert::gated});
  }
  return parts;
}

/// A number of layer il: one for all layers, or an array.
double read_layer_number(const MetadataReader& reader, const char* key, int64_t il,
                         int64_t n_layer) {
  const GgufFile& file = reader.file();
  const auto it = file.metadata().find(key);
  const auto* all =
      it == file.metadata().end() ? nullptr : std::get_if<std::vector<double>>(&it->second.value);
  const bool counts_drafts =
      all != nullptr && reader.has("nextn_predict_layers") &&
      std::ssize(*all) == reader.size("block_count", INT32_MAX);  // entries for these layers too
  if (all != nullptr && std::ssize(*all) != n_layer && !counts_drafts) {
    fail(ErrorCode::kBadModel, "{}: {} has {} entries, expected one for each of {} layers",
         file.path(), key, all->size(), n_layer);
  }
  const double value = all != nullptr ? (*all)[il] : file.get_float(key);
  if (std::isfinite(static_cast<float>(value))) return value;
  fail(ErrorCode::kBadModel, "{}: {} must be a finite number, it is {} for layer {}", file.path(),
       key, value, il);
}

/// The limits of a network whose gates are at most `limit` after SiLU. This function rises from
/// -1.28 on, so that a gate is limited where it is the limit.
GateLimits gate_limits(double limit) {
  constexpr double kNone = 1e-6;  // as in llama.cpp
  if (limit <= kNone) return {};
  double x = limit + 1.0;  // Newton's method
  for (int i = 0; i < 50; ++i) {
    const double s = 1.0 / (1.0 + std::exp(-x));
    x -= (x * s - limit) / (s * (1.0 + x * (1.0 - s)));
  }
  return {.gate = static_cast<float>(x), .up = static_cast<float>(limit)};
}

void read_gate_limits(const MetadataReader& reader, int64_t il, int64_t n_layer,
                      std::vector<FeedForwardPart>& ffn) {
  for (FeedForwardPart& part : ffn) {
    const bool experts = part.kind == FeedForwardKind::experts;
    const char* const name = experts ? "swiglu_clamp_exp" : "swiglu_clamp_shexp";
    if (!reader.has(name)) continue;
    part.limits = gate_limits(read_layer_number(reader, reader.key(name).c_str(), il, n_layer));
  }
}

/// Files have the numbers that the model was trained with; alphas are made positive here.
XieluSpec read_xielu(const MetadataReader& reader, int64_t il, int64_t n_layer) {
  const auto number = [&](const char* key) { return read_layer_number(reader, key, il, n_layer); };
  const auto softplus = [](double x) { return x > 20.0 ? x : std::log1p(std::exp(x)); };
  const double beta = number("xielu.beta");
  return {.alpha_p = static_cast<float>(softplus(number("xielu.alpha_p"))),
          .alpha_n = static_cast<float>(beta + softplus(number("xielu.alpha_n"))),
          .beta = static_cast<float>(beta),
          .eps = static_cast<float>(number("xielu.eps"))};
}

}  // namespace

void add_feed_forward(const MetadataReader& reader, ModelSpec& spec) {
  const ModelConfig& c = spec.config;
  const int64_t n_dense =
      c.n_expert > 0 ? read_n_dense(reader, c, spec.family->counts_routers) : c.n_layer;
  // of every so many layers, the last has experts
  const int64_t step = c.n_expert > 0 ? reader.size("interleave_moe_layer_step", 1, INT32_MAX) : 1;
  std::vector<int64_t> dense;  // widths; read where a layer needs its
  for (int64_t il = 0; il < c.n_layer; ++il) {
    std::vector<FeedForwardPart>& ffn = spec.layers[il].ffn;
    if (!ffn.empty() || !spec.layers[il].has_ffn) continue;
    if (il < n_dense || (il + 1) % step != 0) {
      if (dense.empty()) dense = read_dense_widths(reader, spec);
      ffn = {{FeedForwardKind::dense, dense[il]}};
      if (spec.family->xielu) ffn.front().xielu = read_xielu(reader, il, c.n_layer);
    } else {
      ffn = read_experts_parts(reader, *spec.family);
      if (spec.family->averages_shared && ffn.size() > 1) spec.layers[il].factors.down = 0.5f;
    }
    if (spec.family->limits_gates) read_gate_limits(reader, il, c.n_layer, ffn);
  }
}

}  // namespace snapkv
