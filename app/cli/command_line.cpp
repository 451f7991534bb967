// SPDX-License-Identifier: MIT
#include "cli/command_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "base/check.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

constexpr const char* kAbout =
    "Long prompts in little memory: reads a prompt, keeps the part of its KV cache that\n"
    "matters (SnapKV), and answers.";

constexpr const char* kFooter =
    "Every option can also be set by an environment variable (--kv-budget: SNAPKV_KV_BUDGET)\n"
    "or in the configuration file (kv-budget = 512; a [generate] section is for that command,\n"
    "[eval.needle] for that task). The command line wins over the environment, the environment\n"
    "over the file.\n"
    "Exit codes: 0 ok, 1 run-time error, 2 usage, 3 bad model file, 4 does not fit into memory,\n"
    "5 context exceeded; stopped by a signal: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP; 141 the reader\n"
    "of stdout has gone.";

constexpr const char* kCommandFooter =
    "Also: --config FILE, --verbose, --no-progress; snapkv --help tells about them, about "
    "settings\n"
    "from the environment and a file, and about exit codes.";

void finish_help(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    command.app->fallthrough();  // common options may follow the command's name
    const std::string own = command.app->get_footer();
    command.app->footer(own.empty() ? kCommandFooter : own + "\n\n" + kCommandFooter);
    finish_help(command.tasks);
  }
}

// The command that was typed; a parsed command line has one.
const Command& typed_command(const std::vector<Command>& commands) {
  const auto typed = std::find_if(commands.begin(), commands.end(),
                                  [](const Command& c) { return c.app->parsed(); });
  SNAPKV_CHECK(typed != commands.end());
  return typed->tasks.empty() ? *typed : typed_command(typed->tasks);
}

}  // namespace

CommandLine::CommandLine() : root_(kAbout, "snapkv") {
  root_.set_version_flag("--version", fmt::format("snapkv {}", version()), "Print the version");
  root_.set_help_flag("-h,--help", "Print this help");
  root_.require_subcommand(1);
  root_.get_formatter()->column_width(40);
  add_common_options(root_, common_);
  commands_.push_back(add_generate_command(root_, common_));
  commands_.push_back(add_info_command(root_, common_));
  commands_.push_back(add_convert_command(root_, common_));
  commands_.push_back(add_demo_command(root_, common_));
  commands_.push_back(add_explain_command(root_, common_));
  commands_.push_back(add_inspect_command(root_, common_));
  commands_.push_back(add_bench_command(root_, common_));
  commands_.push_back(add_eval_command(root_, common_));
  commands_.push_back(add_policies_command(root_, common_));
  commands_.push_back(add_tokenize_command(root_, common_));
  commands_.push_back(add_detokenize_command(root_, common_));
  commands_.push_back(add_apply_template_command(root_));
  root_.footer(kFooter);
  finish_help(commands_);
}

std::string CommandLine::typed_name() const {
  std::string name = "snapkv";
  for (auto typed = root_.get_subcommands(); !typed.empty();
       typed = typed.front()->get_subcommands()) {
    name += " " + typed.front()->get_name();
  }
  return name;
}

// Help and version go to stdout, usage errors become an Error.
int CommandLine::answer_help(const CLI::ParseError& e) {
  std::ostringstream out, err;
  if (root_.exit(e, out, err) != 0) {
    fail(ErrorCode::kUsage, "{}\n{} --help lists the options", e.what(), typed_name());
  }
  write_stdout(out.str());
  close_stdout();
  return 0;
}

int CommandLine::run(int argc, const char* const* argv) {
  try {
    root_.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return answer_help(e);
  }
  const Command& command = typed_command(commands_);
  apply_environment_and_config(root_, *command.app, common_);
  const int code = command.run();
  close_stdout();
  return code;
}

}  // namespace snapkv::cli
