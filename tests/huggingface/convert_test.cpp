// SPDX-License-Identifier: MIT
// convert_model(): the file gives the same results as the folder, in every type, and either the
// whole file is written or none. docs/verification.md tells how llama.cpp reads the file with the
// same result.
#include "snapkv/convert.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/half.h"
#include "format/block_types.h"
#include "format/gguf.h"
#include "snapkv/engine.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

/// The logits of a sequence of 20 tokens.
std::vector<float> logits_of(const std::string& path) {
  const auto model = Model::load({.path = path, .compute = Compute::f32});
  SessionOptions options;
  options.kv_type = DType::f32;
  Session session(model, options);
  session.prefill(generated_ids(20, model->info().n_vocab, 3));
  return {session.logits().begin(), session.logits().end()};
}

class ConvertTest : public testing::Test {
 protected:
  void write(const std::string& name) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    write_oracle_folder(folder_, read_golden(name));
  }
  ConvertResult convert(std::optional<DType> type = {}, bool overwrite = true) const {
    return convert_model({.from = folder_, .to = file_, .type = type, .overwrite = overwrite});
  }
  /// The number of files in the folder of the result.
  int n_files() const {
    int n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "out")) n += entry.exists();
    return n;
  }

  const TempDir dir_;
  const std::string folder_ = dir_ / "model", file_ = dir_ / "out/model.gguf";

 private:
  const bool made_ = std::filesystem::create_directory(dir_ / "out");
};

TEST_F(ConvertTest, TheFileComputesWhatTheFolderComputes) {
  for (const char* name : {"llama", "llama-options", "llama3", "llama-linear", "mistral", "llama4",
                           "llama4-plain", "llama4-picture"}) {
    SCOPED_TRACE(name);
    write(name);
    const ConvertResult result = convert();
    EXPECT_EQ(result.bytes, std::filesystem::file_size(file_));
    const std::vector<float> of_folder = logits_of(folder_), of_file = logits_of(file_);
    ASSERT_EQ(of_folder.size(), of_file.size());
    for (size_t i = 0; i < of_file.size(); ++i) {
      // The values of a head are summed in another order.
      ASSERT_NEAR(of_folder[i], of_file[i], 1e-4) << i;
    }
  }
}

/// Experts' matrices become one tensor; the router stays f32.
TEST_F(ConvertTest, ExpertsAreMerged) {
  for (const char* name :
       {"mixtral", "mixtral-bf16", "qwen3moe", "qwen3moe-softmax", "phimoe", "phimoe-long"}) {
    SCOPED_TRACE(name);
    write(name);
    const ConvertResult result = convert();
    const GgufFile file = GgufFile::open(file_);
    const auto info = Model::load({.path = folder_})->info();
    EXPECT_EQ(result.n_tensors, std::ssize(file.tensors()));
    EXPECT_EQ(file.get_uint(info.architecture + ".expert_count"), info.n_expert);
    EXPECT_EQ(file.get_uint(info.architecture + ".expert_used_count"), info.n_expert_used);
    EXPECT_EQ(file.find_tensor("blk.0.ffn_gate.0.weight"), nullptr);
    EXPECT_EQ(file.find_tensor("blk.0.ffn_gate_inp.weight")->tensor.dtype, DType::f32);
    const Tensor down = file.find_tensor("blk.3.ffn_down_exps.weight")->tensor;
    EXPECT_EQ(down.shape_string(), fmt::format("[{}, 64, {}]", info.n_expert, info.n_ff));
    const std::vector<float> of_folder = logits_of(folder_), of_file = logits_of(file_);
    for (size_t i = 0; i < of_file.size(); ++i) ASSERT_NEAR(of_folder[i], of_file[i], 1e-4) << i;
  }
}

/// So do the matrices that make and merge Gemma 3n's streams; those that mix them stay f32.
TEST_F(ConvertTest, StreamsAreMerged) {
  write("gemma3n");
  convert();
  const GgufFile file = GgufFile::open(file_);
  EXPECT_EQ(file.find_tensor("altup_proj.0.weight"), nullptr);
  for (const char* name : {"altup_proj.weight", "altup_unembd_proj.weight"}) {
    EXPECT_EQ(file.find_tensor(name)->tensor.shape_string(), "[2, 64, 64]");
  }
  EXPECT_EQ(logits_of(folder_), logits_of(file_));
  convert(DType::q8_0);
  const GgufFile rounded = GgufFile::open(file_);
  EXPECT_EQ(rounded.find_tensor("altup_proj.weight")->tensor.dtype, DType::q8_0);
  for (const char* name : {"altup_router", "altup_predict_coef", "altup_correct_coef"}) {
    const std::string tensor = std::string("blk.0.") + name + ".weight";
    EXPECT_EQ(rounded.find_tensor(tensor)->tensor.dtype, DType::f32) << name;
  }
}

/// A file of before April 2024 is brought up to date.
TEST_F(ConvertTest, ExpertsOfAnOldFileAreMerged) {
  const std::string old = model_path("mixtral-parts");
  const ConvertResult result = convert_model({.from = old, .to = file_, .type = DType::q8_0});
  const GgufFile file = GgufFile::open(file_);
  EXPECT_EQ(result.n_tensors, 2 + 3 * (6 + 1 + 3));
  const Tensor up = file.find_tensor("blk.1.ffn_up_exps.weight")->tensor;
  EXPECT_EQ(up.dtype, DType::q8_0);
  EXPECT_EQ(up.shape_string(), "[5, 96, 64]");
  convert_model({.from = old, .to = file_, .overwrite = true});
  EXPECT_EQ(logits_of(old), logits_of(file_));
}

TEST_F(ConvertTest, HasTheKeysOfTheFolder) {
  write("llama-bf16");
  const ConvertResult result = convert();
  const GgufFile file = GgufFile::open(file_);
  EXPECT_EQ(result.n_tensors, std::ssize(file.tensors()));
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.get_string("general.architecture"), "llama");
  EXPECT_EQ(file.get_uint("general.file_type"), 32u);
  EXPECT_EQ(file.get_uint("llama.block_count"), 4u);
  EXPECT_FALSE(file.has("snapkv.rope.layout"));
  const auto model = Model::load({.path = folder_});
  EXPECT_EQ(file.get_strings("tokenizer.ggml.tokens").size(), 320u);
  EXPECT_EQ(file.get_floats("tokenizer.ggml.scores")[263], -1);
  for (const GgufTensor& t : file.tensors()) {
    EXPECT_EQ(t.tensor.dtype, t.tensor.rank == 1 ? DType::f32 : DType::bf16) << t.name;
  }
}

TEST_F(ConvertTest, Types) {
  write("llama");
  const std::string name = "blk.2.ffn_down.weight";  // [64, 160]; its rows are not permuted
  const auto values = oracle_values("model.layers.2.mlp.down_proj.weight", 64 * 160, false);
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    SCOPED_TRACE(snapkv::name(type));
    convert(type);
    const GgufFile file = GgufFile::open(file_);
    const Tensor t = file.find_tensor(name)->tensor;
    ASSERT_EQ(t.dtype, type);
    for (int64_t i = 0; i < t.numel(); ++i) {
      if (type == DType::f32) {
        ASSERT_EQ(static_cast<const float*>(t.data)[i], values[i]);
      }
      if (type == DType::f16) {
        ASSERT_EQ(static_cast<const f16_t*>(t.data)[i].bits, to_f16(values[i]).bits);
      }
      if (type == DType::bf16) {
        ASSERT_EQ(static_cast<const bf16_t*>(t.data)[i].bits, to_bf16(values[i]).bits);
      }
      if (type == DType::q8_0) {
        const BlockQ8_0& block = static_cast<const BlockQ8_0*>(t.data)[i / 32];
        const float d = to_f32(block.d);
        ASSERT_NEAR(d * block.qs[i % 32], values[i], 0.57 * d);  // d itself is rounded to f16
      }
    }
    EXPECT_EQ(file.find_tensor("blk.2.ffn_norm.weight")->tensor.dtype, DType::f32);
  }
}

TEST_F(ConvertTest, GgufFilesAreRetypedAndJoined) {
  write("llama");
  convert(DType::q8_0);
  std::ifstream in(file_, std::ios::binary);
  const std::string direct((std::istreambuf_iterator<char>(in)), {});
  convert(DType::f32);
  const std::string again = dir_ / "again.gguf";
  convert_model({.from = file_, .to = again, .type = DType::q8_0});
  std::ifstream in_again(again, std::ios::binary);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in_again)), {}), direct);
  expect_error(ErrorCode::kUsage, {"q8_0", "rounded already", "f16"}, [&] {
    convert_model({.from = again, .to = file_, .type = DType::f16, .overwrite = true});
  });
  expect_error(ErrorCode::kUsage, {"which the model is read from"},
               [&] { convert_model({.from = again, .to = again, .overwrite = true}); });
}

TEST_F(ConvertTest, NothingIsWrittenOverAPartOfTheModel) {
  write("llama");
  std::filesystem::create_symlink("model/tokenizer.json", dir_ / "link");
  std::filesystem::create_hard_link(folder_ + "/config.json", dir_ / "hard");
  const auto expect_refused = [&](const std::string& from, const std::string& to) {
    SCOPED_TRACE(to);
    expect_error(ErrorCode::kUsage, {to, "which the model is read from"},
                 [&] { convert_model({.from = from, .to = to, .overwrite = true}); });
  };
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    expect_refused(folder_, folder_ + "/" + name);
  }
  expect_refused(folder_, dir_ / "link");
  expect_refused(folder_, dir_ / "hard");
  const std::string first = dir_ / "x-00001-of-00002.gguf", second = dir_ / "x-00002-of-00002.gguf";
  for (const std::string& part : {first, second}) write_text(part, "a part");
  expect_refused(first, second);
  convert_model({.from = folder_, .to = folder_ + "/model.gguf"});
  convert_model({.from = folder_, .to = folder_ + "/model.gguf", .overwrite = true});
}

TEST_F(ConvertTest, RowsThatAreNoWholeBlocksBecomeF16) {
  write("llama");
  Json g = read_golden("llama");
  g["config"]["intermediate_size"] = 168;
  for (auto& [name, shape] : g["files"]["model.safetensors"].items()) {
    for (auto& n : shape) {
      if (n == 160) n = 168;
    }
  }
  write_oracle_folder(folder_, g);
  convert(DType::q8_0);
  const GgufFile file = GgufFile::open(file_);
  EXPECT_EQ(file.find_tensor("blk.0.ffn_down.weight")->tensor.dtype, DType::f16);
  EXPECT_EQ(file.find_tensor("blk.0.ffn_up.weight")->tensor.dtype, DType::q8_0);
}

TEST_F(ConvertTest, RefusesWhatWouldBeWrong) {
  write("llama");
  expect_error(ErrorCode::kUsage, {"q4_0", "q8_0"}, [&] { convert(DType::q4_0); });
  convert();
  expect_error(ErrorCode::kUsage, {file_, "exists already"}, [&] { convert({}, false); });
  expect_error(ErrorCode::kUsage, {dir_ / "out", "not a regular file"},
               [&] { convert_model({.from = folder_, .to = dir_ / "out", .overwrite = true}); });
  expect_error(ErrorCode::kRuntime, {"nowhere/x.gguf", "No such file"},
               [&] { convert_model({.from = folder_, .to = dir_ / "nowhere/x.gguf"}); });
  EXPECT_EQ(n_files(), 1);
  const auto with_value = [&](float value) {
    const Json g = read_golden("llama");
    std::vector<HfTensor> tensors;
    for (const auto& [name, shape] : g.at("files").at("model.safetensors").items()) {
      int64_t n = 1;
      for (const int64_t size : shape) n *= size;
      auto values = oracle_values(name, n, false);
      if (name == "model.layers.1.self_attn.q_proj.weight") values[5 * 64 + 3] = value;
      tensors.push_back(f32_tensor(name, shape, values));
    }
    write_bytes(folder_ + "/model.safetensors", safetensors_bytes(tensors));
  };
  const std::string name = "model.layers.1.self_attn.q_proj.weight";
  with_value(1e6f);
  expect_error(ErrorCode::kBadModel, {name, "too large for f16", "row 5"},
               [&] { convert(DType::f16); });
  convert(DType::bf16);
  with_value(1e8f);
  expect_error(ErrorCode::kBadModel, {name, "too large for q8_0", "row 5"},
               [&] { convert(DType::q8_0); });
  with_value(NAN);
  expect_error(ErrorCode::kBadModel, {name, "an infinity or a NaN", "row 5"}, [&] { convert(); });
  EXPECT_EQ(n_files(), 1);
}

TEST_F(ConvertTest, AStoppedConversionLeavesNothing) {
  write("llama");
  int calls = 0;
  const auto stop_at = [&](int last) {
    calls = 0;
    convert_model({.from = folder_, .to = file_, .progress = [&](double fraction) {
                     EXPECT_GE(fraction, 0);
                     EXPECT_LE(fraction, 1);
                     EXPECT_EQ(n_files(), 1);  // the unfinished file has another name
                     EXPECT_FALSE(std::filesystem::exists(file_));
                     return ++calls < last;
                   }});
  };
  for (const int last : {1, 20}) {
    expect_error(ErrorCode::kCancelled, {folder_}, [&] { stop_at(last); });
    EXPECT_EQ(calls, last);
    EXPECT_EQ(n_files(), 0);
  }
}

TEST_F(ConvertTest, NoticesThatTheFolderChanges) {
  write("llama");
  const auto change = [&](double fraction) {
    if (fraction > 0.5) std::ofstream(folder_ + "/model.safetensors", std::ios::app) << "x";
    return true;
  };
  expect_error(ErrorCode::kBadModel, {folder_ + "/model.safetensors"},
               [&] { convert_model({.from = folder_, .to = file_, .progress = change}); });
  EXPECT_EQ(n_files(), 0);
}

}  // namespace
}  // namespace snapkv::test
