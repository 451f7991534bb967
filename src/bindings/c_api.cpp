// SPDX-License-Identifier: MIT
// snapkv.h: the C interface of compress.h.
#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>

#include "bindings/c_api_support.h"
#include "engine/core/option_range.h"
#include "policy/policy.h"
#include "snapkv/compress.h"
#include "snapkv/snapkv.h"

struct snapkv_compressor {
  snapkv::Compressor compressor;
  std::unique_ptr<snapkv::Policy> policy;  // with the same configuration, for its budgets
};

namespace snapkv {
namespace {

static_assert(SNAPKV_ERROR_RUNTIME == static_cast<int>(ErrorCode::kRuntime));
static_assert(SNAPKV_ERROR_USAGE == static_cast<int>(ErrorCode::kUsage));
static_assert(SNAPKV_ERROR_BAD_MODEL == static_cast<int>(ErrorCode::kBadModel));
static_assert(SNAPKV_ERROR_MEMORY == static_cast<int>(ErrorCode::kDoesNotFit));
static_assert(SNAPKV_ERROR_CONTEXT == static_cast<int>(ErrorCode::kContextExceeded));
static_assert(SNAPKV_ERROR_CANCELLED == static_cast<int>(ErrorCode::kCancelled));

DType dtype_of(int type) {
  switch (type) {
    case SNAPKV_F32:
      return DType::f32;
    case SNAPKV_F16:
      return DType::f16;
    case SNAPKV_BF16:
      return DType::bf16;
    default:
      fail(ErrorCode::kUsage, "dtype is {}; it must be SNAPKV_F32, SNAPKV_F16 or SNAPKV_BF16",
           type);
  }
}

KvView view_of(const snapkv_view& v) {
  return {v.data, dtype_of(v.dtype), v.head_stride, v.row_stride};
}

LayerView layer_of(const snapkv_layer& l) {
  LayerView layer;
  layer.n_tokens = l.n_tokens;
  layer.n_window = l.n_window;
  layer.n_head = l.n_head;
  layer.n_head_kv = l.n_head_kv;
  layer.head_dim = l.head_dim;
  if (l.q.data != nullptr) layer.q = view_of(l.q);
  layer.k = view_of(l.k);
  if (l.v.data != nullptr) layer.v = view_of(l.v);
  layer.scale = l.scale;
  layer.il = l.il;
  layer.n_layer = l.n_layer;
  return layer;
}

PolicyConfig config_of(const snapkv_policy& p) {
  given(p.name, "policy.name");
  PolicyConfig config{.name = p.name,
                      .budget = p.budget,
                      .ratio = p.ratio,
                      .window_size = p.window_size,
                      .sinks = p.sinks};
  if (std::memchr(p.params, '\0', sizeof p.params) == nullptr) {
    fail(ErrorCode::kUsage, "policy.params does not end; begin with snapkv_default_policy()");
  }
  std::istringstream text(p.params);
  std::string item;
  while (text >> item) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos) {
      fail(ErrorCode::kUsage, "policy.params: '{}' has no value, expected NAME=VALUE", item);
    }
    set_param_text(config, item.substr(0, equals), item.substr(equals + 1));
  }
  return config;
}

/// Stores the configuration in `policy`; `policy.name` stays as it is.
void store_config(const PolicyConfig& config, snapkv_policy& policy) {
  policy.budget = config.budget;
  policy.ratio = config.ratio;
  policy.window_size = policy_window(config);
  policy.sinks = config.sinks;
  std::string params;
  for (const auto& [name, value] : config.params) {
    params += (params.empty() ? "" : " ") + name + "=" + value_text(value);
  }
  if (params.size() >= sizeof policy.params) {
    fail(ErrorCode::kUsage, "the parameters take {} bytes; there is room for {}", params.size(),
         sizeof policy.params - 1);
  }
  std::memcpy(policy.params, params.c_str(), params.size() + 1);
}

}  // namespace
}  // namespace snapkv

using namespace snapkv;

snapkv_policy snapkv_default_policy(void) {
  snapkv_policy policy = {};
  const int code = guarded<OptionWords::members>(nullptr, 0, [&] {
    store_config(PolicyConfig(), policy);
    policy.name = "snapkv";
  });
  return code == SNAPKV_OK ? policy : snapkv_policy{};
}

int snapkv_policy_set(snapkv_policy* policy, const char* param, const char* value, char* error,
                      size_t error_size) {
  return guarded<OptionWords::members>(error, error_size, [&] {
    PolicyConfig config = config_of(given(policy, "policy"));
    set_param_text(config, &given(param, "param"), &given(value, "value"));
    store_config(config, *policy);
  });
}

snapkv_compressor* snapkv_compressor_new(const snapkv_policy* policy, int device, void* stream,
                                         char* error, size_t error_size) {
  snapkv_compressor* made = nullptr;
  guarded<OptionWords::members>(error, error_size, [&] {
    const PolicyConfig config = config_of(given(policy, "policy"));
    if (device != SNAPKV_CPU && device != SNAPKV_CUDA) {
      fail(ErrorCode::kUsage, "device is {}; it must be SNAPKV_CPU or SNAPKV_CUDA", device);
    }
    CompressorOptions options;
    if (device == SNAPKV_CUDA) {
      options.device = "cuda";
      options.stream = stream;
    }
    made = new snapkv_compressor{Compressor(config, options), Policy::make(config)};
  });
  return made;
}

void snapkv_compressor_free(snapkv_compressor* compressor) { delete compressor; }

int64_t snapkv_max_kept(const snapkv_compressor* c, const snapkv_layer* layer) {
  if (c == nullptr || layer == nullptr) return 0;
  const auto within = [](int64_t value, int64_t most) { return value >= 1 && value <= most; };
  if (!within(layer->n_tokens, kMostTokens) || !within(layer->n_head_kv, kMostHeads) ||
      layer->il < 0 || layer->il >= layer->n_layer) {
    return 0;  // snapkv_select() reports what is wrong
  }
  const int64_t budget = c->policy->layer_budget(layer->n_tokens, layer->il, layer->n_layer);
  const int64_t n_sharing = c->policy->info().shares_budget ? layer->n_head_kv : 1;
  return std::min(layer->n_tokens, budget * n_sharing);
}

int snapkv_select(snapkv_compressor* c, const snapkv_layer* layer, int64_t capacity, int32_t* rows,
                  int32_t* n, char* error, size_t error_size) {
  return guarded<OptionWords::members>(error, error_size, [&] {
    given(c, "compressor");
    given(rows, "rows");
    given(n, "n");
    require_range("capacity", capacity, 0, kMostTokens);
    const KvSelection kept = c->compressor.select(layer_of(given(layer, "layer")));
    for (size_t h = 0; h < kept.size(); ++h) {
      if (std::ssize(kept[h]) > capacity) {
        fail(ErrorCode::kUsage, "capacity is {}; head {} keeps {} rows", capacity, h,
             kept[h].size());
      }
    }
    for (int64_t h = 0; h < std::ssize(kept); ++h) {
      std::copy(kept[h].begin(), kept[h].end(), rows + h * capacity);
      n[h] = static_cast<int32_t>(kept[h].size());
    }
  });
}

int snapkv_gather(snapkv_compressor* c, const snapkv_layer* layer, const snapkv_view* src,
                  int64_t capacity, const int32_t* rows, const int32_t* n, const snapkv_view* dst,
                  char* error, size_t error_size) {
  return guarded<OptionWords::members>(error, error_size, [&] {
    given(c, "compressor");
    given(rows, "rows");
    given(n, "n");
    const LayerView view = layer_of(given(layer, "layer"));
    require_range("n_head_kv", view.n_head_kv, 1, kMostHeads);  // allocates as many lists
    require_range("capacity", capacity, 0, kMostTokens);
    KvSelection kept(view.n_head_kv);
    for (int64_t h = 0; h < std::ssize(kept); ++h) {
      if (n[h] < 0 || n[h] > capacity) {
        fail(ErrorCode::kUsage, "n[{}] is {}; it must be within 0 and capacity, which is {}", h,
             n[h], capacity);
      }
      const int32_t* first = rows + h * capacity;
      kept[h].assign(first, first + n[h]);
    }
    const KvView to = view_of(given(dst, "dst"));
    c->compressor.gather(view, view_of(given(src, "src")), kept,
                         {dst->data, to.dtype, to.head_stride, to.row_stride});
  });
}
