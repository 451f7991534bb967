// SPDX-License-Identifier: MIT
// The `snapkv` command: builds the command line, runs one subcommand, turns errors into messages
// and exit codes (include/snapkv/error.h). The only place that catches everything.
#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <new>
#include <sstream>

#include "base/check.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/descriptors.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

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

int report(ErrorCode code, const std::string& message) {
  write_stderr(
      fmt::format("snapkv: {} {}\n", paint(Style::red, "error:", colour_stderr()), message));
  return static_cast<int>(code);
}

// Help and version go to stdout, usage errors to stderr.
int answer_parse_result(CLI::App& root, const CLI::ParseError& e) {
  std::ostringstream out, err;
  if (root.exit(e, out, err) == 0) {
    write_stdout(out.str());
    close_stdout();
    return 0;
  }
  std::string name = "snapkv";
  for (auto typed = root.get_subcommands(); !typed.empty();
       typed = typed.front()->get_subcommands()) {
    name += " " + typed.front()->get_name();
  }
  return report(ErrorCode::kUsage, fmt::format("{}\n{} --help lists the options", e.what(), name));
}

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

int run(int argc, char** argv) {
  CommonSettings common;
  CLI::App root(
      "Long prompts in little memory: reads a prompt, keeps the part of its KV cache that\n"
      "matters (SnapKV), and answers.",
      "snapkv");
  root.set_version_flag("--version", fmt::format("snapkv {}", version()), "Print the version");
  root.set_help_flag("-h,--help", "Print this help");
  root.require_subcommand(1);
  root.get_formatter()->column_width(40);
  add_common_options(root, common);
  const std::vector<Command> commands = {
      add_generate_command(root, common),   add_info_command(root, common),
      add_convert_command(root, common),    add_demo_command(root, common),
      add_explain_command(root, common),    add_inspect_command(root, common),
      add_bench_command(root, common),      add_eval_command(root, common),
      add_policies_command(root, common),   add_tokenize_command(root, common),
      add_detokenize_command(root, common), add_apply_template_command(root),
      add_chat_command(root, common),
  };
  root.footer(kFooter);
  finish_help(commands);
  try {
    root.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return answer_parse_result(root, e);
  }
  const Command& command = typed_command(commands);
  apply_environment_and_config(root, *command.app, common);
  const int code = command.run();
  close_stdout();
  return code;
}

int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const StdoutClosed&) {
    return StdoutClosed::kExitCode;
  } catch (const Error& e) {
    return report(e.code(), name_flags(e.what()));
  } catch (const std::bad_alloc&) {
    return report(ErrorCode::kDoesNotFit, "out of memory");
  } catch (const std::exception& e) {
    return report(ErrorCode::kRuntime, e.what());
  }
}

}  // namespace
}  // namespace snapkv::cli

int main(int argc, char** argv) {
  snapkv::cli::open_closed_standard_descriptors();  // before anything opens a file
  snapkv::cli::install_signal_handlers();
  const int code = snapkv::cli::run_and_report(argc, argv);
  const bool cancelled = code == static_cast<int>(snapkv::ErrorCode::kCancelled);
  return cancelled ? snapkv::cli::interrupted_exit_code() : code;
}
