// SPDX-License-Identifier: MIT
// Folder: a model as Hugging Face's transformers library saves it (config.json, safetensors,
// tokenizer.json and others), with GGUF's keys and tensor names for it. The engine can read it like
// a GGUF file, and it can be written as one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "format/gguf.h"
#include "huggingface/tensors.h"

namespace snapkv::huggingface {

struct Folder {
  std::string path;
  Config config;
  Shards shards;
  std::vector<MappedTensor> tensors;  // refer to `shards`
  std::map<std::string, GgufValue, std::less<>> metadata;
  /// What is said of it only where it is read in place: the factors that matrices do not have then.
  std::map<std::string, GgufValue, std::less<>> in_place;
};

/// Opens a folder. Throws Error{kRuntime} if something cannot be read, and Error{kBadModel} naming
/// the file, the field, and the expected and actual values.
Folder open_folder(const std::string& path, const ReadOptions& options = {});

/// The folder in the form the engine reads. Tensors stay where they are in the shards, except those
/// that have other values in GGUF, or whose values lie in an order that the engine cannot use
/// (MappedTensor::is_view()), which are copied. Rows of Q and K and heads of linear attention keep
/// the folder's order even where GGUF's differs; the keys snapkv.rope.layout and
/// snapkv.delta_net.value_heads tell which one it is. Matrices keep their values where GGUF's are
/// multiplied by factors (Factor), which are keys then.
GgufFile to_model(Folder folder, const ReadOptions& options = {});

/// The name that a folder's config.json gives the class of the model, "LlamaForCausalLM", whether
/// supported or not; empty if there is none.
std::string class_name(const std::string& path);

/// The files that open_folder() reads, if they exist.
std::vector<std::string> files_of(const std::string& path);

/// Whether `path` is a folder.
bool is_folder(const std::string& path);

}  // namespace snapkv::huggingface
