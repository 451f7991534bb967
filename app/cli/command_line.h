// SPDX-License-Identifier: MIT
// CommandLine: all commands, tasks and options of `snapkv`, and the settings that they fill.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/common/cli_types.h"
#include "cli/common/settings.h"

namespace snapkv::cli {

struct ServeSettings;  // serve/options.h

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App& root() { return *root_; }
  const std::vector<Command>& commands() const { return commands_; }
  /// What parse() has filled, of all commands and of `serve`.
  const CommonSettings& common() const { return common_; }
  const ServeSettings& serve() const { return *serve_; }

  /// Runs the command that `argv` names and returns its exit code; help and version go to stdout.
  /// Without a command, or without the task that it needs, the help goes to stderr and the code is
  /// kUsage. Throws what parse() and the commands throw.
  int run(int argc, const char* const* argv);
  /// Fills the settings of the command that `typed` (without the program's name) names, from it,
  /// the environment and the configuration file, and returns it; null where they ask for help or
  /// the version, which is then written. Throws Error{kUsage} for what can't be parsed, kRuntime
  /// for a file that can't be read.
  const Command* parse(const std::vector<std::string>& typed);

 private:
  int run_typed(const std::vector<std::string>& args);
  const CLI::App* bare_command(const std::vector<std::string>& words) const;
  std::string usage() const;
  void answer_help(const CLI::ParseError& e, const std::vector<std::string>& args);
  void check_flag_values(const std::vector<std::string>& args) const;
  std::string unknown_options(const std::vector<std::string>& args) const;
  CLI::App& typed() const;
  std::string typed_name() const;

  CommonSettings common_;
  const std::shared_ptr<ServeSettings> serve_;
  std::string config_path_;  // configuration file that parse() read; empty: none
  const std::unique_ptr<CLI::App> root_;
  std::vector<Command> commands_;
};

}  // namespace snapkv::cli
