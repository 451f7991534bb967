// SPDX-License-Identifier: MIT
// The same results as transformers: the log-probabilities of folders as save_pretrained writes them
// are compared with numbers recorded by tools/hf_oracle.py (golden/*.json; each file names the
// command that made it). For classes that transformers does not have, the numbers are llama.cpp's,
// recorded by tools/hf_llama_oracle.py. The test makes the folders, from the configurations in the
// golden files and the same formula for the weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "snapkv/engine.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

constexpr double kTolerance = 1e-3;

class HfOracleTest : public testing::TestWithParam<std::string> {
 protected:
  /// The folder for a golden file. SNAPKV_HF_FOLDERS may name a directory of the folders that
  /// transformers saved and hf_oracle.py --folder kept; without it the folder is made here.
  std::string folder_of(const Json& golden) const {
    const char* saved = std::getenv("SNAPKV_HF_FOLDERS");
    if (saved != nullptr) {
      const std::string folder = saved + ("/" + GetParam());
      write_spm_tokenizer(folder);  // the folders of transformers have no tokenizer
      return folder;
    }
    write_oracle_folder(dir_ / "", golden);
    return dir_ / "";
  }

  const TempDir dir_;
};

TEST_P(HfOracleTest, LogProbabilities) {
  const Json golden = read_golden(GetParam());
  const auto model = Model::load({.path = folder_of(golden), .compute = Compute::f32});
  const Json& teacher = golden.at("teacher");
  const double tolerance = golden.value("tolerance", kTolerance);
  const std::vector<int32_t> ids = teacher.at("ids");
  const std::vector<double> expected = teacher.at("next_logprob");
  const int64_t n = std::ssize(expected);
  ASSERT_EQ(n, 64);
  SessionOptions options;
  options.kv.name = "full";
  options.kv_type = DType::f32;
  Session prefilled(model, options), decoded(model, options);
  PrefillOptions prefill;
  prefill.n_logits = n;
  const std::span all(ids);
  prefilled.prefill(all.first(ids.size() - 1), prefill);
  decoded.prefill(all.first(ids.size() - n));
  for (int64_t i = 0; i < n; ++i) {
    SCOPED_TRACE(i);
    const int32_t next = ids[ids.size() - n + i];
    const double best = teacher["best_logprob"][i], second = teacher["second_logprob"][i];
    for (const std::span<const float> logits : {prefilled.prefill_logits(i), decoded.logits()}) {
      EXPECT_NEAR(log_probability(logits, next), expected[i], tolerance);
      EXPECT_NEAR(log_probability(logits, teacher["best"][i]), best, tolerance);
      if (best - second > tolerance) {
        EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(),
                  teacher["best"][i].get<int64_t>());
      }
    }
    if (i + 1 < n) decoded.decode(next);
  }
}

std::string name_of_case(const testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Families, HfOracleTest,
    testing::Values("llama", "llama-bf16", "llama-f16", "llama-options", "llama3", "llama-linear",
                    "llama-yarn", "mistral", "mistral-window", "mixtral", "mixtral-bf16", "qwen2",
                    "qwen2-window", "qwen3", "qwen3moe", "qwen3moe-softmax", "gemma3",
                    "gemma3-options", "gemma3n", "gemma4-e", "gemma4", "gemma4-moe",
                    "gemma4-picture", "phi3", "phi3-partial", "phi3-longrope", "llama4",
                    "llama4-plain", "llama4-picture", "phimoe", "phimoe-long", "qwen2moe", "lfm2",
                    "lfm2moe", "qwen35", "qwen35-bf16", "qwen35-picture", "qwen35moe",
                    "qwen35moe-picture", "qwen3next", "gpt-oss", "gpt-oss-bf16", "gpt-oss-mxfp4",
                    "olmo", "olmo-plain", "olmoe", "jais2", "mellum", "granitemoe",
                    "granitemoe-shared", "glm4", "glm4moe", "glm4moe-groups", "seed_oss", "exaone4",
                    "exaone4-window", "ernie4_5", "hunyuan", "qwen2vl", "qwen3vl", "granitehybrid",
                    "granitehybrid-moe", "falcon_h1", "falcon_h1-norm", "nemotron_h",
                    "nemotron_h-moe", "nemotron_h-latent", "bamba", "mamba", "falcon_mamba",
                    "mamba2", "mamba2-tied", "jamba", "jamba-moe", "kimi_linear", "kimi_linear-q"),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    Mixtures, HfOracleTest,
    testing::Values("deepseek_v3", "deepseek_v3-plain", "deepseek_v2", "deepseek_v2-q",
                    "deepseek_v2-groups", "minicpm3", "minicpm3-longrope", "glm4_moe_lite",
                    "mistral4", "mistral4-picture", "minimax_m2", "qwen3vlmoe", "ernie4_5_moe",
                    "hunyuan_moe", "dots1", "exaone_moe", "hy_v3", "afmoe", "cohere2_moe",
                    "granite_swa", "granitemoe_swa", "mimo_v2_flash", "laguna", "laguna-values",
                    "bailing_hybrid", "dbrx", "step3p7", "deepseek_v32", "glm_moe_dsa",
                    "glm_moe_dsa-together", "glm4v_moe", "solar_open", "sarvam_moe"),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    Dense, HfOracleTest,
    testing::Values("gemma", "gemma-bf16", "gemma2", "smollm3", "granite", "olmo2", "olmo3",
                    "cohere", "cohere-norm", "cohere2", "ministral3", "mistral3-picture",
                    "ministral3-picture", "ministral", "cwm", "starcoder2", "stablelm",
                    "stablelm-parallel", "phi", "gpt2", "gpt2-gelu", "gpt_neox", "gpt_neox-serial",
                    "falcon", "falcon-40b", "falcon-11b", "falcon-heads", "gpt_bigcode",
                    "gpt_bigcode-heads", "nemotron", "arcee", "apertus", "bitnet", "bitnet-silu",
                    "paddleocr", "hunyuan_vl", "glm4v", "glm46v", "glm", "exaone", "internlm3",
                    "chameleon", "chameleon-swin", "bloom", "bloom-heads", "mpt", "mpt-heads"),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(Remote, HfOracleTest,
                         testing::Values("internlm2", "internlm2-bf16", "baichuan", "baichuan-13b",
                                         "minicpm", "minicpm-longrope", "orion", "xverse", "qwen",
                                         "codeshell", "plamo", "openelm", "maincoder", "pangu",
                                         "chatglm3", "chatglm3-heads", "jais", "jais-family",
                                         "mpt-published", "mpt-bias"),
                         name_of_case);

INSTANTIATE_TEST_SUITE_P(RemoteMixtures, HfOracleTest,
                         testing::Values("ling2", "ling1", "ling1-plain", "deepseek_moe",
                                         "deepseek_ocr", "grove_moe", "smallthinker",
                                         "smallthinker-softmax", "arctic", "plm", "plamo2",
                                         "plamo3", "plamo3-yarn", "nemotron_nas", "decilm",
                                         "talkie", "rwkv7", "arwkv7", "arwkv7-bare", "rwkv6",
                                         "qrwkv6"),
                         name_of_case);

}  // namespace
}  // namespace snapkv::test
