// SPDX-License-Identifier: MIT
#include "tests/support/test_models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/check.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"

namespace snapkv::test {
namespace {

TestModel tiny(DType dtype) {
  const char* shape = block_size(dtype) > 32 ? "tiny-wide" : "tiny-gqa";
  TestModel m{"tiny-" + std::string(name(dtype)), random_model_shape(shape), {}};
  m.options.dtype = dtype;
  m.options.seed = 1;
  // Large enough that attention and rotation matter (with 0.02 all scores are near zero), but
  // smaller for block types, so that llama.cpp's rounding of activations stays below the tests'
  // 5e-2.
  m.options.weight_stddev = block_size(dtype) > 32 ? 0.035f : block_size(dtype) > 1 ? 0.06f : 0.12f;
  m.options.norm_stddev = 0.2f;
  return m;
}

TestModel tiny_options() {
  TestModel m = tiny(DType::f32);
  m.name = "tiny-options";
  m.shape.n_head_kv = m.shape.n_head;
  m.options.tied_output = false;
  m.options.qkv_bias = true;
  m.options.rope_freqs = true;
  m.options.rope_linear_factor = 2.0;
  return m;
}

}  // namespace

const std::vector<TestModel>& test_models() {
  static const std::vector<TestModel> models = [] {
    std::vector<TestModel> all = {tiny_options()};
    for (const DType type : kWeightTypes) all.push_back(tiny(type));
    return all;
  }();
  return models;
}

std::string model_path(const std::string& model) {
  if (model == "needle") return std::string(SNAPKV_SOURCE_DIR) + "/models/needle.gguf";
  static TempDir folder;
  static std::map<std::string, std::string> written;
  std::string& path = written[model];
  if (path.empty()) {
    for (const TestModel& m : test_models()) {
      if (m.name != model) continue;
      path = folder / (model + ".gguf");
      write_random_model(path, m.shape, m.options);
    }
    for (const FamilyModel& m : family_models()) {
      if (m.name != model) continue;
      path = folder / (model + ".gguf");
      write_family_model(model, path);
    }
    SNAPKV_CHECK(!path.empty());
  }
  return path;
}

std::shared_ptr<const Model> load_model(const std::string& model, Compute compute, int n_threads,
                                        const std::string& device) {
  static std::map<std::tuple<std::string, Compute, int, std::string>, std::shared_ptr<const Model>>
      cache;
  auto& loaded = cache[{model, compute, n_threads, device}];
  if (!loaded) {
    ModelOptions options;
    options.path = model_path(model);
    options.compute = compute;
    options.n_threads = n_threads;
    options.device = device;
    loaded = Model::load(options);
  }
  return loaded;
}

std::vector<int32_t> generated_ids(int64_t n, int64_t n_vocab, uint32_t seed) {
  std::vector<int32_t> ids;
  uint32_t state = seed;
  for (int64_t i = 0; i < n; ++i) {
    state = state * 1664525u + 1013904223u;
    ids.push_back(3 + static_cast<int32_t>((state >> 8) % static_cast<uint32_t>(n_vocab - 3)));
  }
  return ids;
}

double log_probability(std::span<const float> logits, int32_t id) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float l : logits) sum += std::exp(l - max);
  return logits[static_cast<size_t>(id)] - max - std::log(sum);
}

}  // namespace snapkv::test
