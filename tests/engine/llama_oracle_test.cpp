// SPDX-License-Identifier: MIT
// Compares models with llama.cpp: log-probabilities and greedy continuations must equal numbers
// recorded from a real llama.cpp on the same files (golden/*.json; each contains the command that
// made it, and golden/README.md describes the whole procedure).
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/family_models.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace llama_oracle_tests {

struct OracleCase {
  std::string model;        // a name for load_model()
  double tolerance;         // for a log-probability
  std::string folder = {};  // the folder of MODEL.gguf and MODEL.json, if not the repository's
};

/// f32: llama.cpp with an f32 cache differs only by rounding. f16, bf16: it rounds activations to
/// the weights' type. Block types: it rounds them to 8 bits in blocks of 32, or of 256 for
/// superblocks.
double tolerance_of(std::string_view type) {
  return type == "f32" ? 1e-3 : type == "f16" ? 1e-2 : 5e-2;
}

/// The repository's models, those of family_models.h, and, if SNAPKV_ORACLE_MODELS names a folder,
/// one for each pair MODEL.gguf, MODEL.json in it, to compare other models with a real llama.cpp.
std::vector<OracleCase> all_cases() {
  std::vector<OracleCase> cases = {{"needle", 1e-2}, {"tiny-options", 1e-3}};
  for (const DType type : kWeightTypes) {
    cases.push_back({"tiny-" + std::string(name(type)), tolerance_of(name(type))});
  }
  for (const FamilyModel& m : family_models()) cases.push_back({m.name, 1e-3});
  const char* folder = std::getenv("SNAPKV_ORACLE_MODELS");
  if (folder == nullptr) return cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path path = entry.path();
    if (path.extension() != ".json") continue;
    const std::string stem = path.stem().string();
    const std::string type =
        describe_model(std::string(folder) + "/" + stem + ".gguf").info.file_type;
    cases.push_back({stem, tolerance_of(type), folder});
  }
  return cases;
}

void PrintTo(const OracleCase& c, std::ostream* out) { *out << c.model; }

class LlamaOracleTest : public testing::TestWithParam<OracleCase> {
 protected:
  void SetUp() override {
    const OracleCase& c = GetParam();
    const std::string folder =
        c.folder.empty() ? std::string(SNAPKV_SOURCE_DIR) + "/tests/engine/golden" : c.folder;
    std::ifstream in(folder + "/" + c.model + ".json");
    ASSERT_TRUE(in) << folder << " " << c.model;
    golden_ = nlohmann::json::parse(in);
    model_ =
        c.folder.empty()
            ? load_model(c.model, Compute::f32)
            : Model::load({.path = c.folder + "/" + c.model + ".gguf", .compute = Compute::f32});
    options_.kv.name = "full";
    options_.kv_type = DType::f32;
  }

  nlohmann::json golden_;
  std::shared_ptr<const Model> model_;
  SessionOptions options_;
};

/// Compares the logits at one position with the golden file's.
void expect_position(const nlohmann::json& teacher, size_t i, int32_t next,
                     std::span<const float> logits, double tolerance) {
  EXPECT_NEAR(log_probability(logits, next), teacher["next_logprob"][i].get<double>(), tolerance);
  const double best = teacher["best_logprob"][i], second = teacher["second_logprob"][i];
  EXPECT_NEAR(log_probability(logits, teacher["best"][i]), best, tolerance);
  if (best - second > tolerance) {
    const auto ours = std::max_element(logits.begin(), logits.end()) - logits.begin();
    EXPECT_EQ(ours, teacher["best"][i].get<int64_t>());
  }
}

TEST_P(LlamaOracleTest, PrefillLogProbabilities) {
  const auto& teacher = golden_["teacher"];
  const std::vector<int32_t> ids = teacher["ids"];
  const size_t n = teacher["next_logprob"].size();
  ASSERT_GE(n, 64u);
  Session session(model_, options_);
  PrefillOptions prefill;
  prefill.n_logits = static_cast<int64_t>(n);
  session.prefill(std::span(ids).first(ids.size() - 1), prefill);
  for (size_t i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    expect_position(teacher, i, ids[ids.size() - n + i],
                    session.prefill_logits(static_cast<int64_t>(i)), GetParam().tolerance);
  }
}

TEST_P(LlamaOracleTest, DecodeLogProbabilities) {
  const auto& teacher = golden_["teacher"];
  const std::vector<int32_t> ids = teacher["ids"];
  const size_t n = teacher["next_logprob"].size();
  const size_t first = ids.size() - n;  // index of the first forced token
  Session session(model_, options_);
  session.prefill(std::span(ids).first(first));
  for (size_t i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    expect_position(teacher, i, ids[first + i], session.logits(), GetParam().tolerance);
    if (i + 1 < n) session.decode(ids[first + i]);
  }
}

/// The continuations must be equal wherever llama.cpp's two best candidates differ by more than the
/// tolerance. If they are closer, the continuations may differ, so this always follows llama.cpp's
/// tokens.
TEST_P(LlamaOracleTest, GreedyContinuations) {
  size_t compared = 0;
  ASSERT_EQ(golden_["greedy"].size(), 5u);
  for (const auto& g : golden_["greedy"]) {
    const std::vector<int32_t> prompt = g["prompt"], tokens = g["tokens"];
    const std::vector<double> margin = g["margin"];
    const size_t first_id = g["first_id"];  // the best token is chosen among ids from this one on
    Session session(model_, options_);
    session.prefill(prompt);
    for (size_t i = 0; i < std::min(tokens.size(), margin.size()); ++i) {
      SCOPED_TRACE(i);
      if (margin[i] > GetParam().tolerance) {
        const auto candidates = session.logits().subspan(first_id);
        const auto best = std::max_element(candidates.begin(), candidates.end());
        ASSERT_EQ(static_cast<int64_t>(first_id) + (best - candidates.begin()), tokens[i]);
        ++compared;
      }
      session.decode(tokens[i]);
    }
  }
  EXPECT_GE(compared, 100u);  // at most positions the choice is clear
}

INSTANTIATE_TEST_SUITE_P(Models, LlamaOracleTest, testing::ValuesIn(all_cases()),
                         [](const auto& test) {
                           std::string name = test.param.model;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace llama_oracle_tests
}  // namespace snapkv::test
