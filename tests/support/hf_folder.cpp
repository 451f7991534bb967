// SPDX-License-Identifier: MIT
#include "tests/support/hf_folder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/check.h"
#include "base/half.h"
#include "tests/support/gguf_writer.h"

namespace snapkv::test {
namespace {

/// splitmix64's output function.
uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Nearly normal values: sums of eight 16-bit uniforms.
float normal(uint64_t key, uint64_t index) {
  int32_t sum = -4 * 65535;
  for (uint64_t word = 0; word < 2; ++word) {
    uint64_t bits = mix(key + (2 * index + word) * 0x9e3779b97f4a7c15u);
    for (int i = 0; i < 4; ++i, bits >>= 16) sum += static_cast<int32_t>(bits & 0xffffu);
  }
  return static_cast<float>(sum) * static_cast<float>(1 / 53509.92);
}

/// The start of a tensor's values, from its name.
uint64_t key_of(const std::string& name) {
  uint64_t key = 0xcbf29ce484222325u;
  for (const char c : name) key = (key ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix(key + 1);
}

std::vector<std::byte> bytes_of(const std::vector<float>& values, const std::string& type) {
  std::vector<std::byte> bytes(values.size() * (type == "F32" ? 4 : 2));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == "F32") {
      std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    } else {
      const uint16_t bits = type == "F16" ? to_f16(values[i]).bits : to_bf16(values[i]).bits;
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
  }
  return bytes;
}

}  // namespace

HfTensor f32_tensor(std::string name, std::vector<int64_t> shape,
                    const std::vector<float>& values) {
  return {std::move(name), "F32", std::move(shape), bytes_of(values, "F32")};
}

std::vector<std::byte> safetensors_bytes(std::string_view header, std::span<const std::byte> data) {
  ByteWriter w;
  w.put_string(header).put_bytes(data);
  return w.bytes();
}

std::vector<std::byte> safetensors_bytes(const std::vector<HfTensor>& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::vector<std::byte> data;
  for (const HfTensor& t : tensors) {
    header[t.name] = {{"dtype", t.type},
                      {"shape", t.shape},
                      {"data_offsets", {data.size(), data.size() + t.data.size()}}};
    data.insert(data.end(), t.data.begin(), t.data.end());
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // like the format's own writer
  return safetensors_bytes(text, data);
}

void write_text(const std::string& path, std::string_view text) {
  write_bytes(path, std::as_bytes(std::span(text)));
}

std::vector<float> oracle_values(const std::string& name, int64_t n, bool one_plus) {
  const uint64_t key = key_of(name);
  constexpr std::string_view kNearOne[] = {
      "norm.weight", "norm_1.weight",    "norm_2.weight", "layer_scalar",
      ".scale",      "per_expert_scale", "ln_1.weight",   "ln_2.weight",
      "ln_f.weight", "ln_attn.weight",   "ln_mlp.weight", "transformer.norm_f.weight",
      ".a_g",        ".head_g",          ".w_g",          "norm_weight",
      ".q_weight",   ".k_weight",        "ln1.weight",    "ln2.weight",
      "ln_x.weight", "ln_out.weight",    "pre_ln.weight"};
  const bool norm = std::any_of(std::begin(kNearOne), std::end(kNearOne),
                                [&](std::string_view end) { return name.ends_with(end); }) ||
                    name.find("norm.norms.") != std::string::npos;
  const float mean = one_plus && name.find("linear_attn") == std::string::npos ? 0.0f : 1.0f;
  std::vector<float> values(n);
  for (int64_t i = 0; i < n; ++i) {
    values[i] = norm ? normal(key, i) * 0.2f + mean : normal(key, i) * 0.12f;
  }
  return values;
}

std::vector<std::byte> mxfp4_bytes(const std::string& name, int64_t n) {
  std::vector<std::byte> bytes(n);
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t x = mix(key_of(name) + i) & 0xff;
    bytes[i] = static_cast<std::byte>(name.ends_with("_blocks") ? x : 121 + x % 4);
  }
  return bytes;
}

Json read_golden(const std::string& name) {
  std::ifstream in(std::string(SNAPKV_SOURCE_DIR) + "/tests/huggingface/golden/" + name + ".json");
  return Json::parse(in);
}

void write_oracle_folder(const std::string& folder, const Json& golden) {
  write_text(folder + "/config.json", golden.at("config").dump(2));
  const std::string dtype = golden.at("dtype");
  const std::string type = dtype == "float32" ? "F32" : dtype == "float16" ? "F16" : "BF16";
  const std::string kind = golden.at("config").at("model_type");
  const bool one_plus = kind == "gemma" || kind == "gemma2" || kind == "nemotron" ||
                        kind == "gemma3_text" || kind.starts_with("qwen3_5") ||
                        kind == "qwen3_next" || kind == "step3p7";
  Json index = {{"metadata", Json::object()}, {"weight_map", Json::object()}};
  for (const auto& [file, names] : golden.at("files").items()) {
    std::vector<HfTensor> tensors;
    for (const auto& [name, shape] : names.items()) {
      int64_t n = 1;
      for (const int64_t size : shape) n *= size;
      if (name.ends_with("_blocks") || name.ends_with("_scales")) {
        tensors.push_back({name, "U8", shape, mxfp4_bytes(name, n)});
      } else {
        tensors.push_back({name, type, shape, bytes_of(oracle_values(name, n, one_plus), type)});
      }
      index["weight_map"][name] = file;
    }
    write_bytes(folder + "/" + file, safetensors_bytes(tensors));
  }
  if (golden.at("files").size() > 1) {
    write_text(folder + "/model.safetensors.index.json", index.dump(2));
  }
  write_spm_tokenizer(folder);
}

Json spm_tokenizer() {
  Json tokenizer = Json::parse(R"({
    "version": "1.0",
    "added_tokens": [
      {"id": 0, "content": "<unk>", "single_word": false, "lstrip": false,
       "rstrip": false, "normalized": false, "special": true},
      {"id": 1, "content": "<s>", "single_word": false, "lstrip": false,
       "rstrip": false, "normalized": false, "special": true},
      {"id": 2, "content": "</s>", "single_word": false, "lstrip": false,
       "rstrip": false, "normalized": false, "special": true}],
    "normalizer": {"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "\u2581"},
      {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "pre_tokenizer": null,
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
               {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "<s>", "type_id": 1}},
               {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}},
    "decoder": {"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"},
      {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
    "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true,
      "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2},
      "merges": ["a b", "\u2581 a", "ab c", "\u2581a b", "\u2581 ab"]}})");
  Json& vocab = tokenizer["model"]["vocab"];
  for (int i = 0; i < 256; ++i) vocab[fmt::format("<0x{:02X}>", i)] = 3 + i;
  int id = 259;
  for (const char* text : {"\u2581", "a", "b", "c", "ab", "abc", "\u2581a", "\u2581ab"}) {
    vocab[text] = id++;
  }
  return tokenizer;
}

void write_spm_tokenizer(const std::string& folder) {
  write_text(folder + "/tokenizer.json", spm_tokenizer().dump());
  write_text(folder + "/tokenizer_config.json",
             R"({"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})");
}

}  // namespace snapkv::test
