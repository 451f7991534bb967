// SPDX-License-Identifier: MIT
// MeasuringBackend counts what is allocated and what kernels would take, and touches no memory.
#include "backend/measure/measuring_backend.h"

#include <gtest/gtest.h>

#include <vector>

#include "backend/ops.h"

namespace snapkv::test {
namespace {

constexpr const char* kApart[] = {"apart", kPackedWeights};

DeviceTraits cpu_traits() { return {.device = "cpu", .compute = DType::f32, .n_threads = 2}; }

TEST(MeasuringBackend, CountsPeaksByLabel) {
  MeasuringBackend backend(cpu_traits(), kApart);
  EXPECT_FALSE(backend.computes());
  Buffer a = backend.allocate(1000, "apart");
  {
    const Buffer b = backend.allocate(300, "one"), c = backend.allocate_host(20, "another");
    EXPECT_NE(a.data(), b.data());
    EXPECT_EQ(b.bytes(), 300u);
  }
  const Buffer d = backend.allocate(100, "one");
  a = Buffer();
  a = backend.allocate(900, "apart");
  EXPECT_EQ(backend.peak("apart"), 1000u);
  EXPECT_EQ(backend.peak_of_others(), 320u);
  EXPECT_EQ(backend.allocate(0, "one").data(), nullptr);
}

TEST(MeasuringBackend, CountsOfAFileWhatIsInMemory) {
  MeasuringBackend backend(cpu_traits(), kApart);
  const Buffer file = backend.allocate_in_file("/nowhere", 1 << 20, 4096, "apart");
  EXPECT_EQ(file.bytes(), 1u << 20);
  EXPECT_EQ(backend.peak("apart"), 4096u);
}

TEST(MeasuringBackend, DoesNotCountADevicesHost) {
  MeasuringBackend backend({.device = "cuda", .compute = DType::bf16}, kApart);
  EXPECT_TRUE(backend.is_device());
  const Buffer host = backend.allocate_host(1000, "apart");
  const Buffer pinned = backend.allocate_pinned(1000, "apart");
  EXPECT_EQ(backend.peak("apart"), 0u);
}

// Memory without end: an op that touched it would end the process.
TEST(MeasuringBackend, ComputesNothing) {
  MeasuringBackend backend(cpu_traits(), kApart);
  const int64_t n = int64_t{1} << 40;
  const Buffer storage = backend.allocate(2 * n * sizeof(float), "apart");
  const Tensor x = storage.view(DType::f32, {n, 1});
  ops::add(backend, x, storage.view(DType::f32, {n, 1}, n * sizeof(float)), 1.0f);
  ops::softcap(backend, x, 2.0f);
  backend.copy(x.data, x.at<float>(1), n);
  float value = 5.0f;
  backend.download(&value, x.data, sizeof(value));
  EXPECT_EQ(value, 5.0f);
}

// The kernels of the device say what they take: here keys of 8 bytes for each row that one of two
// threads ranks.
TEST(MeasuringBackend, AsksTheKernels) {
  MeasuringBackend backend(cpu_traits(), kApart);
  const int32_t n = 100'000;
  const Buffer scores = backend.allocate(2 * n * sizeof(float), "apart");
  const Buffer rows = backend.allocate(2 * 10 * sizeof(int32_t), "apart");
  const std::vector<int32_t> all = {n, n}, k = {10, 10};
  ops::top_k(backend, scores.view(DType::f32, {2, n}), all, k, 0, rows.view(DType::i32, {2, 10}));
  EXPECT_EQ(backend.most_workspace(), 2u * n * sizeof(uint64_t));
}

TEST(MeasuringBackend, PacksWeightsOnceOrInProducts) {
  const int64_t n_out = 512, n_in = 2048;
  for (const char* device : {"cpu", "cuda"}) {
    DeviceTraits traits = cpu_traits();
    traits.device = device;
    traits.asked = Compute::f32;
    const size_t bytes = n_out * n_in * sizeof(float);
    MeasuringBackend once(traits, kApart);
    const Buffer w = once.allocate(bytes, "apart");
    PackedWeight packed;
    ops::pack(once, w.view(DType::f32, {n_out, n_in}), packed);
    EXPECT_EQ(once.peak(kPackedWeights), bytes);
    EXPECT_EQ(packed.n_out, n_out);
  }
  MeasuringBackend at_use(cpu_traits(), kApart);
  PackWorkspace workspace;
  PackedWeight packed;
  packed.workspace = &workspace;
  const Buffer w = at_use.allocate(n_out * n_in * sizeof(float), "apart");
  const Buffer x = at_use.allocate(300 * n_in * sizeof(float), "apart");
  const Buffer out = at_use.allocate(300 * n_out * sizeof(float), "apart");
  ops::pack(at_use, w.view(DType::f32, {n_out, n_in}), packed);
  EXPECT_EQ(at_use.peak(kPackedWeights), 0u);
  ops::project_packed(at_use, x.view(DType::f32, {300, n_in}), packed, {},
                      out.view(DType::f32, {300, n_out}), false);
  EXPECT_GT(at_use.peak(kPackedWeights), 0u);
  EXPECT_EQ(at_use.peak(kPackedWeights), workspace.memory.bytes());
  EXPECT_GT(at_use.most_workspace(), 0u);
}

}  // namespace
}  // namespace snapkv::test
