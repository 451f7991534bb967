// SPDX-License-Identifier: MIT
#include "huggingface/folder.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>

#include "base/half.h"
#include "base/hash.h"
#include "format/ggml_types.h"
#include "huggingface/vocabulary.h"

namespace snapkv::huggingface {
namespace {

constexpr JsonLimits kConfigLimits{.bytes = size_t{4} << 20, .depth = 32};

/// "models/SmolLM2-135M" -> "SmolLM2-135M"
std::string name_of(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(path, error);
  return error ? path : whole.filename().string();
}

/// Value `i` of a tensor of a plain type, as f32.
float value_at(const Tensor& t, int64_t i) {
  const auto* bytes = static_cast<const std::byte*>(t.data) + i * block_bytes(t.dtype);
  if (t.dtype == DType::f32) {
    float value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return t.dtype == DType::f16 ? to_f32(std::bit_cast<f16_t>(bits))
                               : to_f32(std::bit_cast<bf16_t>(bits));
}

bool is_aligned(const void* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % block_bytes(dtype) == 0;
}

/// Calls `use` with the value, or, for an array, with the number of items and then with each item.
template <typename Use>
void visit_values(const GgufValue& value, const Use& use) {
  std::visit(
      [&](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_arithmetic_v<Held> || std::is_same_v<Held, std::string>) {
          use(held);
        } else {
          use(uint64_t{held.size()});
          for (const auto& item : held) use(item);
        }
      },
      value.value);
}

class Presenter {
 public:
  explicit Presenter(Folder folder) : folder_(std::move(folder)) {}

  GgufFile run() {
    parts_.metadata = std::move(folder_.metadata);
    for (const MappedTensor& m : folder_.tensors) parts_.tensors.push_back(present(m));
    Fnv1a hash;
    hash.add(folder_.shards.fingerprint());
    add_metadata(hash);
    parts_.fingerprint = hash.value();
    parts_.path = std::move(folder_.path);
    parts_.files = std::move(folder_.shards.files);
    return GgufFile::assemble(std::move(parts_));
  }

 private:
  GgufTensor present(const MappedTensor& m) {
    GgufTensor t;
    t.name = m.name;
    t.tensor = m.tensor;
    t.part = GgufTensor::kNoFile;
    if (m.edit == Edit::permute_q || m.edit == Edit::permute_k) {
      parts_.metadata["snapkv.rope.layout"] = {GgufType::string, GgufType::u32, "neox"};
    }
    if (m.source == nullptr || m.edit == Edit::add_one ||
        !is_aligned(m.tensor.data, m.tensor.dtype)) {
      t.tensor = copied(m);
    } else {
      t.part = m.source->file;
      t.file_offset = m.source->entry.begin;
    }
    t.ggml_type = dtype_info(t.tensor.dtype).ggml_type;
    t.n_bytes = t.tensor.numel() * block_bytes(t.tensor.dtype);
    return t;
  }

  Tensor copied(const MappedTensor& m) {
    const Tensor& from = m.tensor;
    const DType dtype = m.edit == Edit::add_one ? DType::f32 : from.dtype;
    const size_t bytes = from.numel() * block_bytes(dtype);
    parts_.buffers.push_back(Buffer::host(bytes, "weights"));
    Tensor to = from;
    to.dtype = dtype;
    to.data = parts_.buffers.back().data();
    if (m.edit == Edit::add_one) {
      to.stride[to.rank - 1] = sizeof(float);  // a vector
      auto* out = static_cast<float*>(to.data);
      for (int64_t i = 0; i < from.numel(); ++i) out[i] = value_at(from, i) + 1.0f;
      return to;
    }
    std::memcpy(to.data, from.data, bytes);
    return to;
  }

  /// Adds everything in the folder except its tensors to the hash, the vocabulary included: keys
  /// with their values, each preceded by its length.
  void add_metadata(Fnv1a& hash) const {
    const auto add_text = [&](std::string_view text) {
      hash.add(text.size());
      hash.add(text);
    };
    for (const auto& [key, value] : parts_.metadata) {
      add_text(key);
      hash.add(value.value.index());
      visit_values(value, [&](const auto& item) {
        using Item = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<Item, std::string>) {
          add_text(item);
        } else if constexpr (std::is_same_v<Item, double>) {
          hash.add(std::bit_cast<uint64_t>(item));
        } else {
          hash.add(static_cast<uint64_t>(item));
        }
      });
    }
  }

  Folder folder_;
  ModelParts parts_;
};

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<std::string> files_of(const std::string& path) {
  constexpr std::string_view kNames[] = {"config.json",           "tokenizer.json",
                                         "tokenizer_config.json", "generation_config.json",
                                         "chat_template.jinja",   "model.safetensors.index.json"};
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const std::string name = entry.path().filename().string();
    const bool is_read = name.ends_with(".safetensors") ||
                         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
    if (is_read) files.push_back(entry.path().string());
  }
  return files;
}

std::string class_name(const std::string& path) {
  try {
    const auto json = read_json_if_there(path + "/config.json", kConfigLimits);
    const Json names = json ? json->value("architectures", Json()) : Json();
    return names.is_array() && !names.empty() && names[0].is_string() ? names[0].get<std::string>()
                                                                      : "";
  } catch (const Error&) {
    return "";  // open_folder() reports what is wrong with the file
  }
}

Folder open_folder(const std::string& path, const ReadOptions& options) {
  Folder folder;
  folder.path = path;
  const std::string config_path = path + "/config.json";
  const auto json = read_json_if_there(config_path, kConfigLimits);
  if (!json) {
    fail(ErrorCode::kBadModel, "'{}' is a folder without config.json, which a model's has", path);
  }
  const JsonFields root(*json, config_path);
  folder.config = read_config(root);
  folder.shards = open_shards(path, options);
  folder.tensors = map_tensors(folder.config, folder.shards, path);
  Keys keys;
  add_config_keys(folder.config, keys);
  keys.text("general.name", name_of(path));
  add_vocabulary_keys(path, root, folder.config, keys);
  add_template_keys(path, keys);
  folder.metadata = keys.take();
  return folder;
}

GgufFile to_model(Folder folder) { return Presenter(std::move(folder)).run(); }

}  // namespace snapkv::huggingface
