// SPDX-License-Identifier: MIT
// Weights in huge pages: what is moved when, and that decoding still gives the same results.
#include "engine/core/weight_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/huge_pages.h"
#include "bench/random_model.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace weight_pages_tests {

constexpr size_t kMib = size_t{1} << 20;

using Names = std::vector<std::string>;

/// A file with tensors of `mib` MiB each, whose words count up.
void write_weights(const std::string& path, size_t mib,
                   const Names& names = {"a.weight", "b.weight", "c.weight"}) {
  std::vector<uint32_t> words(mib * kMib / sizeof(uint32_t));
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i);
  GgufWriter writer;
  for (const std::string& name : names) {
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

/// Takes every weight whole, in `ms` milliseconds.
class SlowWeights final : public ArrangedWeights {
 public:
  explicit SlowWeights(int ms) : ms_(ms) {}
  bool takes(const Tensor&) const override { return true; }
  bool reserve(std::span<const Tensor>) override { return true; }
  size_t copy_next(const Tensor& weight, size_t) override {
    std::this_thread::sleep_for(ms_);
    copied.push_back(weight.data);
    return 0;
  }

  std::vector<const void*> copied;

 private:
  const std::chrono::milliseconds ms_;
};

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

TEST_F(WeightPagesTest, AllTheRestAtOnceIfItTakesAFewSteps) {
  write_weights(dir_ / "file", 30);
  GgufFile file = GgufFile::open(dir_ / "file");
  SlowWeights slow(5);  // ms for each of three weights
  WeightPages pages(file, &slow, WeightMemory::automatic);
  pages.after_step(1e-6);
  EXPECT_EQ(slow.copied.size(), 1u);
  pages.after_step(1e-6);  // the credit is spent, and 16 steps are less than two weights take
  EXPECT_EQ(slow.copied.size(), 1u);
  pages.after_step(0.03);  // an eighth of it is less than what the first one took
  EXPECT_EQ(slow.copied.size(), 3u);
  EXPECT_EQ(pages.bytes_to_move(), 0u);
}

TEST_F(WeightPagesTest, WhileAPromptIsRead) {
  write_weights(dir_ / "file", 30);
  GgufFile file = GgufFile::open(dir_ / "file");
  WeightPages pages(file, nullptr, WeightMemory::automatic);
  pages.during_prompt(1, size_t{1} << 50);  // the prompt is to have all of the memory
  EXPECT_EQ(pages.moved_bytes(), 0u);
  pages.during_prompt(1e-6, kMib);
  EXPECT_GT(pages.moved_bytes(), 0u);
  EXPECT_LE(pages.moved_bytes(), 16 * kMib);
  EXPECT_TRUE(all_right(file));
  pages.during_prompt(1e3, size_t{1} << 50);  // what was begun has its memory
  EXPECT_EQ(pages.bytes_to_move(), 0u);
  EXPECT_TRUE(all_right(file));
}

// A token reads a few experts, but everything else.
TEST_F(WeightPagesTest, ExpertsComeLast) {
  write_weights(dir_ / "file", 6,
                {"blk.0.ffn_up_exps.weight", "blk.0.attn_q.weight", "blk.1.attn_q.weight"});
  GgufFile file = GgufFile::open(dir_ / "file");
  SlowWeights slow(0);
  WeightPages pages(file, &slow, WeightMemory::automatic);
  pages.after_step(1e3);
  Names order;
  for (const void* data : slow.copied) {
    for (const GgufTensor& t : file.tensors()) {
      if (t.tensor.data == data) order.push_back(t.name);
    }
  }
  EXPECT_EQ(order,
            (Names{"blk.0.attn_q.weight", "blk.1.attn_q.weight", "blk.0.ffn_up_exps.weight"}));
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
