// SPDX-License-Identifier: MIT
#include "cli/demo/needle_model.h"

#include <filesystem>

#include "base/error.h"
#include "eval/needle/needle.h"

namespace snapkv::cli {
namespace {

std::string find_needle_model(const ModelSettings& settings) {
  if (!settings.path.empty()) return settings.path;
  std::vector<std::filesystem::path> places = {"models/needle.gguf"};
  std::error_code error;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back((binary.parent_path() / "../share/snapkv/needle.gguf").lexically_normal());
  }
  std::string tried;
  for (const auto& place : places) {
    if (std::filesystem::is_regular_file(place, error)) return place.string();
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  fail(ErrorCode::kUsage, "found no needle model ({}): name it with -m FILE or SNAPKV_MODEL",
       tried);
}

}  // namespace

CacheSettings needle_cache_defaults() {
  CacheSettings cache;
  cache.params = {{"budget", 128}};
  return cache;
}

std::shared_ptr<const Model> load_needle_model(const ModelSettings& settings, ProgressFn progress) {
  ModelSettings found = settings;
  found.path = find_needle_model(settings);
  return load_model(found, std::move(progress));
}

NeedlePrompt make_needle_prompt(const Model& model, const NeedleSpec& spec) {
  eval::NeedleOptions options;
  options.seed = spec.seed;
  options.name = spec.name;
  eval::Prompt made = eval::make_needle(model, options, spec.length, spec.depth, 0);
  NeedlePrompt prompt;
  prompt.tokens = std::move(made.tokens);
  prompt.text = std::move(made.text);
  prompt.digits = made.references.at(0);
  prompt.fact = made.details.at("facts").at(0).at("text");
  const size_t fact = prompt.text.find("\n" + prompt.fact + "\n") + 1;
  const size_t question = prompt.text.rfind("\nQuestion:");
  prompt.before = prompt.text.substr(0, fact - 1);
  prompt.after =
      prompt.text.substr(fact + prompt.fact.size(), question - fact - prompt.fact.size());
  prompt.question = prompt.text.substr(question);
  prompt.fact_token = std::ssize(model.tokenize(prompt.text.substr(0, fact)));
  return prompt;
}

}  // namespace snapkv::cli
