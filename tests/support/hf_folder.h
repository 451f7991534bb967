// SPDX-License-Identifier: MIT
// Writes Hugging Face folders for tests: safetensors files from bytes, small tokenizer.json files,
// and the random models of tools/hf_oracle.py, whose weights are a function of tensor name and
// index.
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

/// Returns the bytes of a file that holds the tensors' data one after another.
std::vector<std::byte> safetensors_bytes(const std::vector<HfTensor>& tensors);
/// Returns the header's length, the header (any text) and the data.
std::vector<std::byte> safetensors_bytes(std::string_view header, std::span<const std::byte> data);

void write_text(const std::string& path, std::string_view text);

/// Returns the values that tools/hf_oracle.py gives a tensor; one_plus: of a class whose norms
/// compute with 1 + w.
std::vector<float> oracle_values(const std::string& name, int64_t n, bool one_plus);

/// The same for MXFP4: pairs of numbers where the name ends in "_blocks", else exponents of scales.
std::vector<std::byte> mxfp4_bytes(const std::string& name, int64_t n);

/// Reads what tools/hf_oracle.py recorded about a model. Throws if there is no such file.
Json read_golden(const std::string& name);

/// Writes a folder as transformers saved it, from a golden of tools/hf_oracle.py: config.json, the
/// weights, an index if there are several files, and the tokenizer below.
void write_oracle_folder(const std::string& folder, const Json& golden);

/// Writes tokenizer.json and tokenizer_config.json of the SentencePiece kind: <unk>, <s>, </s>, 256
/// bytes, a few words; the reader adds the padding.
void write_spm_tokenizer(const std::string& folder);
Json spm_tokenizer();

}  // namespace snapkv::test
