// SPDX-License-Identifier: MIT
// Whole sessions on a CUDA device, or with its kernels on the host (tests/support/cuda_on_host),
// give the same logits, rows and tokens as on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/half.h"
#include "snapkv/compress.h"
#include "snapkv/prefill.h"
#include "tests/engine/session_support.h"
#include "tests/support/expect_error.h"
#include "tests/support/family_models.h"
#include "tests/support/test_models.h"
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
#include "tests/support/cuda_on_host/host_device.h"
#include "tests/support/cuda_on_host/register_on_host.h"
#endif

namespace snapkv::test {
namespace {

class CudaSession : public testing::Test {
 protected:
  void SetUp() override {
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
    register_on_host();
    cuda_on_host::guard_memory(false);
#else
    try {
      load_model("tiny-f32", Compute::f32, 1, "cuda");
    } catch (const Error& e) {
      GTEST_SKIP() << "NOT TESTED: " << e.what();
    }
#endif
  }
};

SessionOptions options_of(const std::string& policy, DType kv_type, int64_t budget = 64) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = budget;
  options.kv.window_size = 16;
  options.kv_type = kv_type;
  options.chunk = 50;  // not a multiple of any tile
  return options;
}

// Products are in f32 everywhere, so that only the order of sums differs.
TEST_F(CudaSession, ComputesWhatTheCpuComputes) {
  for (const char* model : {"tiny-f32", "tiny-q8_0", "tiny-options"}) {
    for (const int64_t n : {6, 40}) {  // kernels that read the weights' type, and packed products
      SCOPED_TRACE(model);
      const auto ids = generated_ids(n, kVocab, 1);
      const SessionOptions options = options_of("full", DType::f32);
      Session cpu(load_model(model), options);
      Session gpu(load_model(model, Compute::f32, 1, "cuda"), options);
      cpu.prefill(ids);
      gpu.prefill(ids);
      EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 2e-4);
      for (const int32_t id : generated_ids(4, kVocab, 2)) {  // a plain step, recorded, replayed
        cpu.decode(id);
        gpu.decode(id);
        EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 2e-4);
      }
    }
  }
}

TEST_F(CudaSession, KeepsTheRowsThatTheCpuKeeps) {
#ifdef SNAPKV_CUDA_ON_HOST_TESTS
  cuda_on_host::guard_memory(true);  // policies may read scores and rows only by copies
#endif
  const auto ids = generated_ids(90, kVocab, 3);
  for (const char* policy :
       {"snapkv", "pyramidkv", "ada-snapkv", "streaming-llm", "h2o", "tova", "knorm", "keydiff",
        "expected-attention", "chunkkv", "kvzip", "random"}) {
    SCOPED_TRACE(policy);
    const SessionOptions options = options_of(policy, DType::f32, 40);
    Session cpu(load_model("tiny-f32"), options);
    Session gpu(load_model("tiny-f32", Compute::f32, 1, "cuda"), options);
    cpu.prefill(ids);
    gpu.prefill(ids);
    int64_t n_rows = 0, n_other = 0;
    for (int il = 0; il < cpu.model().info().n_layer; ++il) {
      for (int h = 0; h < cpu.model().info().n_head_kv; ++h) {
        const auto a = cpu.cached_positions(il, h), b = gpu.cached_positions(il, h);
        ASSERT_EQ(a.size(), b.size());
        std::vector<int32_t> other;
        std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(other));
        n_rows += std::ssize(a);
        n_other += std::ssize(other);
      }
    }
    // Scores that are equal except for the last bits may be exchanged.
    EXPECT_LE(n_other * 200, n_rows);
  }
}

// All but models that need many layers to be of their family, and have none that others lack.
std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const FamilyModel& family : family_models()) {
    if (family.shape.n_layer < 32) names.push_back(family.name);
  }
  return names;
}

class CudaFamily : public CudaSession, public testing::WithParamInterface<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, CudaFamily, testing::ValuesIn(family_names()), [](const auto& p) {
  std::string name = p.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// Windows, caps, norms, biases, scales, learned positions and every kind of rotation.
TEST_P(CudaFamily, ComputesWhatTheCpuComputes) {
  SessionOptions options = options_of("snapkv", DType::f32, 32);
  options.chunk = 30;
  Session cpu(load_model(GetParam()), options);
  Session gpu(load_model(GetParam(), Compute::f32, 1, "cuda"), options);
  for (Session* s : {&cpu, &gpu}) s->prefill(generated_ids(44, kFamilyVocab, 1));
  EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 1e-3);
  for (Session* s : {&cpu, &gpu}) s->prefill(generated_ids(7, kFamilyVocab, 2));
  EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 1e-3);
  for (const int32_t id : generated_ids(4, kFamilyVocab, 3)) {  // two of them are replayed
    cpu.decode(id);
    gpu.decode(id);
    EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 1e-3);
  }
  const std::vector<int32_t> guessed = generated_ids(3, kFamilyVocab, 4);
  const StepTokens step = guessed;
  for (Session* s : {&cpu, &gpu}) {
    decode_steps({&s, 1}, {&step, 1});
    s->keep_decoded(2);
    s->decode(5);
  }
  EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 1e-3);
}

// States of layers without rows are set aside in the middle of a chunk, and prompts go on from
// them.
TEST_F(CudaSession, APromptGoesOnFromAPrefixOfAHybrid) {
  for (const char* name :
       {"lfm2", "nemotron_h", "falcon-h1", "kimi-linear", "jamba-moe", "mamba", "rwkv7", "rwkv6"}) {
    SCOPED_TRACE(name);
    const SessionOptions options = options_of("full", DType::f32);
    const auto cpu_model = load_model(name), gpu_model = load_model(name, Compute::f32, 1, "cuda");
    const std::vector<int32_t> first = generated_ids(150, kFamilyVocab, 1);
    Session session(gpu_model, options);
    PrefillPrompt prompt;
    prompt.sessions = {&session};
    prompt.tokens = first;
    prompt.makes_prefix = true;
    Prefill prefill(std::move(prompt));
    while (!prefill.step()) {
    }
    const std::shared_ptr<const KvPrefix> prefix = prefill.take_prefix();
    for (const int64_t n : {86, 150}) {
      ASSERT_EQ(prefix->last_cut(n + 10), n);
      std::vector<int32_t> tokens(first.begin(), first.begin() + n);
      for (const int32_t id : generated_ids(40, kFamilyVocab, 2)) tokens.push_back(id);
      Session cpu(cpu_model, options), gpu(gpu_model, options);
      cpu.prefill(tokens);
      gpu.prefill(tokens, {.prefix = prefix, .n_from_prefix = n});
      EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 1e-3) << "from token " << n;
      for (Session* s : {&cpu, &gpu}) s->decode(300);
      EXPECT_LT(max_difference(cpu.logits(), gpu.logits()), 1e-3) << "after token " << n;
    }
  }
}

TEST_F(CudaSession, TheNeedleModelGivesTheSameAnswer) {
  const auto cpu_model = load_model("needle", Compute::f32);
  const auto gpu_model = load_model("needle", Compute::automatic, 1, "cuda");
  std::string text = "The secret number of Rome is 48213. ";
  for (int i = 0; i < 4; ++i) text += "The old garden was quiet in the evening. ";
  text += "What is the secret number of Rome? Answer:";
  const auto ids = cpu_model->tokenize(text, true, false);
  for (const DType kv_type : {DType::f16, DType::q8_0}) {
    for (const int64_t budget : {64, 4096}) {
      const SessionOptions options = options_of("snapkv", kv_type, budget);
      Session cpu(cpu_model, options), gpu(gpu_model, options);
      cpu.prefill(ids);
      gpu.prefill(ids);
      std::string answers[2];
      for (Session* s : {&cpu, &gpu}) {
        for (int i = 0; i < 8; ++i) {
          const auto logits = s->logits();
          const auto best =
              static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
          answers[s == &gpu] += cpu_model->piece(best);
          s->decode(best);
        }
      }
      EXPECT_EQ(answers[0], answers[1]);
    }
  }
}

TEST_F(CudaSession, BatchesAndTurnsAndLimits) {
  SessionOptions options = options_of("snapkv", DType::f16, 24);
  options.kv_decode_limit = 30;
  const auto cpu_model = load_model("tiny-f32"),
             gpu_model = load_model("tiny-f32", Compute::f32, 1, "cuda");
  const auto ids = generated_ids(50, kVocab, 4);
  {
    Session cpu_a(cpu_model, options), cpu_b(cpu_model, options);
    Session gpu_a(gpu_model, options), gpu_b(gpu_model, options);
    for (Session* s : {&cpu_a, &gpu_a}) s->prefill(ids);
    for (Session* s : {&cpu_b, &gpu_b}) s->prefill(std::span(ids).first(20));
    for (Session* s : {&cpu_b, &gpu_b}) s->prefill(std::span(ids).last(30));  // a second turn
    Session* cpu[] = {&cpu_a, &cpu_b};
    Session* gpu[] = {&gpu_a, &gpu_b};
    for (const int32_t id : generated_ids(9, kVocab, 5)) {
      const int32_t next[] = {id, id + 1};
      decode_batch(cpu, next);
      decode_batch(gpu, next);
    }
    EXPECT_GT(gpu_a.stats().n_recompressed, 0);
    for (int i = 0; i < 2; ++i) {  // f16 rows, rounded from sums in another order
      EXPECT_LT(max_difference(cpu[i]->logits(), gpu[i]->logits()), 2e-2);
    }
  }
}

// compress.h with device memory, as used by an engine with its own tensors.
TEST_F(CudaSession, CompressesTheMemoryOfOthers) {
  constexpr int64_t kTokens = 150, kHeads = 4, kHeadsKv = 2, kDim = 64, kWindow = 16;
  std::vector<f16_t> q, k;  // [n, heads, dim]
  uint32_t state = 1;
  const auto draw = [&] {
    state = state * 1664525 + 1013904223;
    return to_f16(static_cast<float>(state >> 8) / (1 << 23) - 1.0f);
  };
  for (int64_t i = 0; i < kWindow * kHeads * kDim; ++i) q.push_back(draw());
  for (int64_t i = 0; i < kTokens * kHeadsKv * kDim; ++i) k.push_back(draw());
  const auto backend = Backend::make({.device = "cuda"});
  const Buffer q_device = backend->allocate(q.size() * 2, "q"),
               k_device = backend->allocate(k.size() * 2, "k");
  backend->upload(q_device.data(), q.data(), q.size() * 2);
  backend->upload(k_device.data(), k.data(), k.size() * 2);

  LayerView layer;
  layer.n_tokens = kTokens, layer.n_window = kWindow;
  layer.n_head = kHeads, layer.n_head_kv = kHeadsKv, layer.head_dim = kDim;
  layer.q = {q.data(), DType::f16, kDim, kHeads * kDim};
  layer.k = {k.data(), DType::f16, kDim, kHeadsKv * kDim};
  const PolicyConfig config = {.budget = 40, .window_size = kWindow};
  const KvSelection expected = Compressor(config).select(layer);
  const auto expected_rows = gather_kv(layer, layer.k, expected);

  Compressor compressor(config, {.device = "cuda"});
  LayerView on_device = layer;
  on_device.q.data = q_device.data();
  on_device.k.data = k_device.data();
  EXPECT_EQ(compressor.select(on_device), expected);
  const Buffer kept = backend->allocate(kHeadsKv * 40 * kDim * 2, "kept");
  compressor.gather(on_device, on_device.k, expected, {kept.data(), DType::f16, 40 * kDim, kDim});
  backend->synchronize();
  compressor.select(on_device);  // waits for the copies, which are in the same stream
  for (size_t h = 0; h < kHeadsKv; ++h) {
    std::vector<std::byte> rows(40 * kDim * 2);
    backend->download(rows.data(), static_cast<const char*>(kept.data()) + h * rows.size(),
                      rows.size());
    EXPECT_EQ(rows, expected_rows[h]);
  }
}

#ifdef SNAPKV_CUDA_ON_HOST_TESTS
TEST_F(CudaSession, TooLittleDeviceMemory) {
  const auto model = load_model("tiny-f32", Compute::f32, 1, "cuda");
  const SessionOptions options = options_of("snapkv", DType::f16);
  const auto ids = generated_ids(90, kVocab, 6);
  Session plenty(model, options);
  plenty.prefill(ids);

  // The prompt's hidden states no longer fit, so they go to host memory, one chunk at a time.
  const MemoryPlan plan = model->plan(options, 90);
  Session short_of_it(model, options);
  const size_t needed = plan.total() - plan.weights;
  cuda_on_host::limit_memory(cuda_on_host::allocated_memory() + needed - 1);
  short_of_it.prefill(ids);
  EXPECT_EQ(max_difference(plenty.logits(), short_of_it.logits()), 0);

  cuda_on_host::limit_memory(cuda_on_host::allocated_memory() + needed / 4);
  Session none(model, options);
  expect_error(ErrorCode::kDoesNotFit, {"90 tokens", "available"}, [&] { none.prefill(ids); });
  cuda_on_host::limit_memory(SIZE_MAX);
  none.prefill(ids);
  EXPECT_EQ(max_difference(plenty.logits(), none.logits()), 0);
}
#endif

}  // namespace
}  // namespace snapkv::test
