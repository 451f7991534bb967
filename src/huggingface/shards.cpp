// SPDX-License-Identifier: MIT
#include "huggingface/shards.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "format/byte_reader.h"
#include "huggingface/json_file.h"

namespace snapkv::huggingface {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr JsonLimits kIndexLimits{.bytes = size_t{100} << 20, .depth = 8};
constexpr size_t kMaxShards = 1024;  // the most that mapped_file_at() knows; models have hundreds

bool there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;  // opening the file reports the error
}

/// The index: for each tensor, the name of its file. The files must be in the folder itself.
std::unordered_map<std::string, std::string> read_index(const std::string& path) {
  const Json json = read_json(path, kIndexLimits);
  const JsonFields fields(json, path);
  const auto map = fields.object("weight_map");
  if (!map) fields.bad("weight_map", "is missing");
  std::unordered_map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->json().items()) {
    const std::string& name = map->text(tensor);
    const bool plain = !name.empty() && name != "." && name != ".." &&
                       std::all_of(name.begin(), name.end(), [](unsigned char c) {
                         return c > 0x20 && c != 0x7f && c != '/' && c != '\\';
                       });
    if (!plain || !name.ends_with(".safetensors")) {
      map->bad(tensor, "is '{}', expected the name of a .safetensors file in the same folder",
               printable(name));
    }
    files.emplace(tensor, name);
  }
  return files;
}

void fail_without_weights(const std::string& folder) {
  for (const char* other : {"pytorch_model.bin", "pytorch_model.bin.index.json",
                            "consolidated.safetensors", "adapter_model.safetensors"}) {
    if (!there(folder + "/" + other)) continue;
    fail(ErrorCode::kBadModel, "'{}' has {}, which is not supported, and no {} nor {}", folder,
         other, kSingleFile, kIndexFile);
  }
  fail(ErrorCode::kBadModel, "'{}' has no weights: neither {} nor {} is there", folder, kSingleFile,
       kIndexFile);
}

class Opener {
 public:
  Opener(const std::string& folder, const ReadOptions& options)
      : folder_(folder), options_(options), left_(options.most_copied) {}

  Shards open() {
    if (there(folder_ + "/" + kSingleFile)) {
      add_file(kSingleFile);
    } else if (there(folder_ + "/" + kIndexFile)) {
      open_indexed();
    } else {
      fail_without_weights(folder_);
    }
    return std::move(shards_);
  }

 private:
  void open_indexed() {
    const std::string index_path = folder_ + "/" + kIndexFile;
    const auto index = read_index(index_path);
    std::set<std::string> names;
    for (const auto& [tensor, file] : index) names.insert(file);
    if (names.size() > kMaxShards) {
      fail(ErrorCode::kBadModel, "'{}': weight_map names {} files, expected at most {}", index_path,
           names.size(), kMaxShards);
    }
    for (const std::string& name : names) {
      if (!there(folder_ + "/" + name)) {
        fail(ErrorCode::kBadModel, "'{}': weight_map names the file '{}', which is not in '{}'",
             index_path, name, folder_);
      }
      add_file(name);
    }
    check_index(index, index_path);
  }

  /// Checks that every tensor of the index is where the index says, and that there are no others.
  void check_index(const std::unordered_map<std::string, std::string>& index,
                   const std::string& index_path) const {
    for (const ShardTensor& t : shards_.tensors) {
      const auto at = index.find(t.entry.name);
      const std::string& path = shards_.paths[t.file];
      if (at == index.end()) {
        fail(ErrorCode::kBadModel, "'{}': weight_map lacks tensor '{}', which is in '{}'",
             index_path, printable(t.entry.name), path);
      }
      if (folder_ + "/" + at->second != path) {
        fail(ErrorCode::kBadModel,
             "'{}': weight_map says that tensor '{}' is in '{}', it is in '{}'", index_path,
             printable(t.entry.name), at->second, path);
      }
    }
    if (shards_.tensors.size() == index.size()) return;  // names are unique on both sides
    std::set<std::string_view> found;
    for (const ShardTensor& t : shards_.tensors) found.insert(t.entry.name);
    for (const auto& [tensor, file] : index) {
      if (found.contains(tensor)) continue;
      fail(ErrorCode::kBadModel,
           "'{}': weight_map says that tensor '{}' is in '{}', which lacks it", index_path,
           printable(tensor), file);
    }
  }

  void add_file(const std::string& name) {
    const std::string path = folder_ + "/" + name;
    if (options_.access == FileAccess::copied) left_ -= bytes_to_copy(path, left_);
    shards_.files.emplace_back(path, options_.access);
    shards_.paths.push_back(path);
    const std::span<const std::byte> bytes = shards_.files.back().bytes();
    const int file = std::ssize(shards_.files) - 1;
    for (SafetensorsEntry& entry : parse_safetensors(bytes, path)) {
      const auto [at, inserted] = names_.emplace(entry.name, file);
      if (!inserted) {
        fail(ErrorCode::kBadModel, "'{}': tensor '{}' is in '{}' too", path, printable(entry.name),
             shards_.paths[at->second]);
      }
      const std::byte* data = bytes.data() + entry.begin;
      shards_.tensors.push_back({std::move(entry), file, data});
    }
  }

  const std::string& folder_;
  const ReadOptions& options_;
  uint64_t left_;  // bytes that may still be copied
  Shards shards_;
  std::unordered_map<std::string, int> names_;  // tensor name -> file
};

}  // namespace

uint64_t Shards::fingerprint() const {
  Hash64 hash;
  for (const ShardTensor& t : tensors) {
    hash.add(t.entry.name);
    hash.add(t.entry.type->name);
    for (const int64_t n : t.entry.shape) hash.add(n);
    hash.add(t.entry.begin);
  }
  return hash.value();
}

Shards open_shards(const std::string& folder, const ReadOptions& options) {
  return Opener(folder, options).open();
}

}  // namespace snapkv::huggingface
