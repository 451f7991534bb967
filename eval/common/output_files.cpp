// SPDX-License-Identifier: MIT
#include "eval/common/output_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/error.h"

namespace snapkv::eval {
namespace {

namespace fs = std::filesystem;

/// Where a file that is not there yet will be, also when the name is a link to nothing.
fs::path place_of(const fs::path& path) {
  std::error_code error;
  fs::path place = path;
  for (int i = 0; i < 40 && fs::is_symlink(place, error); ++i) {
    place = place.parent_path() / fs::read_symlink(place, error);
  }
  return fs::weakly_canonical(place, error);
}

/// Whether both are one regular file, or will be when it is made.
bool is_same(const std::string& a, const std::string& b) {
  std::error_code error;
  const bool a_exists = fs::exists(a, error), b_exists = fs::exists(b, error);
  if (a_exists != b_exists) return false;
  if (a_exists) return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  const fs::path new_a = place_of(a), new_b = place_of(b);
  return !new_a.empty() && new_a == new_b;
}

/// "model" of "model-00002-of-00005.gguf"; empty for other names.
std::string_view split_stem(std::string_view name) {
  constexpr std::string_view kTail = "-00002-of-00005.gguf";
  if (name.size() <= kTail.size()) return "";
  const std::string_view tail = name.substr(name.size() - kTail.size());
  for (size_t i = 0; i < kTail.size(); ++i) {
    const bool is_digit = tail[i] >= '0' && tail[i] <= '9';
    const bool expects_digit = kTail[i] >= '0' && kTail[i] <= '9';
    if (expects_digit ? !is_digit : tail[i] != kTail[i]) return "";
  }
  return name.substr(0, name.size() - kTail.size());
}

/// What a folder of Hugging Face holds of a model.
bool is_of_folder(const fs::path& file) {
  constexpr std::string_view kExtensions[] = {".json", ".safetensors", ".model", ".jinja", ".txt"};
  return std::find(std::begin(kExtensions), std::end(kExtensions), file.extension().string()) !=
         std::end(kExtensions);
}

}  // namespace

std::vector<RunFile> model_files(const std::string& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const std::string name = fs::path(path).filename().string();
  const std::string_view stem = split_stem(name);
  std::vector<RunFile> files;
  if (!is_folder) files.push_back({"--model", path});
  if (!is_folder && stem.empty()) return files;
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string other = entry.path().filename().string();
    const bool belongs = is_folder ? is_of_folder(entry.path()) : split_stem(other) == stem;
    if (belongs) files.push_back({"--model", entry.path().string()});
  }
  return files;
}

void check_outputs(const std::vector<RunFile>& outputs, const std::vector<RunFile>& inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    const auto refuse = [&](const RunFile& other, const char* what) {
      if (other.path.empty() || !is_same(outputs[i].path, other.path)) return;
      fail(ErrorCode::kUsage, "{} {}: the same file as {} {}, which {}", outputs[i].option,
           outputs[i].path, other.option, other.path, what);
    };
    for (size_t k = 0; k < i; ++k) refuse(outputs[k], "is written too");
    for (const RunFile& input : inputs) refuse(input, "is read");
  }
}

}  // namespace snapkv::eval
