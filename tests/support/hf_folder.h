// SPDX-License-Identifier: MIT
// Writes Hugging Face folders for tests: safetensors files from bytes, small tokenizer.json files,
// and the random models of tools/hf_oracle.py, whose weights are a function of name and index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace snapkv::test {

using Json = nlohmann::json;

/// A tensor of a safetensors file; `shape` outermost first.
struct HfTensor {
  std::string name;
  std::string type;  // "F32"
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

HfTensor f32_tensor(std::string name, std::vector<int64_t> shape, const std::vector<float>& values);

/// The bytes of a file: the tensors' data one after the other.
std::vector<std::byte> safetensors_bytes(const std::vector<HfTensor>& tensors);
/// A header (any text) and data, with the length in front.
std::vector<std::byte> safetensors_bytes(std::string_view header, std::span<const std::byte> data);

void write_text(const std::string& path, std::string_view text);

/// The values that tools/hf_oracle.py gives to a tensor.
std::vector<float> oracle_values(const std::string& name, int64_t n, bool gemma);

/// What tools/hf_oracle.py wrote about the model of this name. Throws when there is no such file.
Json read_golden(const std::string& name);

/// A folder as transformers saved it, made from a golden of tools/hf_oracle.py: config.json,
/// weights and an index if there are several files; and the tokenizer below.
void write_oracle_folder(const std::string& folder, const Json& golden);

/// tokenizer.json and tokenizer_config.json of SentencePiece's kind: <unk>, <s>, </s>, 256 bytes, a
/// few words; padding is left to the reader.
void write_spm_tokenizer(const std::string& folder);
Json spm_tokenizer();

}  // namespace snapkv::test
