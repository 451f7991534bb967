// SPDX-License-Identifier: MIT
#include "huggingface/folder.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>

#include "base/hash.h"
#include "base/log.h"
#include "format/ggml_types.h"
#include "huggingface/biased_config.h"
#include "huggingface/dense_config.h"
#include "huggingface/falcon_h1_config.h"
#include "huggingface/remote_layers_config.h"
#include "huggingface/vocabulary.h"

namespace snapkv::huggingface {
namespace {

constexpr JsonLimits kConfigLimits{.bytes = size_t{4} << 20, .depth = 32, .python_numbers = true};
constexpr uint64_t kLargeBytes = uint64_t{1} << 20;  // of copies

/// "models/SmolLM2-135M" -> "SmolLM2-135M"
std::string name_of(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::weakly_canonical(path, error);
  return error ? path : whole.filename().string();
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
  Presenter(Folder folder, const ReadOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  GgufFile run() {
    parts_.metadata = std::move(folder_.in_place);
    parts_.metadata.merge(folder_.metadata);  // but for the keys that are there
    for (MappedTensor& m : folder_.tensors) {
      note_order(m);
      m.keep_in_place();
    }
    check_copies();
    for (const MappedTensor& m : folder_.tensors) parts_.tensors.push_back(present(m));
    Hash64 hash;
    hash.add(folder_.shards.fingerprint());
    add_metadata(hash);
    parts_.fingerprint = hash.value();
    parts_.path = std::move(folder_.path);
    parts_.files = std::move(folder_.shards.files);
    return GgufFile::assemble(std::move(parts_));
  }

 private:
  /// Says in the metadata which order of rows a tensor keeps.
  void note_order(const MappedTensor& m) {
    if (m.edit == Edit::permute_q || m.edit == Edit::permute_k) {
      parts_.metadata["snapkv.rope.layout"] = {GgufType::string, GgufType::u32, "neox"};
    }
    if (m.edit == Edit::value_heads && m.heads.take_turns) {
      parts_.metadata["snapkv.delta_net.value_heads"] = {GgufType::string, GgufType::u32,
                                                         "grouped"};
    }
  }

  static bool must_be_copied(const MappedTensor& m) {
    return m.source == nullptr || !m.is_view() || !is_aligned(m.tensor.data, m.tensor.dtype);
  }
  static DType copied_type(const MappedTensor& m) {
    return m.changes_values() ? DType::f32 : m.tensor.dtype;
  }
  static uint64_t copied_bytes(const MappedTensor& m) {
    return m.n_rows() * row_bytes(copied_type(m), m.row_values());
  }

  /// Fails if the copies do not fit into the memory.
  void check_copies() const {
    uint64_t bytes = 0;
    for (const MappedTensor& m : folder_.tensors) bytes += must_be_copied(m) ? copied_bytes(m) : 0;
    if (bytes > options_.most_copied) {
      fail(ErrorCode::kDoesNotFit,
           "'{}': {} MiB of weights are stored otherwise than here and must be copied, and only {} "
           "MiB of memory are free; a file that snapkv convert writes is read without copies",
           folder_.path, bytes >> 20, options_.most_copied >> 20);
    }
    if (bytes >= kLargeBytes && options_.copies_values) {
      log_info("{}: {} MiB of weights are stored otherwise than here and are copied", folder_.path,
               bytes >> 20);
    }
  }

  GgufTensor present(const MappedTensor& m) {
    GgufTensor t;
    t.name = m.name;
    t.tensor = m.tensor;
    t.part = GgufTensor::kNoFile;
    if (must_be_copied(m)) {
      t.tensor = copied(m);
    } else {
      t.part = m.source->file;
      t.file_offset =
          m.source->entry.begin + (static_cast<const std::byte*>(m.tensor.data) - m.source->data);
    }
    t.ggml_type = dtype_info(t.tensor.dtype).ggml_type;
    t.n_bytes = m.n_rows() * row_bytes(t.tensor.dtype, m.row_values());
    return t;
  }

  Tensor copied(const MappedTensor& m) {
    const Tensor& from = m.tensor;
    const DType dtype = copied_type(m);
    std::byte* const to = is_filled(m) ? filled(m) : unfilled();
    if (from.rank == 1) return {to, dtype, {from.shape[0]}};
    if (from.rank == 2) return {to, dtype, {from.shape[0], from.shape[1]}};
    if (from.rank == 3) return {to, dtype, {from.shape[0], from.shape[1], from.shape[2]}};
    return {to, dtype, {from.shape[0], from.shape[1], from.shape[2], from.shape[3]}};
  }

  bool is_filled(const MappedTensor& m) const {
    return options_.copies_values || copied_bytes(m) < kLargeBytes;
  }

  std::byte* filled(const MappedTensor& m) {
    const int64_t bytes = row_bytes(copied_type(m), m.row_values());
    parts_.buffers.push_back(Buffer::host(copied_bytes(m), "weights"));
    auto* const to = static_cast<std::byte*>(parts_.buffers.back().data());
    for (int64_t i = 0; i < m.n_rows(); ++i) {
      if (m.changes_values()) {
        m.read_row(i, reinterpret_cast<float*>(to + i * bytes));
      } else {
        m.copy_row(i, to + i * bytes);
      }
    }
    return to;
  }

  /// Memory without values, the same for all tensors that nobody reads.
  std::byte* unfilled() {
    if (unfilled_ == nullptr) {
      uint64_t most = 0;
      for (const MappedTensor& m : folder_.tensors) {
        if (must_be_copied(m) && !is_filled(m)) most = std::max(most, copied_bytes(m));
      }
      parts_.buffers.push_back(Buffer::host(most, "weights"));
      unfilled_ = static_cast<std::byte*>(parts_.buffers.back().data());
    }
    return unfilled_;
  }

  /// Adds everything in the folder except its tensors to the hash, the vocabulary included: keys
  /// with their values, each preceded by its length.
  void add_metadata(Hash64& hash) const {
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
  const ReadOptions options_;
  ModelParts parts_;
  std::byte* unfilled_ = nullptr;  // in parts_.buffers
};

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

std::vector<std::string> files_of(const std::string& path) {
  constexpr std::string_view kNames[] = {"config.json",           "tokenizer.json",
                                         "tokenizer.model",       "added_tokens.json",
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
  if (folder.config.mapping->architecture == "apertus") {
    add_xielu_keys(folder.config, folder.shards, path, keys);
  }
  if (folder.config.mapping->architecture == "talkie") {
    add_talkie_factor(folder.config, folder.shards, path, keys);
  }
  keys.text("general.name", name_of(path));
  add_vocabulary_keys(path, root, folder.config, keys);
  add_template_keys(path, keys);
  folder.metadata = keys.take();
  Keys in_place;
  if (folder.config.is_falcon_h1()) add_factor_keys(folder.config, in_place);
  if (folder.config.mapping->architecture == "jais") {
    check_jais_slopes(folder.config, folder.shards);
    add_jais_factor_keys(folder.config, in_place);
  }
  if (folder.config.rwkv.rescale_every > 0) in_place.u32("rwkv6.rescale_every_n_layers", 0);
  folder.in_place = in_place.take();
  return folder;
}

GgufFile to_model(Folder folder, const ReadOptions& options) {
  return Presenter(std::move(folder), options).run();
}

}  // namespace snapkv::huggingface
