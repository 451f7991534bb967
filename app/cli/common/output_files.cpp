// SPDX-License-Identifier: MIT
#include "cli/common/output_files.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "snapkv/model_files.h"

namespace snapkv::cli {
namespace {

namespace fs = std::filesystem;

/// A file and the option that names it.
struct NamedFile {
  std::string option;
  std::string path;
};

struct Output : NamedFile {
  OutputKind kind = OutputKind::file;
};

constexpr std::pair<OutputKind, const char*> kMarks[] = {
    {OutputKind::file, "output: file"},
    {OutputKind::cache, "output: cache"},
    {OutputKind::records, "output: records"},
};

std::optional<OutputKind> kind_of(CLI::Option& option) {
  for (const auto& [kind, mark] : kMarks) {
    try {
      option.get_validator(mark);
      return kind;
    } catch (const CLI::OptionNotFound&) {
      continue;
    }
  }
  return std::nullopt;
}

/// Returns the option's name, as "--save-cache", or that of a positional argument.
std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name(true) : "--" + option.get_lnames().front();
}

/// Whether an option takes a folder of texts or tasks; LongBench's has a config/ folder inside.
bool reads_texts(const std::string& option) {
  constexpr const char* kOptions[] = {"--text", "--texts", "--haystack", "--data", "--prompts"};
  return std::find(std::begin(kOptions), std::end(kOptions), option) != std::end(kOptions);
}

/// Returns the files that an option reads and an output of this kind could destroy. Records never
/// replace another file, so they may lie among the texts.
std::vector<std::string> files_read(const NamedFile& input, OutputKind output) {
  if (input.path == "-") return {"/dev/stdin"};
  std::vector<std::string> files = model_files(input.path);
  if (!reads_texts(input.option) || output == OutputKind::records) return files;
  constexpr auto kOptions = fs::directory_options::skip_permission_denied |
                            fs::directory_options::follow_directory_symlink;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(input.path, kOptions, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry.depth() > 0 && input.option != "--texts") entry.disable_recursion_pending();
    const std::string ending = entry->path().extension().string();
    // texts that questions name may have any extension
    if (input.option == "--texts" || ending == ".txt" || ending == ".json" || ending == ".jsonl") {
      files.push_back(entry->path().string());
    }
  }
  return files;
}

/// Returns where a file that does not exist yet will be created, even if the name is a dangling
/// link.
fs::path place_of(const fs::path& path) {
  std::error_code error;
  fs::path place = fs::absolute(path, error);
  for (int i = 0; i < 40 && fs::is_symlink(place, error); ++i) {
    place = place.parent_path() / fs::read_symlink(place, error);
  }
  return fs::weakly_canonical(place, error);
}

/// Whether two names refer to the same file, or will, through any links. Pipes and devices are
/// never the same file: writing destroys nothing there.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  const bool a_exists = fs::exists(a, error), b_exists = fs::exists(b, error);
  if (a_exists != b_exists) return false;
  if (a_exists) return fs::is_regular_file(a, error) && fs::equivalent(a, b, error);
  const fs::path place = place_of(a);
  return !place.empty() && place == place_of(b);
}

void check_kept(const Output& output, const NamedFile& input) {
  const std::vector<std::string> files = files_read(input, output.kind);
  const bool is_read = std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return same_file(output.path, file);
  });
  if (!is_read) return;
  fail(ErrorCode::kUsage,
       "{} {}: this file is read, by {} {}, and would be lost: name another one to write",
       output.option, output.path, input.option, input.path);
}

void check_writable(const Output& output) {
  std::error_code error;
  const bool is_device = fs::exists(output.path, error) && !fs::is_regular_file(output.path, error);
  if (output.kind == OutputKind::records) return;
  if (output.kind == OutputKind::file && is_device) return;  // written to without replacing it
  check_can_write(output.path, /*overwrite=*/true);
  if (output.kind == OutputKind::cache) check_cache_path(output.path);
}

}  // namespace

CLI::Option* mark_output(CLI::Option* option, OutputKind kind) {
  const auto* const mark = std::find_if(std::begin(kMarks), std::end(kMarks),
                                        [&](const auto& each) { return each.first == kind; });
  return option->check(
      CLI::Validator([](std::string&) { return std::string(); }, "", mark->second));
}

bool is_output(CLI::Option& option) { return kind_of(option).has_value(); }

bool is_input(CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool names_files =
      type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos;
  // a saved cache may be replaced by its own continuation, and a spill folder is not read
  const std::string name = name_of(option);
  return names_files && !is_output(option) && name != "--load-cache" && name != "--spill-dir";
}

void check_output_files(CLI::App& command, const std::string& config_path) {
  std::vector<NamedFile> inputs;
  std::vector<Output> outputs;
  for (CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) continue;
      if (const auto kind = kind_of(*option)) outputs.push_back({{name_of(*option), value}, *kind});
      if (is_input(*option)) inputs.push_back({name_of(*option), value});
    }
  }
  if (!config_path.empty()) inputs.push_back({"--config", config_path});
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    for (const NamedFile& input : inputs) check_kept(*output, input);
    for (auto other = outputs.begin(); other != output; ++other) {
      if (!same_file(output->path, other->path)) continue;
      fail(ErrorCode::kUsage, "{} and {} name the same file, {}: each needs one of its own",
           other->option, output->option, output->path);
    }
    check_writable(*output);
  }
}

}  // namespace snapkv::cli
