// SPDX-License-Identifier: MIT
// compress.h as used by another engine: the header's snippet, strides and types, gathering, and a
// clear error for every field that can be wrong. tests/policy tests what is selected.
#include "snapkv/compress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/policy/policy_test_util.h"
#include "tests/support/expect_error.h"

namespace snapkv::test {
namespace compress_tests {

constexpr int64_t kTokens = 700, kHead = 4, kHeadKv = 2, kHeadDim = 32, kWindow = 32;

// A prompt's tensors in the usual layout: one token after another.
struct Prompt {
  TestTensor q;  // [n_tokens, n_head, head_dim]
  TestTensor k;  // [n_tokens, n_head_kv, head_dim]
  TestTensor v;  // as k

  explicit Prompt(DType dtype)
      : q(random_tensor({kTokens, kHead, kHeadDim}, 1, dtype)),
        k(random_tensor({kTokens, kHeadKv, kHeadDim}, 2, dtype)),
        v(random_tensor({kTokens, kHeadKv, kHeadDim}, 3, dtype)) {}

  LayerView layer() const {
    const DType dtype = k.view().dtype;
    LayerView l;
    l.n_tokens = kTokens, l.n_window = kWindow;
    l.n_head = kHead, l.n_head_kv = kHeadKv, l.head_dim = kHeadDim;
    l.q = {q.view().at<void>(kTokens - kWindow), dtype, kHeadDim, kHead * kHeadDim};
    l.k = {k.data(), dtype, kHeadDim, kHeadKv * kHeadDim};
    l.v = {v.data(), dtype, kHeadDim, kHeadKv * kHeadDim};
    return l;
  }

  // The same values, for the oracle.
  Layer oracle_layer() const {
    Layer l;
    l.n_head = kHead, l.n_head_kv = kHeadKv, l.head_dim = kHeadDim;
    l.n_tokens = kTokens, l.n_window = kWindow;
    l.scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim));
    const std::vector<float> queries = q.values(), keys = k.values();
    l.q.assign(queries.end() - kWindow * kHead * kHeadDim, queries.end());
    for (int64_t h = 0; h < kHeadKv; ++h) {
      for (int64_t j = 0; j < kTokens; ++j) {
        const auto row = keys.begin() + (j * kHeadKv + h) * kHeadDim;
        l.k.insert(l.k.end(), row, row + kHeadDim);
      }
    }
    return l;
  }
};

TEST(Compress, TheHeadersSnippet) {
  const Prompt prompt(DType::bf16);
  const int64_t n_tokens = kTokens, n_head = kHead, n_head_kv = kHeadKv, head_dim = kHeadDim;
  const bf16_t* q = prompt.q.as<bf16_t>();
  const bf16_t* k = prompt.k.as<bf16_t>();
  const bf16_t* v = prompt.v.as<bf16_t>();

  snapkv::Compressor compressor({.budget = 128, .window_size = 32});  // 1024 in the header
  // your tensors: q [n_tokens, n_head, head_dim]; k and v [n_tokens, n_head_kv, head_dim]
  const int64_t n_window = std::min<int64_t>(n_tokens, 32);
  snapkv::LayerView layer;
  layer.n_tokens = n_tokens, layer.n_window = n_window;
  layer.n_head = n_head, layer.n_head_kv = n_head_kv, layer.head_dim = head_dim;
  layer.q = {q + (n_tokens - n_window) * n_head * head_dim, snapkv::DType::bf16, head_dim,
             n_head * head_dim};
  layer.k = {k, snapkv::DType::bf16, head_dim, n_head_kv * head_dim};
  layer.v = {v, snapkv::DType::bf16, head_dim, n_head_kv * head_dim};
  snapkv::KvSelection kept = compressor.select(layer);  // kept[h][i]: a position, ascending
  std::vector<std::vector<std::byte>> k_kept = snapkv::gather_kv(layer, layer.k, kept);
  std::vector<std::vector<std::byte>> v_kept = snapkv::gather_kv(layer, layer.v, kept);

  ASSERT_EQ(kept.size(), 2u);
  for (int64_t h = 0; h < n_head_kv; ++h) {
    const std::vector<int32_t>& rows = kept[static_cast<size_t>(h)];
    EXPECT_TRUE(is_selection(rows, oracle_scores(prompt.oracle_layer(), compressor.config(), h), 32,
                             128 - 32, kTolerance));
    for (const auto& [source, gathered] : {std::pair{k, k_kept}, std::pair{v, v_kept}}) {
      const std::vector<std::byte>& bytes = gathered[static_cast<size_t>(h)];
      ASSERT_EQ(bytes.size(), 128u * 32u * sizeof(bf16_t));
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(
            std::memcmp(bytes.data() + i * 64, source + (rows[i] * n_head_kv + h) * head_dim, 64),
            0)
            << "head " << h << ", row " << i;
      }
    }
  }
}

TEST(Compress, EveryTypeOnBothBackends) {
  const PolicyConfig config{.budget = 100};
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Prompt prompt(dtype);
    for (bool reference : {false, true}) {
      Compressor compressor(config, {.n_threads = 2, .reference = reference});
      const KvSelection kept = compressor.select(prompt.layer());
      for (int64_t h = 0; h < kHeadKv; ++h) {
        EXPECT_TRUE(is_selection(kept[static_cast<size_t>(h)],
                                 oracle_scores(prompt.oracle_layer(), config, h), kWindow,
                                 100 - kWindow, kTolerance))
            << name(dtype) << (reference ? ", reference" : "");
      }
    }
  }
}

TEST(Compress, HeadMajorMemoryGivesTheSameSelection) {
  const Prompt prompt(DType::f16);
  Compressor compressor({.budget = 100});
  const KvSelection expected = compressor.select(prompt.layer());
  // k as [n_head_kv, n_tokens, head_dim], with 3 spare values after each row.
  constexpr int64_t kRow = kHeadDim + 3;
  const TestTensor k({kHeadKv, kTokens, kRow}, DType::f16);
  for (int64_t h = 0; h < kHeadKv; ++h) {
    for (int64_t j = 0; j < kTokens; ++j) {
      std::memcpy(k.view().at<void>(h, j), prompt.k.view().at<void>(j, h), kHeadDim * 2);
    }
  }
  LayerView layer = prompt.layer();
  layer.v = {};  // "snapkv" reads no values
  layer.k = {k.data(), DType::f16, kTokens * kRow, kRow};
  EXPECT_EQ(compressor.select(layer), expected);
}

TEST(Compress, ScaleIsOneOverTheRootOfHeadDimUnlessGiven) {
  const Prompt prompt(DType::f32);
  Compressor compressor({.budget = 100, .params = {{"kernel_size", 1}}});
  LayerView layer = prompt.layer();
  const KvSelection expected = compressor.select(layer);
  layer.scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim));
  EXPECT_EQ(compressor.select(layer), expected);
  layer.scale = 4.0f;
  EXPECT_NE(compressor.select(layer), expected);
}

TEST(Compress, KeepsAllWithinTheBudgetAndWithPolicyFull) {
  const Prompt prompt(DType::f16);
  std::vector<int32_t> all(kTokens);
  std::iota(all.begin(), all.end(), 0);
  Compressor within({.budget = kTokens});
  EXPECT_EQ(within.select(prompt.layer()), (KvSelection{all, all}));
  Compressor full({.name = "full"});
  LayerView layer = prompt.layer();
  layer.q = {}, layer.n_window = 0;  // "full" reads no queries
  EXPECT_EQ(full.select(layer), (KvSelection{all, all}));
  Compressor below({.budget = kTokens - 1});
  EXPECT_EQ(below.select(prompt.layer())[0].size(), static_cast<size_t>(kTokens - 1));
}

TEST(Compress, GathersIntoStridedMemory) {
  const Prompt prompt(DType::f32);
  const LayerView layer = prompt.layer();
  const KvSelection kept = {{0, 5, 699}, {7}};  // any ascending rows, counts may differ
  const TestTensor out({3, kHeadKv, kHeadDim + 1}, std::vector<float>(3 * 2 * 33, -9.0f));
  gather_kv(layer, layer.v, kept, {out.data(), DType::f32, kHeadDim + 1, kHeadKv * (kHeadDim + 1)});
  for (int64_t h = 0; h < kHeadKv; ++h) {
    for (int64_t i = 0; i < 3; ++i) {
      const float* row = out.view().at<float>(i, h);
      const std::vector<int32_t>& rows = kept[static_cast<size_t>(h)];
      const bool written = i < static_cast<int64_t>(rows.size());
      for (int64_t d = 0; d < kHeadDim; ++d) {
        EXPECT_EQ(row[d],
                  written ? prompt.v.view().at<float>(rows[static_cast<size_t>(i)], h)[d] : -9.0f);
      }
      EXPECT_EQ(row[kHeadDim], -9.0f) << "beyond the row";
    }
  }
}

TEST(Compress, MayBeMoved) {
  const Prompt prompt(DType::f32);
  Compressor first({.budget = 100});
  const KvSelection expected = first.select(prompt.layer());
  Compressor second = std::move(first);
  EXPECT_EQ(second.select(prompt.layer()), expected);
  EXPECT_EQ(second.config().budget, 100);
}

// ---------------------------------------------------------------- errors

TEST(CompressErrors, Configuration) {
  const auto make = [](const PolicyConfig& config) { Compressor compressor(config); };
  expect_error(ErrorCode::kUsage, {"budget is 32"}, [&] { make({.budget = 32}); });
  expect_error(ErrorCode::kUsage, {"kernel_size is 2"}, [&] {
    make({.params = {{"kernel_size", 2}}});
  });
  expect_error(ErrorCode::kUsage, {"nope"}, [&] { make({.name = "nope"}); });
  expect_error(ErrorCode::kUsage, {"n_threads is -1"},
               [] { Compressor compressor({}, {.n_threads = -1}); });
}

// Changes one field of a good layer; the message must contain `words`.
template <typename Change>
void expect_layer_error(std::initializer_list<std::string_view> words, Change&& change) {
  static const Prompt prompt(DType::f16);
  Compressor compressor({.budget = 100});
  LayerView layer = prompt.layer();
  change(layer);
  expect_error(ErrorCode::kUsage, words, [&] { compressor.select(layer); });
}

TEST(CompressErrors, Shapes) {
  expect_layer_error({"n_tokens is 0"}, [](LayerView& l) { l.n_tokens = 0; });
  expect_layer_error({"n_tokens is 2147483648"},
                     [](LayerView& l) { l.n_tokens = int64_t{1} << 31; });
  expect_layer_error({"n_head is -4"}, [](LayerView& l) { l.n_head = -4; });
  expect_layer_error({"n_head_kv is 0"}, [](LayerView& l) { l.n_head_kv = 0; });
  expect_layer_error({"head_dim is 0"}, [](LayerView& l) { l.head_dim = 0; });
  expect_layer_error({"head_dim is 20", "8"}, [](LayerView& l) { l.head_dim = 20; });
  expect_layer_error({"n_head is 3", "n_head_kv", "2"}, [](LayerView& l) { l.n_head = 3; });
  expect_layer_error({"n_window is 0"}, [](LayerView& l) { l.n_window = 0; });
  expect_layer_error({"n_window is 701", "n_tokens", "700"},
                     [](LayerView& l) { l.n_window = kTokens + 1; });
  expect_layer_error({"scale is"}, [](LayerView& l) { l.scale = -1.0f; });
  expect_layer_error({"scale is"}, [](LayerView& l) { l.scale = std::nanf(""); });
  expect_layer_error({"il is 2", "n_layer is 2"}, [](LayerView& l) { l.il = l.n_layer = 2; });
  expect_layer_error({"n_layer is 0"}, [](LayerView& l) { l.n_layer = 0; });
}

TEST(CompressErrors, Views) {
  expect_layer_error({"q.data is null"}, [](LayerView& l) { l.q.data = nullptr; });
  expect_layer_error({"k.data is null"}, [](LayerView& l) { l.k.data = nullptr; });
  expect_layer_error({"k.dtype is q8_0"}, [](LayerView& l) { l.k.dtype = DType::q8_0; });
  expect_layer_error({"q.dtype is i32"}, [](LayerView& l) { l.q.dtype = DType::i32; });
  expect_layer_error({"v.dtype is bf16", "f16"}, [](LayerView& l) { l.v.dtype = DType::bf16; });
  expect_layer_error({"k.data is not aligned"},
                     [](LayerView& l) { l.k.data = static_cast<const char*>(l.k.data) + 1; });
  expect_layer_error({"k.head_stride is 31", "32"}, [](LayerView& l) { l.k.head_stride = 31; });
  expect_layer_error({"k.row_stride is 0"}, [](LayerView& l) { l.k.row_stride = 0; });
  expect_layer_error({"q.row_stride is -128"}, [](LayerView& l) { l.q.row_stride = -128; });
}

TEST(CompressErrors, Gather) {
  const Prompt prompt(DType::f16);
  const LayerView layer = prompt.layer();
  const TestTensor out({kHeadKv, 2, kHeadDim}, DType::f16);
  const MutableKvView dst = {out.data(), DType::f16, 2 * kHeadDim, kHeadDim};
  const auto expect = [&](std::initializer_list<std::string_view> words, const KvSelection& kept,
                          MutableKvView to) {
    expect_error(ErrorCode::kUsage, words, [&] { gather_kv(layer, layer.k, kept, to); });
  };
  expect({"kept has 1 heads", "2"}, {{0}}, dst);
  expect({"kept[1] holds position 700", "n_tokens is 700"}, {{0}, {1, 700}}, dst);
  expect({"kept[0] holds position -1"}, {{-1}, {0}}, dst);
  MutableKvView bad = dst;
  bad.data = nullptr;
  expect({"dst.data is null"}, {{0}, {0}}, bad);
  bad = dst;
  bad.dtype = DType::f32;
  expect({"dst.dtype is f32", "f16"}, {{0}, {0}}, bad);
  bad = dst;
  bad.row_stride = 1;
  expect({"dst.row_stride is 1"}, {{0, 1}, {0}}, bad);
  EXPECT_EQ(out.values(), std::vector<float>(static_cast<size_t>(out.numel()), 0.0f));
  expect_error(ErrorCode::kUsage, {"kept has 0 heads"}, [&] { gather_kv(layer, layer.k, {}); });
}

TEST(CompressErrors, RowsAreNotMovedWithinTheirOwnMemory) {
  LayerView layer;
  layer.n_tokens = layer.head_dim = 8;
  layer.n_head = layer.n_head_kv = 1;
  std::vector<float> rows(16 * 8);
  std::iota(rows.begin(), rows.end(), 0.0f);
  const std::vector<float> before = rows;
  const KvSelection kept = {{1, 3, 7}};
  const KvView src = {rows.data(), DType::f32, 8 * 8, 8};
  Compressor compressor({.name = "streaming-llm", .budget = 3, .window_size = 1, .sinks = 1});
  for (const int64_t at : {0, 8, 8 * 3 - 1, 8 * 5, 8 * 5 + 1, 8 * 7}) {  // parts of rows 1, 3 or 7
    const MutableKvView dst = {rows.data() + at, DType::f32, 3 * 8, 8};
    expect_error(ErrorCode::kUsage, {"dst overlaps", "src"},
                 [&] { gather_kv(layer, src, kept, dst); });
    expect_error(ErrorCode::kUsage, {"dst overlaps", "src"},
                 [&] { compressor.gather(layer, src, kept, dst); });
  }
  EXPECT_EQ(rows, before);
  // Rows that are not read may be written to, after the others or between them.
  gather_kv(layer, src, kept, {rows.data() + 8 * 8, DType::f32, 3 * 8, 8});
  EXPECT_EQ(rows[8 * 10 + 7], 8 * 7 + 7);
  gather_kv(layer, src, kept, {rows.data(), DType::f32, 8 * 8, 2 * 8});  // rows 0, 2 and 4
  EXPECT_EQ(rows[0], 8.0f);
  EXPECT_EQ(rows[4 * 8], 8.0f * 7);
}

}  // namespace compress_tests
}  // namespace snapkv::test
