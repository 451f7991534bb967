// SPDX-License-Identifier: MIT
#include "cli/models/local_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/models/gguf_name.h"
#include "cli/models/model_folders.h"
#include "eval/common/json_field.h"

namespace snapkv::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// What a folder holds, sorted by name; nothing where it can't be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> all;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) {
    all.push_back(i->path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

/// A model in one GGUF file, or the first part of one: no projector of pictures, no further part.
bool is_gguf(const fs::path& path) {
  const std::string name = path.filename().string();
  if (path.extension() != ".gguf" || name.starts_with("mmproj") || !is_there(path)) return false;
  const size_t of = name.rfind("-of-");
  return of == std::string::npos || of < 5 || name.substr(of - 5, 5) == "00001";
}

bool is_hf_folder(const fs::path& folder) {
  if (!is_there(folder / "config.json")) return false;
  const std::vector<fs::path> all = entries(folder);
  return std::any_of(all.begin(), all.end(),
                     [](const fs::path& p) { return p.extension() == ".safetensors"; });
}

/// GGUF files below `folder`, named by their paths from there without the ending.
void add_files(const fs::path& folder, const std::string& source, int depth,
               std::vector<LocalModel>& models, const fs::path& top) {
  for (const fs::path& entry : entries(folder)) {
    if (is_gguf(entry)) {
      std::string name = entry.lexically_relative(top).replace_extension().generic_string();
      models.push_back({std::move(name), entry.string(), source});
    } else if (depth > 0 && is_folder(entry)) {
      if (is_hf_folder(entry)) {
        models.push_back({entry.lexically_relative(top).generic_string(), entry.string(), source});
      } else {
        add_files(entry, source, depth - 1, models, top);
      }
    }
  }
}

/// What is in one snapshot of a repository.
std::vector<LocalModel> models_of_snapshot(const fs::path& snapshot, const std::string& name) {
  if (is_hf_folder(snapshot)) return {{name, snapshot.string(), "Hugging Face"}};
  std::vector<LocalModel> files;
  add_files(snapshot, "Hugging Face", 2, files, snapshot);
  for (LocalModel& file : files) file.name = name + "/" + file.name;
  return files;
}

/// models--OWNER--NAME/snapshots/REVISION/..., of which refs/main names the newest. What only older
/// ones have is listed too.
void add_hugging_face(const fs::path& hub, std::vector<LocalModel>& models) {
  constexpr std::string_view kPrefix = "models--";
  for (const fs::path& repository : entries(hub)) {
    std::string name = repository.filename().string();
    if (!name.starts_with(kPrefix)) continue;
    name.erase(0, kPrefix.size());
    if (const size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
    std::string revision;
    std::ifstream(repository / "refs" / "main") >> revision;
    std::vector<fs::path> snapshots = entries(repository / "snapshots");
    std::stable_partition(snapshots.begin(), snapshots.end(), [&](const fs::path& snapshot) {
      return snapshot.filename() == revision;
    });
    std::set<std::string> names;
    for (const fs::path& snapshot : snapshots) {
      for (LocalModel& model : models_of_snapshot(snapshot, name)) {
        if (names.insert(model.name).second) models.push_back(std::move(model));
      }
    }
  }
}

std::vector<fs::path> ollama_folders() {
  if (const std::string set = variable_or_empty("OLLAMA_MODELS"); !set.empty()) return {set};
  std::vector<fs::path> folders = {home_folder(".ollama/models"),
                                   "/usr/share/ollama/.ollama/models",
                                   "/var/lib/ollama/.ollama/models"};
  std::erase_if(folders, [](const fs::path& folder) { return folder.empty(); });
  return folders;
}

/// The blob of a manifest's model; empty where it names none.
fs::path ollama_blob(const fs::path& manifest, const fs::path& folder) {
  std::ifstream in(manifest, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    const Json layers = eval::parse_json(text).value("layers", Json::array());
    for (const Json& layer : layers) {
      if (layer.value("mediaType", "") != "application/vnd.ollama.image.model") continue;
      std::string digest = layer.value("digest", "");
      std::replace(digest.begin(), digest.end(), ':', '-');
      if (digest.find('/') != std::string::npos) return {};
      return folder / "blobs" / digest;
    }
  } catch (const Json::exception&) {  // another program's file
  }
  return {};
}

/// manifests/REGISTRY/OWNER/NAME/TAG, a JSON file that names a blob.
void add_ollama(const fs::path& folder, std::vector<LocalModel>& models) {
  for (const fs::path& registry : entries(folder / "manifests")) {
    for (const fs::path& owner : entries(registry)) {
      for (const fs::path& model : entries(owner)) {
        for (const fs::path& tag : entries(model)) {
          const fs::path blob = ollama_blob(tag, folder);
          if (blob.empty() || !is_there(blob)) continue;
          std::string name = model.filename().string() + ":" + tag.filename().string();
          if (owner.filename() != "library") name = owner.filename().string() + "/" + name;
          models.push_back({std::move(name), blob.string(), "ollama"});
        }
      }
    }
  }
}

/// models/real here, and in the folder that the program was built in.
std::vector<fs::path> made_folders() {
  std::error_code error;
  std::vector<fs::path> folders = {fs::path("models") / "real"};
  const fs::path program = fs::read_symlink("/proc/self/exe", error);  // build/release/bin/snapkv
  if (!error) {
    const fs::path source = program.parent_path().parent_path().parent_path().parent_path();
    if (is_there(source / "CMakeLists.txt")) folders.push_back(source / "models" / "real");
  }
  if (folders.size() == 2 && fs::equivalent(folders[0], folders[1], error)) folders.pop_back();
  return folders;
}

struct Store {
  fs::path folder;
  const char* source;
};

std::vector<Store> stores_of_files() {
  const std::string llama = variable_or_empty("LLAMA_CACHE");
  std::vector<Store> stores = {
      {own_models_folder(), "snapkv"},
      {home_folder(".lmstudio/models"), "LM Studio"},
      {home_folder(".cache/lm-studio/models"), "LM Studio"},
      {llama.empty() ? below_cache("llama.cpp") : fs::path(llama), "llama.cpp"}};
  std::erase_if(stores, [](const Store& store) { return store.folder.empty(); });
  for (const fs::path& folder : made_folders()) stores.push_back({folder, "make models"});
  return stores;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Whether `name` (in lower case) is all of a model's name, or what people call it for short.
bool is_called(const LocalModel& model, const std::string& name) {
  const std::string full = lower(model.name);
  const std::string last = full.substr(full.find_last_of('/') + 1);
  return full == name || last == name || last + ".gguf" == name || full + ".gguf" == name ||
         full == name + ":latest" || last == name + ":latest";
}

/// Whether `name` (in lower case) is a repository and a quantization, or a file's name, as snapkv
/// pull takes them: "org/repo:q4_k_m".
bool is_hub_file(const LocalModel& model, const std::string& name) {
  constexpr std::string_view kHosts[] = {"hf.co/", "huggingface.co/"};
  std::string_view wanted = name;
  for (const std::string_view host : kHosts) {
    if (wanted.starts_with(host)) wanted.remove_prefix(host.size());
  }
  const size_t colon = wanted.find(':');
  const std::string beginning = std::string(wanted.substr(0, colon)) + "/";
  const std::string full = lower(model.name);
  if (!full.starts_with(beginning)) return false;
  if (colon == std::string_view::npos) return true;
  const std::string quant(wanted.substr(colon + 1));
  const std::string file = split_name(full + ".gguf").name;
  return file == beginning + quant || has_quant(file, quant, QuantPlace::end) ||
         has_quant(file, quant, QuantPlace::middle);
}

std::string list_of(const std::vector<LocalModel>& models) {
  std::string text;
  for (const LocalModel& model : models) text += "\n  " + model.name + " (" + model.source + ")";
  return text;
}

/// Whether two stores have the same file: one of the same name and size.
bool are_copies(const LocalModel& a, const LocalModel& b) {
  const auto file_name = [](const LocalModel& model) {
    return lower(model.name.substr(model.name.rfind('/') + 1));  // npos + 1 is 0
  };
  if (file_name(a) != file_name(b)) return false;
  std::error_code error;  // also for folders
  const auto size = fs::file_size(a.path, error);
  return !error && size == fs::file_size(b.path, error) && !error;
}

/// The models without those that are copies of an earlier one.
std::vector<LocalModel> without_copies(const std::vector<LocalModel>& models) {
  std::vector<LocalModel> kept;
  for (const LocalModel& model : models) {
    const bool is_new = std::none_of(
        kept.begin(), kept.end(), [&](const LocalModel& each) { return are_copies(each, model); });
    if (is_new) kept.push_back(model);
  }
  return kept;
}

/// A folder's model: itself, or the only GGUF file in it.
std::string model_of_folder(const std::string& folder) {
  if (is_there(fs::path(folder) / "config.json")) return folder;
  std::vector<std::string> files;
  for (const fs::path& entry : entries(folder)) {
    if (is_gguf(entry)) files.push_back(entry.string());
  }
  if (files.size() == 1) return files.front();
  fail(ErrorCode::kUsage,
       "{}: a folder with {}: name one file, or the folder of a Hugging Face model", folder,
       files.empty() ? "no model"
                     : fmt::format("{} models: {}", files.size(), fmt::join(files, ", ")));
}

}  // namespace

std::vector<LocalModel> find_local_models() {
  std::vector<LocalModel> models;
  for (const Store& store : stores_of_files()) {
    add_files(store.folder, store.source, 3, models, store.folder);
  }
  add_hugging_face(hugging_face_folder(), models);
  for (const fs::path& folder : ollama_folders()) add_ollama(folder, models);
  return models;
}

std::vector<std::string> model_folders() {
  std::vector<std::string> folders;
  for (const Store& store : stores_of_files()) folders.push_back(store.folder.string());
  if (const fs::path hub = hugging_face_folder(); !hub.empty()) folders.push_back(hub.string());
  for (const fs::path& folder : ollama_folders()) folders.push_back(folder.string());
  return folders;
}

std::string find_local_model(const std::string& name) {
  if (is_folder(name)) return model_of_folder(name);
  if (is_there(name)) return name;
  const std::vector<LocalModel> models = find_local_models();
  const std::string wanted = lower(name);
  std::vector<LocalModel> found;
  const auto keep = [&](const auto& matches) {
    if (!found.empty() || wanted.empty()) return;
    std::copy_if(models.begin(), models.end(), std::back_inserter(found), matches);
  };
  keep([&](const LocalModel& model) { return is_called(model, wanted); });
  keep([&](const LocalModel& model) { return is_hub_file(model, wanted); });
  keep(
      [&](const LocalModel& model) { return lower(model.name).find(wanted) != std::string::npos; });
  found = without_copies(found);
  if (found.size() > 1) {
    fail(ErrorCode::kUsage, "'{}' may be any of {} models; name one of them:{}", name, found.size(),
         list_of(found));
  }
  return found.empty() ? "" : found.front().path;
}

std::string find_model(const std::string& name) {
  if (std::string path = find_local_model(name); !path.empty()) return path;
  std::vector<std::string> names;
  for (const LocalModel& model : find_local_models()) names.push_back(model.name);
  const std::string near = nearest_name(name, names);
  fail(ErrorCode::kUsage,
       "there is no model '{}': neither a file or folder nor a model on this machine{}\n"
       "snapkv models lists those; snapkv pull fetches one from Hugging Face",
       name, near.empty() ? "" : fmt::format("; did you mean {}?", near));
}

std::string model_path(const std::string& given) {
  if (given.empty() || is_there(given)) return given;
  const bool is_name =
      given.find('/') == std::string::npos && fs::path(given).extension() != ".gguf";
  if (is_name) return find_model(given);
  const std::string found = find_local_model(given);  // "org/name", of Hugging Face's cache
  return found.empty() ? given : found;
}

}  // namespace snapkv::cli
