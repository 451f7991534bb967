// SPDX-License-Identifier: MIT
// The models that are on this machine already: in the folders of other programs, and snapkv's own.
#pragma once

#include <string>
#include <vector>

namespace snapkv::cli {

struct LocalModel {
  std::string name;    ///< as its store calls it: "HuggingFaceTB/SmolLM2-135M", "llama3:8b"
  std::string path;    ///< a GGUF file (of a split one: the first part), or a Hugging Face folder
  std::string source;  ///< whose store it is: "ollama"
};

/// Looks into the local Hugging Face cache, the stores of ollama, LM Studio and llama.cpp,
/// models/real of `make models` and $XDG_CACHE_HOME/snapkv/models, asks no server. What
/// can't be read is left out.
std::vector<LocalModel> find_local_models();

/// The folders that find_local_models() looks into, whether they are there or not.
std::vector<std::string> model_folders();

/// The path of the model that a user calls `name`: a file, a folder, a folder with one GGUF file,
/// or the name of a local model, in part if that is clear. The same file in several stores is one
/// model. Empty for none; throws kUsage for several.
std::string find_local_model(const std::string& name);
/// The same; throws kUsage for none, too.
std::string find_model(const std::string& name);
/// The path of a model where a file is expected and a name will do: what is a path stays as it is,
/// whether it is there or not.
std::string model_path(const std::string& given);

}  // namespace snapkv::cli
