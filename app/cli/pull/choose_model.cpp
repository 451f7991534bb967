// SPDX-License-Identifier: MIT
// choose_model(): which file of a repository is meant.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.h"
#include "cli/common/units.h"
#include "cli/models/gguf_name.h"
#include "cli/pull/hub.h"

namespace snapkv::cli {
namespace {

/// The quantizations that are taken where none is named, best first: small enough for most
/// machines, and of types that snapkv computes with.
constexpr std::string_view kUsual[] = {"Q4_K_M", "Q4_K_S", "Q4_0", "Q5_K_M", "Q5_K_S",
                                       "Q6_K",   "Q8_0",   "F16",  "BF16"};

/// Joins the parts of split files, -00001-of-00003.gguf and so on. A model of which parts are
/// missing has none.
std::vector<HubModel> models_of(const std::vector<HubFile>& files) {
  std::map<std::string, std::map<int, HubFile>> parts;
  std::map<std::string, int> counts;
  for (const HubFile& file : files) {
    const SplitName split = split_name(file.path);
    parts[split.name][split.part] = file;
    counts[split.name] = split.count;
  }
  std::vector<HubModel> models;
  for (auto& [name, all] : parts) {
    HubModel model = {.name = name, .parts = {}};
    if (std::ssize(all) == counts[name]) {
      for (auto& [number, file] : all) model.parts.push_back(std::move(file));
    }
    models.push_back(std::move(model));
  }
  return models;
}

std::string list_of_files(const std::vector<HubModel>& models) {
  constexpr size_t kMost = 40;
  std::string text;
  for (size_t i = 0; i < std::min(models.size(), kMost); ++i) {
    const HubModel& model = models[i];
    text += fmt::format("\n  {}  {}", model.name,
                        model.parts.empty() ? "(parts are missing)" : format_bytes(model.bytes()));
  }
  if (models.size() > kMost) text += fmt::format("\n  and {} more", models.size() - kMost);
  return text;
}

std::vector<HubModel> of_quant(const std::vector<HubModel>& models, std::string_view quant) {
  std::vector<HubModel> found;
  for (const QuantPlace place : {QuantPlace::end, QuantPlace::middle}) {
    if (!found.empty()) break;
    std::copy_if(models.begin(), models.end(), std::back_inserter(found),
                 [&](const HubModel& model) { return has_quant(model.name, quant, place); });
  }
  return found;
}

std::vector<HubModel> candidates(const std::vector<HubModel>& models, const HubSource& source) {
  if (!source.file.empty()) {
    const std::string wanted = split_name(source.file).name;
    std::vector<HubModel> found;
    const bool has_folder = wanted.find('/') != std::string::npos;
    std::copy_if(models.begin(), models.end(), std::back_inserter(found), [&](const HubModel& m) {
      return m.name == wanted || (!has_folder && m.name.ends_with("/" + wanted));
    });
    return found;
  }
  if (!source.quant.empty()) return of_quant(models, source.quant);
  if (models.size() == 1) return models;
  for (const std::string_view usual : kUsual) {
    std::vector<HubModel> found = of_quant(models, usual);
    if (!found.empty()) return found;
  }
  return models;
}

}  // namespace

HubModel choose_model(const HubListing& listing, const HubSource& source) {
  const std::vector<HubModel> models = models_of(listing.files);
  if (models.empty()) {
    fail(ErrorCode::kUsage,
         "{0} has no GGUF file of a model. Somebody may have converted it: look for {0}-GGUF. "
         "Folders of safetensors, which hf download brings, run too (snapkv models)",
         source.repo);
  }
  const std::vector<HubModel> found = candidates(models, source);
  const std::string wanted = !source.file.empty() ? source.file : source.quant;
  if (found.empty()) {
    fail(ErrorCode::kUsage, "{} has no {}; its GGUF files are:{}", source.repo, wanted,
         list_of_files(models));
  }
  if (found.size() > 1) {
    fail(ErrorCode::kUsage, "{}{} may be any of {} files; name one as {}:FILE.gguf:{}", source.repo,
         wanted.empty() ? "" : ":" + wanted, found.size(), source.repo, list_of_files(found));
  }
  if (found.front().parts.empty()) {
    fail(ErrorCode::kRuntime, "{}: the repository lacks parts of {}", source.repo,
         found.front().name);
  }
  return found.front();
}

}  // namespace snapkv::cli
