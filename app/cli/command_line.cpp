// SPDX-License-Identifier: MIT
#include "cli/command_line.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/common/flag_value.h"
#include "cli/common/llama_flags.h"
#include "cli/common/output_files.h"
#include "cli/common/terminal.h"
#include "cli/help.h"
#include "cli/help_layout.h"
#include "cli/serve/options.h"

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

void finish_help(const std::vector<Command>& commands, const std::string& outer = "") {
  for (const Command& command : commands) {
    command.app->fallthrough();  // common options may follow the command's name
    const std::string name = outer + command.app->get_name();
    std::string footer;
    for (const std::string& part : {help_examples(name), command.app->get_footer()}) {
      if (!part.empty()) footer += part + "\n\n";
    }
    command.app->footer(footer + kCommandFooter);
    finish_help(command.tasks, name + " ");
  }
}

// Names the option that an argument without one was meant for: a model, a document or a prompt;
// else empty.
std::string misplaced_argument(const CLI::App& command, const std::string& argument) {
  const auto has = [&](const char* option) {
    return command.get_option_no_throw(option) != nullptr;
  };
  std::error_code error;
  const bool is_there = std::filesystem::exists(argument, error);
  if (is_there && argument.ends_with(".gguf")) {
    return has("--model") ? fmt::format("; -m {} names the model", argument) : "";
  }
  if (is_there) return has("--file") ? fmt::format("; -f {} reads it", argument) : "";
  const bool is_text = argument.find(' ') != std::string::npos || argument.ends_with('?');
  return is_text && has("--prompt") ? "; -p takes the text of a prompt" : "";
}

// Returns all option names of a command and its parents, as they are typed.
std::vector<std::string> option_names(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent()) {
    for (const CLI::Option* option : app->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// Returns what may have been meant by an unknown option: the command's own ones, then llama.cpp's.
std::vector<std::string> known_options(const CLI::App& command) {
  std::vector<std::string> names = option_names(&command);
  for (std::string& name : usable_llama_flags()) names.push_back(std::move(name));
  return names;
}

// Says in this program's words what CLI11 says of an option without its value, or given twice.
std::string mismatch_text(const std::string& said) {
  constexpr std::string_view kMost = ": At Most 1 required but received ";
  constexpr std::string_view kLeast = ": 1 required ", kMissing = " missing";
  if (const size_t at = said.find(kMost); at != std::string::npos) {
    return fmt::format("{} is given {} times; it takes one value", said.substr(0, at),
                       said.substr(at + kMost.size()));
  }
  if (const size_t at = said.find(kLeast); at != std::string::npos && said.ends_with(kMissing)) {
    const size_t begin = at + kLeast.size();
    return fmt::format("{}: its value is missing: {}", said.substr(0, at),
                       said.substr(begin, said.size() - kMissing.size() - begin));
  }
  return said;
}

// Returns the command that was typed; a parsed command line always has one.
const Command& typed_command(const std::vector<Command>& commands) {
  const auto typed = std::find_if(commands.begin(), commands.end(),
                                  [](const Command& c) { return c.app->parsed(); });
  SNAPKV_CHECK(typed != commands.end());
  return typed->tasks.empty() ? *typed : typed_command(typed->tasks);
}

// What people type who know other programs.
constexpr std::pair<std::string_view, const char*> kForeignCommands[] = {
    {"download", "snapkv pull org/repo fetches a model"},
    {"get", "snapkv pull org/repo fetches a model"},
    {"list", "snapkv models lists the models on this machine"},
    {"ls", "snapkv models lists the models on this machine"},
    {"show", "snapkv info -m FILE shows what a model is"},
    {"quantize", "snapkv has no quantize; it runs quantized GGUF files as they are"},
    {"server", "the command is serve"},
};

// Names a command that is not there, and what may have been meant. Options before it are skipped.
void check_command(const CLI::App& root, const std::vector<std::string>& args) {
  const CLI::App* app = &root;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (word.starts_with('-')) {
      const CLI::Option* const option = app->get_option_no_throw(word);
      if (option != nullptr && option->get_expected_min() > 0) ++i;
      continue;
    }
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : app->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(sub->get_name());
      if (sub->get_name() == word) next = sub;
    }
    if (names.empty()) return;
    if (next != nullptr) {
      app = next;
      continue;
    }
    const bool is_root = app == &root;
    std::string hint;
    for (const auto& [name, text] : kForeignCommands) {
      if (is_root && word == name) hint = fmt::format("\n{}", text);
    }
    const std::string near = nearest_name(word, names);
    if (hint.empty() && !near.empty()) hint = fmt::format("; did you mean {}?", near);
    if (hint.empty() && is_root && word.ends_with(".gguf")) {
      hint = fmt::format("; snapkv run {} begins a chat", word);
    }
    if (is_root) {
      fail(ErrorCode::kUsage, "there is no command '{}'{}\nsnapkv --help lists them", word, hint);
    }
    fail(ErrorCode::kUsage, "snapkv {0} has no task '{1}'{2}\nsnapkv {0} --help lists them",
         app->get_name(), word, hint);
  }
}

// snapkv help COMMAND and snapkv version, as other programs have them.
std::vector<std::string> with_usual_words(std::vector<std::string> args) {
  if (args.empty()) return args;
  if (args.front() == "version") args.front() = "--version";
  if (args.front() != "help") return args;
  args.erase(args.begin());
  args.emplace_back("--help");
  return args;
}

}  // namespace

CommandLine::CommandLine()
    : serve_(std::make_shared<ServeSettings>()),
      root_(std::make_unique<CLI::App>(kAbout, "snapkv")) {
  CLI::App& root = *root_;
  root.set_version_flag("--version", fmt::format("snapkv {}", version()), "Print the version");
  root.set_help_flag("-h,--help", "Print this help");
  root.set_help_all_flag("--help-all", "Print this help with all options");
  root.require_subcommand(1);
  set_help_layout(root);
  add_common_options(root, common_);
  commands_.push_back(add_run_command(root, common_));
  commands_.push_back(add_models_command(root));
  commands_.push_back(add_pull_command(root, common_));
  commands_.push_back(add_generate_command(root, common_));
  commands_.push_back(add_compress_command(root, common_));
  commands_.push_back(add_ask_command(root, common_));
  commands_.push_back(add_documents_command(root));
  commands_.push_back(add_info_command(root, common_));
  commands_.push_back(add_convert_command(root, common_));
  commands_.push_back(add_demo_command(root, common_));
  commands_.push_back(add_explain_command(root, common_));
  commands_.push_back(add_inspect_command(root, common_));
  commands_.push_back(add_bench_command(root, common_));
  commands_.push_back(add_eval_command(root, common_));
  commands_.push_back(add_policies_command(root, common_));
  commands_.push_back(add_tokenize_command(root, common_));
  commands_.push_back(add_detokenize_command(root, common_));
  commands_.push_back(add_apply_template_command(root));
  commands_.push_back(add_chat_command(root, common_));
  commands_.push_back(add_serve_command(root, common_, serve_));
  commands_.push_back(add_completion_command(root));
  commands_.push_back(add_manual_command(root));
  root.footer(kFooter);
  finish_help(commands_);
}

CommandLine::~CommandLine() = default;

CLI::App& CommandLine::typed() const {
  const CLI::App* app = root_.get();
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return const_cast<CLI::App&>(*app);
}

std::string CommandLine::typed_name() const {
  std::string name = "snapkv";
  for (auto typed = root_->get_subcommands(); !typed.empty();
       typed = typed.front()->get_subcommands()) {
    name += " " + typed.front()->get_name();
  }
  return name;
}

// Describes the unexpected arguments, in the order in which they were typed.
std::string CommandLine::unknown_options(const std::vector<std::string>& args) const {
  std::vector<std::string> extras = root_->remaining(true);
  const auto place = [&](const std::string& extra) {
    return std::find(args.begin(), args.end(), extra) - args.begin();
  };
  std::stable_sort(extras.begin(), extras.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  std::string text;
  std::string option;  // the unknown option before the argument, if that may be its value
  for (const std::string& extra : extras) {
    const bool is_option = extra.size() > 1 && extra[0] == '-';
    if (!is_option && !option.empty() && place(extra) == place(option) + 1) {
      option.clear();
      continue;
    }
    option = is_option && extra.find('=') == std::string::npos ? extra : "";
    text += fmt::format("{}{} {}", text.empty() ? "" : "\n",
                        is_option ? "unknown option" : "unexpected argument", extra);
    const std::string near =
        is_option ? nearest_name(extra.substr(0, extra.find('=')), known_options(typed())) : "";
    if (!near.empty()) text += fmt::format("; did you mean {}?", near);
    if (!is_option) text += misplaced_argument(typed(), extra);
  }
  return text;
}

// Writes help and version to stdout; turns usage errors into an Error.
void CommandLine::answer_help(const CLI::ParseError& e, const std::vector<std::string>& args) {
  if (e.get_name() == "CallForHelp" || e.get_name() == "CallForAllHelp") {
    if (e.get_name() == "CallForHelp") hide_uncommon_options(typed());
    write_stdout(root_->help());
    return;
  }
  std::ostringstream out, err;
  if (root_->exit(e, out, err) != 0) {
    const bool is_unknown = e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    const std::string message = is_unknown ? unknown_options(args) : mismatch_text(e.what());
    fail(ErrorCode::kUsage, "{}\n{} --help lists the options", message, typed_name());
  }
  write_stdout(out.str());
}

// Reports the flag that was typed with an invalid value, as in --json=maybe. CLI11 lets the
// exceptions of std::stoll through, and those do not name the flag.
void CommandLine::check_flag_values(const std::vector<std::string>& args) const {
  for (const std::string& arg : args) {
    const size_t equals = arg.find('=');
    if (equals == std::string::npos || !arg.starts_with("--")) continue;
    for (const CLI::App* app = &typed(); app != nullptr; app = app->get_parent()) {
      const CLI::Option* option = app->get_option_no_throw(arg.substr(0, equals));
      if (option == nullptr || option->get_expected_min() > 0) continue;
      if (flag_value_of(*option, arg.substr(equals + 1))) continue;
      fail(ErrorCode::kUsage, "{}: expected true or false after the equals sign\n{}", arg,
           typed_name() + " --help lists the options");
    }
  }
}

const Command* CommandLine::parse(const std::vector<std::string>& typed) {
  const std::vector<std::string> args = with_usual_words(typed);
  check_command(*root_, args);
  try {
    std::vector<std::string> translated = translate_llama_flags(*root_, args);
    std::reverse(translated.begin(), translated.end());  // the order that CLI11 expects
    root_->parse(translated);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() != 0) check_flag_values(args);
    answer_help(e, args);
    return nullptr;
  } catch (const std::logic_error&) {
    check_flag_values(args);
    throw;  // some other error
  }
  check_flag_values(args);
  const Command& command = typed_command(commands_);
  config_path_ = apply_environment_and_config(*root_, *command.app, common_);
  return &command;
}

// Returns the command or task that the words name if they name nothing else; else null.
const CLI::App* CommandLine::bare_command(const std::vector<std::string>& words) const {
  const CLI::App* app = root_.get();
  for (const std::string& word : words) {
    const auto all =
        app->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == word; });
    if (all.empty()) return nullptr;
    app = all.front();
  }
  return app;
}

// How the typed command is used, for those who typed nothing else.
std::string CommandLine::usage() const {
  const std::string name = typed_name();
  const std::string text = usage_line(typed(), name);
  const std::string example = first_example(name.substr(name.find(' ') + 1));
  return example.empty() ? text : text + "\nFor example: " + example;
}

int CommandLine::run(int argc, const char* const* argv) {
  const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
  const CLI::App* const bare = bare_command(args);
  if (bare != nullptr && bare->get_require_subcommand_min() > 0) {  // no command, or no task of it
    write_stderr(bare->help(args.empty() ? "" : "snapkv"));
    return static_cast<int>(ErrorCode::kUsage);
  }
  try {
    return run_typed(args);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUsage || bare == nullptr) throw;
    const std::string last = "\n" + typed_name() + " --help lists the options";
    std::string message = message_of(e);
    if (message.ends_with(last)) message.resize(message.size() - last.size());
    fail(ErrorCode::kUsage, "{}\n{}{}", message, usage(), last);
  }
}

int CommandLine::run_typed(const std::vector<std::string>& args) {
  const Command* command = parse(args);
  if (command != nullptr) check_output_files(*command->app, config_path_);
  const int code = command != nullptr ? command->run() : 0;
  close_stdout();
  return code;
}

}  // namespace snapkv::cli
