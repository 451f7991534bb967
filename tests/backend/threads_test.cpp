// SPDX-License-Identifier: MIT
// Whatever the number of threads, each op of the CPU backend gives the same bits: one case per op,
// type and compute type, large enough that its kernel shares the work out.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/ops.h"
#include "tests/backend/op_test_util.h"
#include "tests/support/processor.h"

namespace snapkv::test {
namespace {

constexpr std::array kWeightTypes = {DType::f32,  DType::f16,  DType::bf16, DType::q8_0,
                                     DType::q4_0, DType::q4_k, DType::q5_k, DType::q6_k};
constexpr std::array kKvTypes = {DType::f32, DType::f16, DType::bf16};
constexpr std::array kCacheTypes = {DType::f32, DType::f16, DType::bf16, DType::q8_0};

using Bytes = std::vector<char>;

struct OpCase {
  std::string name;
  Compute compute = Compute::f32;
  std::function<Bytes(Backend&)> run;
};

Bytes bytes_of(const TestTensor& t) { return {t.as<char>(), t.as<char>() + t.bytes()}; }

/// Rows of heads, each in memory of its own, as caches have them.
struct Heads {
  Heads(int64_t n_heads, int64_t n_rows, int64_t head_dim, DType dtype)
      : tensors(n_heads, TestTensor({n_rows, head_dim}, dtype)) {
    for (const TestTensor& t : tensors) pointers.push_back(t.data());
  }
  Bytes bytes() const {
    Bytes all;
    for (const TestTensor& t : tensors)
      all.insert(all.end(), t.as<char>(), t.as<char>() + t.bytes());
    return all;
  }
  std::vector<TestTensor> tensors;
  std::vector<void*> pointers;
};

void add_row_cases(std::vector<OpCase>& cases) {
  cases.push_back({"embed", Compute::f32, [](Backend& b) {
                     std::vector<int32_t> ids(300);
                     for (int i = 0; i < 300; ++i) ids[i] = i * 7 % 50;
                     TestTensor out({300, 512});
                     ops::embed(b, random_tensor({50, 512}, 1, DType::q4_k), ids, out);
                     return bytes_of(out);
                   }});
  cases.push_back(
      {"rms_norm", Compute::f32, [](Backend& b) {
         TestTensor out({301, 768});
         ops::rms_norm(b, random_tensor({301, 768}, 1), random_tensor({768}, 2), 1e-5f, out);
         return bytes_of(out);
       }});
  cases.push_back(
      {"activate", Compute::f32, [](Backend& b) {
         TestTensor out({301, 768});
         ops::activate(b, Activation::silu, random_tensor({301, 768}, 1),
                       random_tensor({301, 768}, 2), out);
         return bytes_of(out);
       }});
  for (const RopeLayout layout : {RopeLayout::norm, RopeLayout::neox}) {
    cases.push_back({layout == RopeLayout::norm ? "rope_norm" : "rope_neox", Compute::f32,
                     [layout](Backend& b) {
                       TestTensor x = random_tensor({301, 4, 64}, 1);
                       std::vector<int32_t> pos(301);
                       for (int i = 0; i < 301; ++i) pos[i] = 3 * i;
                       std::vector<double> inv_freq(32);
                       for (int i = 0; i < 32; ++i) inv_freq[i] = std::pow(1e4, -i / 32.0);
                       ops::rope(b, x, pos, {inv_freq, layout});
                       return bytes_of(x);
                     }});
  }
}

void add_product_cases(std::vector<OpCase>& cases) {
  for (const DType type : kWeightTypes) {
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      const std::string suffix =
          std::string("_") + std::string(name(type)) + (compute == Compute::f32 ? "_f32" : "_bf16");
      cases.push_back({"project" + suffix, compute, [type](Backend& b) {
                         Bytes all;
                         const TestTensor w = random_tensor({203, 1024}, 2, type);
                         const TestTensor v = random_tensor({70, 1024}, 3, type);
                         for (const int64_t n : {1, 5, 8, 19}) {
                           TestTensor out({n, 203}), second({n, 70});
                           ops::project(b, random_tensor({n, 1024}, 1),
                                        std::array{Projection{.w = w, .bias = {}, .out = out},
                                                   Projection{.w = v, .bias = {}, .out = second}});
                           for (const TestTensor* t : {&out, &second}) {
                             all.insert(all.end(), t->as<char>(), t->as<char>() + t->bytes());
                           }
                         }
                         return all;
                       }});
      cases.push_back({"pack" + suffix, compute, [type](Backend& b) {
                         PackedWeight packed;
                         ops::pack(b, random_tensor({203, 768}, 2, type), packed);
                         const char* begin = static_cast<const char*>(packed.storage.data());
                         // at least this much holds values in every layout
                         return Bytes(begin, begin + 203 * row_bytes(b.compute_dtype(), 768));
                       }});
    }
  }
}

void add_attention_cases(std::vector<OpCase>& cases) {
  for (const DType kv : kKvTypes) {
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      const std::string suffix =
          "_" + std::string(name(kv)) + (compute == Compute::f32 ? "_f32" : "_bf16");
      cases.push_back(
          {"attention_prefill" + suffix, compute, [kv](Backend& b) {
             const TestTensor q = random_tensor({150, 6, 64}, 1);
             const TestTensor k = random_tensor({2, 900, 64}, 2, kv);
             const TestTensor v = random_tensor({2, 900, 64}, 3, kv);
             const std::vector<int32_t> n_past = {700, 37};
             TestTensor out({150, 6, 64});
             ops::attention_prefill(
                 b, {.q = q, .k = k, .v = v, .n_past = n_past, .scale = 0.125f, .out = out});
             return bytes_of(out);
           }});
    }
    cases.push_back(
        {"window_votes_" + std::string(name(kv)), Compute::f32, [kv](Backend& b) {
           const TestTensor q = random_tensor({16, 6, 64}, 1);
           const TestTensor k = random_tensor({2, 3000, 64}, 2, kv);
           const std::vector<int32_t> n_rows = {2999, 1300};
           TestTensor votes({2, 2999});
           ops::window_votes(
               b,
               {.q = q, .k = k, .n_rows = n_rows, .scale = 0.125f, .votes = votes, .whole = true});
           return bytes_of(votes);
         }});
  }
  for (const DType kv : kCacheTypes) {
    cases.push_back({"attention_decode_" + std::string(name(kv)), Compute::f32, [kv](Backend& b) {
                       const std::vector<int32_t> n_kv = {3000, 1, 513, 700};
                       std::vector<TestTensor> rows;
                       std::vector<HeadRows> heads;
                       for (size_t h = 0; h < n_kv.size(); ++h) {
                         rows.push_back(random_tensor({n_kv[h], 64}, 2 * h + 5, kv));
                         rows.push_back(random_tensor({n_kv[h], 64}, 2 * h + 6, kv));
                       }
                       for (size_t h = 0; h < n_kv.size(); ++h) {
                         heads.push_back({rows[2 * h].data(), rows[2 * h + 1].data(), n_kv[h]});
                       }
                       TestTensor out({2, 6, 64});
                       ops::attention_decode(b, {.q = random_tensor({2, 6, 64}, 1),
                                                 .heads = heads,
                                                 .kv_dtype = kv,
                                                 .scale = 0.125f,
                                                 .out = out});
                       return bytes_of(out);
                     }});
  }
}

void add_cache_cases(std::vector<OpCase>& cases) {
  for (const DType kv : kCacheTypes) {
    cases.push_back({"store_rows_" + std::string(name(kv)), Compute::f32, [kv](Backend& b) {
                       const Heads to(2, 301, 64, kv);
                       ops::store_rows(b, random_tensor({301, 2, 64}, 1), kv, to.pointers);
                       return to.bytes();
                     }});
    cases.push_back({"convert_rows_" + std::string(name(kv)), Compute::f32, [kv](Backend& b) {
                       const TestTensor from = random_tensor({2, 700, 64}, 1, DType::f16);
                       const Heads to(2, 700, 64, kv);
                       const std::vector<const void*> src = {from.view().at<const void>(0),
                                                             from.view().at<const void>(1)};
                       const std::vector<int32_t> n = {700, 411};
                       ops::convert_rows(b, {.src = src,
                                             .src_dtype = DType::f16,
                                             .head_dim = 64,
                                             .rows = {},
                                             .n = n,
                                             .dst_dtype = kv,
                                             .dst = to.pointers});
                       return to.bytes();
                     }});
  }
  cases.push_back({"gather_rows", Compute::f32, [](Backend& b) {
                     const TestTensor from = random_tensor({2, 900, 64}, 1, DType::f16);
                     TestTensor rows({2, 600}, DType::i32);
                     for (int i = 0; i < 1200; ++i) rows.as<int32_t>()[i] = i * 13 % 900;
                     const Heads to(2, 600, 64, DType::f16);
                     ops::gather_rows(b, from, rows, std::vector<int32_t>{600, 299}, to.pointers);
                     return to.bytes();
                   }});
  for (const Pooling pooling : {Pooling::max, Pooling::avg}) {
    cases.push_back(
        {pooling == Pooling::max ? "pool_max" : "pool_avg", Compute::f32, [pooling](Backend& b) {
           TestTensor out({3, 9000});
           ops::pool(b, random_tensor({3, 9000}, 1), std::vector<int32_t>{9000, 4097, 5}, 7,
                     pooling, out);
           return bytes_of(out);
         }});
  }
  cases.push_back({"top_k", Compute::f32, [](Backend& b) {
                     TestTensor scores = random_tensor({3, 9000}, 1);
                     for (int i = 0; i < 9000; i += 3) scores.as<float>()[i] = 0.5f;  // ties
                     TestTensor rows({3, 1040}, DType::i32);
                     ops::top_k(b, scores, std::vector<int32_t>{9000, 4097, 1030},
                                std::vector<int32_t>{1024, 1024, 1024}, 16, rows);
                     return bytes_of(rows);
                   }});
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> cases;
  add_row_cases(cases);
  add_product_cases(cases);
  add_attention_cases(cases);
  add_cache_cases(cases);
  return cases;
}

class ThreadsTest : public testing::TestWithParam<OpCase> {};

TEST_P(ThreadsTest, GiveTheSameBits) {
  const OpCase& c = GetParam();
  if (!runs(c.compute)) GTEST_SKIP() << "this processor multiplies no bf16";
  const Bytes expected = c.run(*make_cpu(1, c.compute));
  EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [](char byte) { return byte != 0; }));
  for (const int n_threads : {2, 3, 4, 7}) {
    EXPECT_TRUE(c.run(*make_cpu(n_threads, c.compute)) == expected) << n_threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, ThreadsTest, testing::ValuesIn(all_cases()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace snapkv::test
