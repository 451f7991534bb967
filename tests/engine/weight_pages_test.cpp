// SPDX-License-Identifier: MIT
// Weights in huge pages: what is moved when, and that decoding still gives the same results.
#include "engine/core/weight_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/huge_pages.h"
#include "bench/random_model.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace weight_pages_tests {

constexpr size_t kMib = size_t{1} << 20;

/// A file with three tensors of `mib` MiB each, whose words count up.
void write_weights(const std::string& path, size_t mib) {
  std::vector<uint32_t> words(mib * kMib / sizeof(uint32_t));
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i);
  GgufWriter writer;
  for (const char* name : {"a.weight", "b.weight", "c.weight"}) {
    writer.add_tensor(name, DType::f32, {static_cast<int64_t>(words.size())},
                      std::as_bytes(std::span(words)));
  }
  writer.write(path);
}

bool all_right(const GgufFile& file) {
  return std::all_of(file.tensors().begin(), file.tensors().end(), [](const GgufTensor& t) {
    for (int64_t i = 0; i < t.tensor.numel(); ++i) {
      uint32_t word = 0;
      std::memcpy(&word, static_cast<const char*>(t.tensor.data) + 4 * i, sizeof(word));
      if (word != static_cast<uint32_t>(i)) return false;
    }
    return true;
  });
}

class WeightPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (huge_page_size() == 0) GTEST_SKIP() << "SKIPPED: no transparent huge pages here";
  }
  const TempDir dir_;
};

TEST_F(WeightPagesTest, AllAtOnceWhenAskedFor) {
  write_weights(dir_ / "file", 6);
  GgufFile file = GgufFile::open(dir_ / "file");
  const WeightPages pages(file, nullptr, WeightMemory::huge_pages);
  EXPECT_GE(pages.moved_bytes(), 18 * kMib - 2 * huge_page_size());
  EXPECT_TRUE(all_right(file));
}

TEST_F(WeightPagesTest, ByAndByAfterSteps) {
  write_weights(dir_ / "file", 30);
  GgufFile file = GgufFile::open(dir_ / "file");
  WeightPages pages(file, nullptr, WeightMemory::automatic);
  EXPECT_EQ(pages.moved_bytes(), 0u);
  const size_t all = pages.bytes_to_move();
  EXPECT_GE(all, 90 * kMib);
  EXPECT_LT(all, 91 * kMib);
  pages.after_step(1e-6);  // an eighth of this is less than a piece takes: one piece, on credit
  const size_t first = pages.moved_bytes();
  EXPECT_GT(first, 0u);
  EXPECT_LE(first, 16 * kMib);
  pages.after_step(1e-6);
  EXPECT_EQ(pages.moved_bytes(), first);
  EXPECT_GE(pages.bytes_to_move(), all - 16 * kMib);
  EXPECT_LT(pages.bytes_to_move(), all);
  EXPECT_TRUE(all_right(file));
  pages.after_step(1e3);
  EXPECT_GE(pages.moved_bytes(), 90 * kMib - 2 * huge_page_size());
  EXPECT_EQ(pages.bytes_to_move(), 0u);
  EXPECT_TRUE(all_right(file));
}

TEST_F(WeightPagesTest, NothingOfSmallModelsOrWhenMapped) {
  write_weights(dir_ / "small", 6);
  GgufFile small = GgufFile::open(dir_ / "small");
  WeightPages automatic(small, nullptr, WeightMemory::automatic);
  EXPECT_EQ(automatic.bytes_to_move(), 0u);
  automatic.after_step(1e3);
  EXPECT_EQ(automatic.moved_bytes(), 0u);
  write_weights(dir_ / "file", 30);
  GgufFile file = GgufFile::open(dir_ / "file");
  WeightPages mapped(file, nullptr, WeightMemory::mapped);
  EXPECT_EQ(mapped.bytes_to_move(), 0u);
  mapped.after_step(1e3);
  EXPECT_EQ(mapped.moved_bytes(), 0u);
}

TEST_F(WeightPagesTest, DecodingComputesTheSame) {
  std::vector<std::vector<float>> logits;
  for (const WeightMemory weights : {WeightMemory::mapped, WeightMemory::huge_pages}) {
    const auto model = Model::load({.path = model_path("needle"), .weights = weights});
    Session session(model, {});
    session.prefill(generated_ids(50, model->info().n_vocab, 3));
    session.decode(77);
    logits.emplace_back(session.logits().begin(), session.logits().end());
  }
  EXPECT_EQ(logits[0], logits[1]);
}

// Weights of block types are also arranged by the backend: prompts of one chunk and of several,
// steps, and a mixture's experts give the same bits before, while and after.
TEST_F(WeightPagesTest, ArrangedWeightsComputeTheSame) {
  RandomModelShape dense = {256, 2, 4, 2, 64, 512, 512};
  RandomModelShape mixture = {256, 2, 4, 2, 64, 256, 512};
  mixture.family = {.n_expert = 8, .n_expert_used = 2};
  for (const RandomModelShape& shape : {dense, mixture}) {
    for (const DType type : {DType::q4_k, DType::q6_k, DType::q8_0, DType::q5_0}) {
      SCOPED_TRACE(name(type));
      const std::string path = dir_ / "model.gguf";
      write_random_model(path, shape, {.dtype = type});
      std::vector<std::vector<float>> logits;
      for (const WeightMemory weights :
           {WeightMemory::mapped, WeightMemory::automatic, WeightMemory::huge_pages}) {
        const auto model = Model::load({.path = path, .weights = weights});
        std::vector<float> all;
        for (const int64_t n_tokens : {50, 300}) {
          SessionOptions options;
          options.chunk = 128;
          Session session(model, options);
          session.prefill(generated_ids(n_tokens, model->info().n_vocab, 3));
          for (const int32_t token : {77, 78, 79}) {
            session.decode(token);
            all.insert(all.end(), session.logits().begin(), session.logits().end());
          }
        }
        logits.push_back(std::move(all));
      }
      EXPECT_EQ(logits[0], logits[1]);
      EXPECT_EQ(logits[0], logits[2]);
    }
  }
}

}  // namespace weight_pages_tests
}  // namespace snapkv::test
