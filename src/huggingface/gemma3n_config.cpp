// SPDX-License-Identifier: MIT
#include "huggingface/gemma3n_config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace snapkv::huggingface {
namespace {

/// The number of deviations above the mean that a share `p` of normal values stays below: 0 < p
/// < 1.
double normal_quantile(double p) {
  const auto share = [](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); };
  double low = -40.0, high = 40.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (share(middle) < p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

/// activation_sparsity_pattern: the share of each layer's gates that are closed; 0: none. By
/// default it is 0.95 in the first ten layers.
std::vector<double> read_shares(const JsonFields& c, int64_t n_layer) {
  constexpr const char* kKey = "activation_sparsity_pattern";
  constexpr int64_t kSparse = 10;
  std::vector<double> shares(n_layer, 0.0);
  const Json* list = c.find(kKey);
  if (list == nullptr) {
    if (n_layer > kSparse) std::fill_n(shares.begin(), kSparse, 0.95);
    return shares;
  }
  if (!list->is_array() || std::ssize(*list) != n_layer) {
    c.bad(kKey, "is {}, expected an array of {} numbers", shown(*list), n_layer);
  }
  for (int64_t il = 0; il < n_layer; ++il) {
    const Json& share = (*list)[il];
    if (!share.is_number() || share < 0 || share >= 1) {
      c.bad(kKey, "holds {}, expected numbers from 0 to below 1", shown(share));
    }
    shares[il] = share.get<double>();
  }
  return shares;
}

}  // namespace

int64_t read_gemma3n_widths(const JsonFields& c, Config& config) {
  constexpr const char* kKey = "intermediate_size";
  constexpr int64_t kMost = 1 << 22;
  const Json* list = c.find(kKey);
  if (list == nullptr || !list->is_array()) return c.integer(kKey, 1, kMost, 16384);
  if (std::ssize(*list) != config.n_layer) {
    c.bad(kKey, "has {} entries, expected one for each of {} layers", list->size(), config.n_layer);
  }
  for (const Json& width : *list) {
    if (!width.is_number_integer() || width < 1 || width > kMost) {
      c.bad(kKey, "holds {}, expected integers from 1 to {}", shown(width), kMost);
    }
    config.gemma3n.n_ff.push_back(width.get<int64_t>());
  }
  return config.gemma3n.n_ff.front();
}

void read_gemma3n_layers(const JsonFields& c, Config& config) {
  constexpr int64_t kMostStreams = 8;
  Gemma3nSizes& sizes = config.gemma3n;
  sizes.n_streams = c.integer("altup_num_inputs", 2, kMostStreams, 4);
  if (const int64_t active = c.integer("altup_active_idx", 0, kMostStreams, 0); active != 0) {
    c.bad("altup_active_idx", "is {}, supported is 0", active);
  }
  if (!c.flag("altup_correct_scale", true)) {
    c.bad("altup_correct_scale", "is false, which is not supported");
  }
  sizes.rank = c.integer("laurel_rank", 1, 1 << 16, 64);
  sizes.n_shared = c.integer("num_kv_shared_layers", 0, config.n_layer - 1, 15);
  sizes.n_layer_input = c.integer("hidden_size_per_layer_input", 1, 1 << 16, 256);
  sizes.n_vocab = config.n_vocab;
  config.n_vocab = c.integer("vocab_size_per_layer_input", 1, config.n_vocab, 262144);
  for (const double share : read_shares(c, config.n_layer)) {
    const double peaks =
        share > 0.0 ? normal_quantile(share) : -std::numeric_limits<double>::infinity();
    sizes.peaks.push_back(static_cast<double>(static_cast<float>(peaks)));
  }
  config.final_softcap =
      c.has("final_logit_softcapping") ? c.positive("final_logit_softcapping") : 30.0;
}

void add_gemma3n_keys(const Config& config, Keys& keys) {
  const Gemma3nSizes& sizes = config.gemma3n;
  const auto key = [](const char* name) { return std::string("gemma3n.") + name; };
  const auto differs = [&](int64_t n) { return n != sizes.n_ff.front(); };
  if (std::any_of(sizes.n_ff.begin(), sizes.n_ff.end(), differs)) {
    keys.i32s(key("feed_forward_length"), sizes.n_ff);
  }
  keys.u32(key("altup.num_inputs"), sizes.n_streams);
  keys.u32(key("altup.active_idx"), 0);
  keys.f32(key("attention.shared_kv_layers"), static_cast<double>(sizes.n_shared));
  keys.u32(key("embedding_length_per_layer_input"), sizes.n_layer_input);
  keys.f32s(key("activation_sparsity_scale"), sizes.peaks);
}

}  // namespace snapkv::huggingface
