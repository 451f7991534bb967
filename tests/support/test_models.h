// SPDX-License-Identifier: MIT
// The small models for engine tests: the trained needle model, random models of Llama's form in
// every type, and those of family_models.h. Random files are written once per test process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/random_model.h"
#include "snapkv/engine.h"

namespace snapkv::test {

/// A random model: its shape and options, with a name ("tiny-q8_0").
struct TestModel {
  std::string name;
  RandomModelShape shape;
  RandomModelOptions options;
};

/// tiny-f32, tiny-q8_0, ... for every type that weights may have. All plain types and all types
/// with blocks of 32 have the same weights (rounded from the same f32 values); types with
/// superblocks have others. tiny-options: separate output, biases, rope_freqs, linear scaling, MHA.
const std::vector<TestModel>& test_models();

/// Path of a model: "needle", or a name from test_models() or family_models() (written on first
/// use).
std::string model_path(const std::string& name);

/// Loads a model; returns the same object for the same arguments.
std::shared_ptr<const Model> load_model(const std::string& name, Compute compute = Compute::f32,
                                        int n_threads = 2, const std::string& device = "cpu");

/// n token ids from a 32-bit linear congruential generator, without the control tokens 0 to 2; the
/// same as generated_ids() in tools/llama_oracle.py.
std::vector<int32_t> generated_ids(int64_t n, int64_t n_vocab, uint32_t seed);

/// log softmax(logits)[id], in f64.
double log_probability(std::span<const float> logits, int32_t id);

}  // namespace snapkv::test
