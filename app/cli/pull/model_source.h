// SPDX-License-Identifier: MIT
// What people write after snapkv pull: a repository of Hugging Face, or the URL of a file.
#pragma once

#include <string>
#include <variant>

namespace snapkv::cli {

/// A model in a repository of Hugging Face.
struct HubSource {
  std::string repo;               ///< "Qwen/Qwen2.5-0.5B-Instruct-GGUF"
  std::string revision = "main";  ///< branch, tag or commit
  std::string quant;              ///< "Q4_K_M"; empty: the usual one
  std::string file;               ///< a file's path in the repository; empty: chosen by `quant`
};

/// One GGUF file anywhere.
struct UrlSource {
  std::string url;
  std::string file_name;  ///< "model.gguf"
};

using ModelSource = std::variant<HubSource, UrlSource>;

/// HF_ENDPOINT, else https://huggingface.co; without a slash at its end.
std::string hub_endpoint();

/// Reads org/repo[:QUANT], org/repo/FILE.gguf, the same after hf.co/ or huggingface.co/, the URL of
/// a repository or of a page of its files, or the URL of a .gguf file. Throws Error{kUsage} saying
/// what is expected, and for names of ollama's registry why they are not fetched.
ModelSource parse_source(const std::string& name);

/// Whether `name` is certainly meant for parse_source(): org/repo:QUANT, hf.co/... or a URL; or
/// org/repo, which may also be a file's path.
bool is_source(const std::string& name);

}  // namespace snapkv::cli
