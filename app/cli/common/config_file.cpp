// SPDX-License-Identifier: MIT
// Reads settings from the environment and the configuration file. CLI11 could read the file, but
// would rank it above the environment and refuse options outside a [command] section.
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 4
#include <fmt/core.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/common/flag_value.h"
#include "cli/common/plain_text.h"
#include "cli/common/settings.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

// One `key = value` of the file. `section` is empty, a command's name, or command.task.
struct ConfigEntry {
  std::string section;
  std::string key;
  std::vector<std::string> values;  // as they would be typed
  std::string origin;               // "config.toml: line 3"
};

// Returns "SNAPKV_KV_BUDGET" for "kv-budget".
std::string variable_name(const std::string& option) {
  std::string name = "SNAPKV_";
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

std::optional<std::string> variable(const std::string& option) {
  const char* value = std::getenv(variable_name(option).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// Returns the option's long name if the environment or a file may set it, else nothing. A prompt
// belongs to a single run, and a forgotten variable must not supply one.
std::optional<std::string> settable_name(const CLI::Option& option) {
  if (option.get_lnames().empty()) return std::nullopt;
  const std::string& name = option.get_lnames().front();
  static const std::vector<std::string> kFlagsOnly = {
      "help", "help-all", "version",    "config",     "prompt",
      "file", "template", "save-cache", "load-cache", "compare"};
  if (std::find(kFlagsOnly.begin(), kFlagsOnly.end(), name) != kFlagsOnly.end()) {
    return std::nullopt;
  }
  return name;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Adds the variable names of all options of the command and its tasks.
void add_variable_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    if (const auto name = settable_name(*option)) names.push_back(variable_name(*name));
  }
  for (const CLI::App* command : commands_of(app)) add_variable_names(*command, names);
}

// Whether a variable belongs to `make`, to the tests that run the program, or to the Python
// package.
bool is_of_the_build(std::string_view name) {
  constexpr std::string_view kNames[] = {"SNAPKV_PRESET",           "SNAPKV_ORACLE_MODELS",
                                         "SNAPKV_HF_FOLDERS",       "SNAPKV_GGML_VALUES",
                                         "SNAPKV_SPEED_VOCABULARY", "SNAPKV_LIBRARY",
                                         "SNAPKV_SERVER_LIBRARY",   "SNAPKV_PROGRAM"};
  return name.starts_with("SNAPKV_TEST_") || name.starts_with("SNAPKV_FUZZ_") ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Warns about SNAPKV_ variables that no option reads. They are misspelt settings, or another
// program's, so they are not an error.
void warn_about_unknown_variables(const CLI::App& root) {
  std::vector<std::string> known = {variable_name("config")};
  add_variable_names(root, known);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!name.starts_with("SNAPKV_") || is_of_the_build(name)) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_name(name, known);
    write_stderr(fmt::format("snapkv: warning: {} in the environment is not a setting{}\n",
                             printable(name),
                             near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  }
}

// Whether the command or one of its tasks has the option.
bool has_option(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options()) {
    if (settable_name(*option) == name) return true;
  }
  const std::vector<const CLI::App*> tasks = commands_of(app);
  return std::any_of(tasks.begin(), tasks.end(),
                     [&](const CLI::App* task) { return has_option(*task, name); });
}

// Adds the names of the settings of the command and its tasks.
void add_setting_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    if (const auto name = settable_name(*option)) names.push_back(*name);
  }
  for (const CLI::App* task : commands_of(app)) add_setting_names(*task, names);
}

// Returns "; did you mean temp?", or nothing where no known name is near.
std::string suggestion(const std::string& name, const std::vector<std::string>& known) {
  std::string words = name;  // as variables and Python write it
  std::replace(words.begin(), words.end(), '_', '-');
  const std::string near = nearest_name(words, known);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

// Returns the command of that name; nullptr if there is none.
const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

// Returns the section of a command: "eval.needle"; empty for the root.
std::string section_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string parent = section_of(*app.get_parent());
  return parent.empty() ? app.get_name() : parent + "." + app.get_name();
}

// Whether `section` applies to the section `command`: it is the same one, an outer one, or empty
// (all commands).
bool covers(const std::string& section, const std::string& command) {
  return section.empty() || section == command || command.rfind(section + ".", 0) == 0;
}

std::string default_config_path() {
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (xdg != nullptr && *xdg != '\0') {
    folder = xdg;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".config";
  } else {
    return "";
  }
  std::error_code error;
  const std::filesystem::path file = folder / "snapkv" / "config.toml";
  return std::filesystem::exists(file, error) ? file.string() : "";
}

/// Size limit of a configuration file, in bytes.
constexpr size_t kMostConfigBytes = 1 << 20;
/// A name may be a table for each of its dots. Destructors of tables call those of the tables in
/// them, so this and TOML_MAX_NESTED_VALUES bound the stack.
constexpr int kMostDotsInLine = 1000;

// Throws kUsage for text that is not TOML. A list without an end is noticed lines after its
// setting, so the setting is the last one that begins before the error.
[[noreturn]] void refuse_syntax(const std::vector<std::string>& lines,
                                const toml::parse_error& error, const std::string& path) {
  constexpr std::string_view kOpening = "Error while parsing ";
  std::string_view what = error.description();
  if (what.starts_with(kOpening)) what.remove_prefix(kOpening.size());
  const auto concerns = [&](std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return what.starts_with(part); });
  };
  const bool in_value = !concerns({"key", "table", "root table", "comment", "Encountered"});
  const toml::source_position at = error.source().begin;
  size_t line = std::min<size_t>(at.line, lines.size());
  const bool at_line_end = at.column > lines[line - 1].size();
  std::string before = lines[line - 1].substr(0, at.column - 1);
  while (in_value && line > 1 && before.find('=') == std::string::npos) before = lines[--line - 1];
  std::string origin = fmt::format("{}: line {}", path, line);
  const size_t equals = before.find('=');
  if (equals == std::string::npos) fail(ErrorCode::kUsage, "{}: {}", origin, what);
  const std::string setting = before.substr(0, before.find_last_not_of(" \t", equals - 1) + 1);
  origin += ": " + terminal_text(setting, 100);
  const bool in_text = concerns({"string", "literal string"});
  if (in_text && at_line_end) {
    fail(ErrorCode::kUsage, "{}: a quote is not closed on its line", origin);
  }
  if (!in_value || in_text || concerns({"array", "inline table"})) {
    fail(ErrorCode::kUsage, "{}: {}", origin, what);
  }
  const std::string value = lines[line - 1].substr(equals + 1);
  const size_t begin = std::min(value.find_first_not_of(" \t"), value.size());
  fail(ErrorCode::kUsage, "{}: expected a number, true, false, or text in quotes, found {} ({})",
       origin, terminal_text(value.substr(begin), 100), what);
}

toml::table parse_config(const std::string& content, const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(content);
  for (std::string line; std::getline(text, line); lines.push_back(std::move(line))) {
    if (std::count(line.begin(), line.end(), '.') <= kMostDotsInLine) continue;
    fail(ErrorCode::kUsage, "{}: line {} has more than {} dots", path, lines.size() + 1,
         kMostDotsInLine);
  }
  toml::parse_result result = toml::parse(content);
  if (!result) refuse_syntax(lines, result.error(), path);
  return std::move(result).table();
}

// Returns the values of a setting, or of its list, as they would be typed.
std::vector<std::string> typed_values(const toml::node& node, const std::string& origin) {
  std::vector<std::string> values;
  const auto add = [&](const toml::node& value) {
    value.visit([&](const auto& typed) {
      using Type = decltype(typed);
      if constexpr (toml::is_string<Type> || toml::is_number<Type> || toml::is_boolean<Type>) {
        values.push_back(fmt::format("{}", typed.get()));
      } else {
        std::ostringstream found;
        found << value.type();
        fail(ErrorCode::kUsage, "{}: expected text, numbers, true or false, found {}", origin,
             found.str());
      }
    });
  };
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& value : *list) add(value);
  } else {
    add(node);
  }
  return values;
}

// Reads the settings of a table, whose name is `section`, and of the tables in it. Throws kUsage
// for names that no option or command has (outside sections, no option of any command): a misspelt
// setting must be an error, not silently ignored.
void read_table(const CLI::App& app, const toml::table& table, const std::string& section,
                const std::string& path, std::vector<ConfigEntry>& entries) {
  for (const auto& [name, node] : table) {
    const std::string key(name.str());
    const std::string origin = fmt::format("{}: line {}", path, name.source().begin.line);
    if (const toml::table* inner = node.as_table()) {
      const std::string inner_section = section.empty() ? key : section + "." + key;
      const CLI::App* command = find_command(app, key);
      if (command == nullptr) {
        std::vector<std::string> names;
        for (const CLI::App* each : commands_of(app)) names.push_back(each->get_name());
        fail(ErrorCode::kUsage, "{}: section [{}] is not a command{}", origin, inner_section,
             suggestion(key, names));
      }
      read_table(*command, *inner, inner_section, path, entries);
    } else if (has_option(app, key)) {
      entries.push_back({section, key, typed_values(node, origin + ": " + key), origin});
    } else {
      std::vector<std::string> names;
      add_setting_names(app, names);
      fail(ErrorCode::kUsage, "{}: unknown setting '{}'{}{}", origin, key,
           section.empty() ? "" : " in section [" + section + "]", suggestion(key, names));
    }
  }
}

// Reads a flag's value.
std::string flag_value(const CLI::Option& option, const std::string& value,
                       const std::string& origin) {
  if (const auto flag = flag_value_of(option, value)) return *flag;
  fail(ErrorCode::kUsage, "{}: {} is '{}', expected true or false", origin,
       option.get_lnames().front(), terminal_text(value, 100));
}

// Sets an option as if it had been typed; `origin` names the source of the value.
void set_option(CLI::Option& option, const std::vector<std::string>& values,
                const std::string& origin) {
  try {
    if (option.get_expected_min() == 0) {  // a flag
      option.add_result(flag_value(option, values.front(), origin));
    } else {
      option.add_result(values);
    }
    option.run_callback();
  } catch (const CLI::Error& e) {
    fail(ErrorCode::kUsage, "{}: {}", origin, e.what());
  } catch (const Error& e) {
    throw e.prefixed(origin + ": ");
  }
}

// Sets the options that stronger sources left unset, except those excluded by an option already
// set. Throws kUsage when one source sets two options that exclude each other.
template <typename FindValues>
void apply_source(CLI::App& app, const FindValues& find_values) {
  std::vector<CLI::Option*> open;
  for (CLI::Option* option : app.get_options()) {
    const std::set<CLI::Option*> rivals = option->get_excludes();
    const bool taken = std::any_of(rivals.begin(), rivals.end(),
                                   [](const CLI::Option* rival) { return rival->count() > 0; });
    if (settable_name(*option) && option->count() == 0 && !taken) open.push_back(option);
  }
  for (CLI::Option* option : open) {
    const auto [values, origin] = find_values(*settable_name(*option));
    if (values.empty()) continue;
    for (const CLI::Option* rival : option->get_excludes()) {
      if (rival->count() == 0) continue;
      fail(ErrorCode::kUsage, "{}: {} and {} exclude each other", origin, rival->get_name(),
           option->get_name());
    }
    set_option(*option, values, origin);
  }
}

void apply_sources(CLI::App& app, const std::vector<ConfigEntry>& entries) {
  using Found = std::pair<std::vector<std::string>, std::string>;  // values and their origin
  apply_source(app, [](const std::string& name) {
    const std::optional<std::string> value = variable(name);
    return value ? Found{{*value}, "environment variable " + variable_name(name)} : Found{};
  });
  const std::string section = section_of(app);
  apply_source(app, [&](const std::string& name) {
    const ConfigEntry* chosen = nullptr;  // the innermost section wins
    for (const ConfigEntry& entry : entries) {
      if (entry.key != name || entry.values.empty() || !covers(entry.section, section)) continue;
      if (chosen == nullptr || entry.section.size() >= chosen->section.size()) chosen = &entry;
    }
    return chosen != nullptr ? Found{chosen->values, chosen->origin} : Found{};
  });
}

}  // namespace

std::string apply_environment_and_config(CLI::App& root, CLI::App& command,
                                         const CommonSettings& settings) {
  warn_about_unknown_variables(root);
  std::string path = settings.config;
  if (path.empty()) path = variable("config").value_or("");
  if (path.empty()) path = default_config_path();
  std::vector<ConfigEntry> entries;
  if (!path.empty()) {
    const toml::table file = parse_config(read_text(path, kMostConfigBytes), path);
    read_table(root, file, "", path, entries);
  }
  apply_sources(command, entries);
  apply_sources(root, entries);
  return path;
}

}  // namespace snapkv::cli
