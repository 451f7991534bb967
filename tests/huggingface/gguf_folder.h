// SPDX-License-Identifier: MIT
// GgufFolder: a Hugging Face folder with the weights of a GGUF file, under transformers' names, so
// that both must compute the same.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/gguf.h"
#include "snapkv/engine.h"
#include "tests/support/family_models.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/hf_folder.h"
#include "tests/support/test_models.h"

namespace snapkv::test {

/// A part of a name in GGUF, and what stands for it in the folder.
using NamePart = std::pair<const char*, const char*>;

/// The name with each part replaced, in the order of the list.
inline std::string replaced(std::string name, std::span<const NamePart> parts) {
  for (const auto& [gguf, folder] : parts) {
    const size_t at = name.find(gguf);
    if (at != std::string::npos) name.replace(at, std::string_view(gguf).size(), folder);
  }
  return name;
}

class GgufFolder : public testing::Test {
 protected:
  using NameInFolder = std::function<std::string(std::string)>;

  /// Writes the weights of a model of family_models().
  void write(const std::string& model, const NameInFolder& name_in_folder) {
    const GgufFile file = GgufFile::open(model_path(model));
    std::vector<HfTensor> tensors;
    for (const GgufTensor& t : file.tensors()) add(t, name_in_folder, tensors);
    write_bytes(dir_ / "model.safetensors", safetensors_bytes(tensors));
    write_spm_tokenizer(dir_ / "");
  }
  std::shared_ptr<const Model> load(const Json& json) {
    write_text(dir_ / "config.json", json.dump());
    return Model::load({.path = dir_ / "", .compute = Compute::f32});
  }
  static std::vector<float> logits(std::shared_ptr<const Model> model) {
    SessionOptions options;
    options.kv.name = "full";
    options.kv_type = DType::f32;
    Session session(std::move(model), options);
    session.prefill(generated_ids(40, kFamilyVocab, 1));
    session.decode(7);
    return {session.logits().begin(), session.logits().end()};
  }

  const TempDir dir_;

 private:
  /// Experts' matrices are single ones in a folder: "experts.3" stands before their names' last
  /// part.
  static void add(const GgufTensor& t, const NameInFolder& name_in_folder,
                  std::vector<HfTensor>& tensors) {
    const auto* values = static_cast<const float*>(t.tensor.data);
    std::vector<int64_t> shape(t.tensor.shape.begin(), t.tensor.shape.begin() + t.tensor.rank);
    const size_t merged = t.name.find("_exps.weight");
    if (merged == std::string::npos) {
      const std::string name = name_in_folder(t.name);
      if (name.ends_with("conv.conv.weight")) shape = {shape[0], 1, shape[1]};
      if (name.ends_with("shared_expert_gate.weight")) shape = {1, shape[0]};
      tensors.push_back(f32_tensor(name, shape, {values, values + t.tensor.numel()}));
      return;
    }
    const int64_t n = shape[1] * shape[2];
    for (int64_t e = 0; e < shape[0]; ++e) {
      std::string name = name_in_folder(t.name.substr(0, merged));
      name.insert(name.rfind('.'), fmt::format(".experts.{}", e));
      tensors.push_back(f32_tensor(name + ".weight", {shape[1], shape[2]},
                                   {values + e * n, values + (e + 1) * n}));
    }
  }
};

}  // namespace snapkv::test
