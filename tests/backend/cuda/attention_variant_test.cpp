// SPDX-License-Identifier: MIT
// Sliding windows, capped scores and sinks on a CUDA device against ref/: prefill, decode, votes.
#include <cmath>
#include <string>
#include <vector>

#include "tests/backend/cuda/cuda_test_util.h"

namespace snapkv::test {
namespace {

struct VariantCase {
  const char* name;
  int64_t window;
  float softcap;
  bool sinks;
};
constexpr VariantCase kCases[] = {{"window1", 1, 0, false},     {"window50", 50, 0, false},
                                  {"window128", 128, 0, false}, {"softcap", 0, 3.0f, false},
                                  {"sinks", 0, 0, true},        {"all", 70, 2.0f, true}};

class CudaAttentionVariant : public CudaTest {
 protected:
  /// The variant of a case, with sinks in host memory for ref/ or in the device's.
  static AttentionVariant variant(const VariantCase& c, const Tensor& sinks) {
    AttentionVariant v{.window = c.window, .softcap = c.softcap};
    if (c.sinks) v.sinks = sinks;
    return v;
  }
  static TestTensor make_sinks(int64_t n_head) {
    return random_tensor({n_head}, 77, DType::f32, 3.0f);
  }
};

/// q, k and probabilities of 11 or 8 bits, as in attention_test.cpp; a cap of 3 or 2 makes errors
/// of scores smaller, sinks and windows change none.
double error_of(DType kv) { return kv == DType::f32 ? 1e-5 : kv == DType::f16 ? 2e-3 : 1e-2; }

TEST_F(CudaAttentionVariant, Prefill) {
  struct Shape {
    int64_t n, n_head_kv, n_group, head_dim;
    std::vector<int32_t> n_past;
  };
  const Shape shapes[] = {{40, 2, 2, 64, {0, 130}}, {3, 1, 2, 96, {1500}}, {20, 1, 1, 264, {90}}};
  for (const VariantCase& c : kCases) {
    for (const Shape& s : shapes) {
      for (const DType kv : {DType::f32, DType::f16, DType::bf16}) {
        SCOPED_TRACE(std::string(c.name) + " " + std::to_string(s.head_dim) + " " +
                     std::string(name(kv)));
        const int64_t n_head = s.n_head_kv * s.n_group;
        const int64_t capacity = *std::max_element(s.n_past.begin(), s.n_past.end()) + s.n;
        const TestTensor q = random_tensor({s.n, n_head, s.head_dim}, 1, DType::f32, 2.0f);
        const TestTensor k = random_tensor({s.n_head_kv, capacity, s.head_dim}, 2, kv);
        const TestTensor v = random_tensor({s.n_head_kv, capacity, s.head_dim}, 3, kv);
        const TestTensor sinks = make_sinks(n_head), expected({s.n, n_head, s.head_dim});
        const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
        ops::attention_prefill(reference(), {.q = q,
                                             .k = k,
                                             .v = v,
                                             .n_past = s.n_past,
                                             .scale = scale,
                                             .out = expected,
                                             .variant = variant(c, sinks)});
        const DeviceTensor dq = device(q), dk = device(k), dv = device(v), ds = device(sinks);
        both_orders([&] {
          const DeviceTensor out = device(TestTensor({s.n, n_head, s.head_dim}));
          ops::attention_prefill(cuda(), {.q = dq,
                                          .k = dk,
                                          .v = dv,
                                          .n_past = s.n_past,
                                          .scale = scale,
                                          .out = out,
                                          .variant = variant(c, ds)});
          EXPECT_LT(relative_error(out.host(), expected), error_of(kv));
        });
      }
    }
  }
}

TEST_F(CudaAttentionVariant, Decode) {
  for (const VariantCase& c : kCases) {
    if (c.window > 0) continue;  // decode's rows are those that its query sees
    for (const DType kv : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
      SCOPED_TRACE(std::string(c.name) + " " + std::string(name(kv)));
      const int64_t n_head = 6, head_dim = 64;
      const std::vector<int32_t> n_kv = {1, 700, 64, 130};  // 2 sequences, 2 KV heads
      const TestTensor q = random_tensor({2, n_head, head_dim}, 1, DType::f32, 2.0f);
      const TestTensor sinks = make_sinks(n_head), expected({2, n_head, head_dim});
      std::vector<TestTensor> k, v;
      std::vector<DeviceTensor> dk, dv;
      std::vector<HeadRows> heads, device_heads;
      for (const int32_t n : n_kv) {
        k.push_back(random_tensor({n, head_dim}, 10 + n, kv));
        v.push_back(random_tensor({n, head_dim}, 20 + n, kv));
        dk.push_back(device(k.back()));
        dv.push_back(device(v.back()));
      }
      for (size_t i = 0; i < k.size(); ++i) {
        heads.push_back({k[i].data(), v[i].data(), n_kv[i]});
        device_heads.push_back({dk[i].data(), dv[i].data(), n_kv[i]});
      }
      const DeviceTensor dq = device(q), ds = device(sinks);
      ops::attention_decode(reference(), {.q = q,
                                          .heads = heads,
                                          .kv_dtype = kv,
                                          .scale = 0.125f,
                                          .out = expected,
                                          .variant = variant(c, sinks)});
      both_orders([&] {
        const DeviceTensor out = device(TestTensor({2, n_head, head_dim}));
        ops::attention_decode(cuda(), {.q = dq,
                                       .heads = device_heads,
                                       .kv_dtype = kv,
                                       .scale = 0.125f,
                                       .out = out,
                                       .variant = variant(c, ds)});
        EXPECT_TRUE(all_close(out.host(), expected, {1e-4, 5e-4}));
      });
    }
  }
}

TEST_F(CudaAttentionVariant, Votes) {
  for (const VariantCase& c : kCases) {
    for (const DType kv : {DType::f32, DType::f16, DType::bf16}) {
      for (const bool whole : {false, true}) {
        SCOPED_TRACE(std::string(c.name) + " " + std::string(name(kv)));
        const int64_t n_head = 4, head_dim = 64, capacity = 200;
        const std::vector<int32_t> n_rows = {200, 37};
        const TestTensor q = random_tensor({20, n_head, head_dim}, 1, DType::f32, 2.0f);
        const TestTensor k = random_tensor({2, capacity, head_dim}, 2, kv);
        const TestTensor sinks = make_sinks(n_head), expected({2, capacity});
        ops::window_votes(reference(), {.q = q,
                                        .k = k,
                                        .n_rows = n_rows,
                                        .scale = 0.125f,
                                        .votes = expected,
                                        .whole = whole,
                                        .variant = variant(c, sinks)});
        const DeviceTensor dq = device(q), dk = device(k), ds = device(sinks);
        both_orders([&] {
          const DeviceTensor out = device(TestTensor({2, capacity}));
          ops::window_votes(cuda(), {.q = dq,
                                     .k = dk,
                                     .n_rows = n_rows,
                                     .scale = 0.125f,
                                     .votes = out,
                                     .whole = whole,
                                     .variant = variant(c, ds)});
          EXPECT_TRUE(all_close(out.host(), expected, {2e-6, 5e-4}));
        });
      }
    }
  }
}

}  // namespace
}  // namespace snapkv::test
