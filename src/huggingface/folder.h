// SPDX-License-Identifier: MIT
// Folder: a model as Hugging Face's transformers saves it (config.json, safetensors, tokenizer.json
// and others), with the keys and tensor names that GGUF has for it. Used by the engine, which reads
// such a folder as it reads a GGUF file, and by the writer of GGUF files.
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
  std::vector<MappedTensor> tensors;  // of `shards`
  std::map<std::string, GgufValue, std::less<>> metadata;
};

/// Opens a folder. Throws Error{kRuntime} when something can't be read, Error{kBadModel} naming
/// file, field, expected and actual.
Folder open_folder(const std::string& path, const ReadOptions& options = {});

/// The folder as the engine reads it. Tensors stay where they are in the shards, but for the small
/// ones that GGUF has other values of, of which copies are made. Rows of Q and K that GGUF has in
/// another order stay in theirs: the key snapkv.rope.layout says so.
GgufFile to_model(Folder folder);

/// What config.json of a folder calls the class of the model, "LlamaForCausalLM", supported or not;
/// empty where it doesn't say.
std::string class_name(const std::string& path);

/// The files of a folder that open_folder() reads, as far as they are there.
std::vector<std::string> files_of(const std::string& path);

/// Whether `path` is a folder.
bool is_folder(const std::string& path);

}  // namespace snapkv::huggingface
