// SPDX-License-Identifier: MIT
#include "cli/completion/scripts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "snapkv/engine.h"

namespace snapkv::cli {
namespace {

/// Calls `visit` with every command and its whole name ("eval needle"), the root's being empty.
void for_each_command(const CLI::App& app, const std::string& name,
                      const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(app, name);
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) {
      for_each_command(*sub, name.empty() ? sub->get_name() : name + " " + sub->get_name(), visit);
    }
  }
}

/// "-m", "--model"
std::vector<std::string> option_words(const CLI::Option& option) {
  std::vector<std::string> words;
  for (const std::string& name : option.get_snames()) words.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.push_back("--" + name);
  return words;
}

/// Options that are listed in the help, those of the root too: they may follow any command.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const CLI::App* from = &app; from != nullptr; from = from->get_parent()) {
    for (const CLI::Option* option : from->get_options()) {
      if (!option->get_group().empty() && !option_words(*option).empty()) options.push_back(option);
    }
  }
  return options;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) names.push_back(sub->get_name());
  }
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// The first sentence of a help text, on one line.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// A text between single quotes of fish.
std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

/// Text for roff: backslashes and hyphens escaped, and no line begins with a control character.
std::string roff(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool begins_line = i == 0 || text[i - 1] == '\n';
    if (begins_line && (text[i] == '.' || text[i] == '\'')) escaped += "\\&";
    if (text[i] == '\\') {
      escaped += "\\\\";
    } else if (text[i] == '-') {
      escaped += "\\-";
    } else {
      escaped += text[i];
    }
  }
  return escaped;
}

}  // namespace

std::string bash_completion(const CLI::App& root) {
  std::string commands, words;
  for_each_command(root, "", [&](const CLI::App& app, const std::string& name) {
    std::vector<std::string> all = subcommand_names(app);
    if (!name.empty()) commands += fmt::format("{}\"{}\"", commands.empty() ? "" : " | ", name);
    for (const CLI::Option* option : options_of(app)) {
      for (const std::string& word : option_words(*option)) all.push_back(word);
    }
    words += fmt::format("    \"{}\") words=\"{}\" ;;\n", name, fmt::join(all, " "));
  });
  return fmt::format(R"(# Completion of snapkv for bash: source it, or put it into
# ~/.local/share/bash-completion/completions/snapkv
_snapkv() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="" next words="" i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{command:+$command }}${{COMP_WORDS[i]}}"
    case "$next" in
      {}) command="$next" ;;
    esac
  done
  case "$command" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _snapkv snapkv
)",
                     commands, words);
}

std::string zsh_completion(const CLI::App& root) {
  std::string script = bash_completion(root);
  script.replace(0, script.find("_snapkv()"),
                 "#compdef snapkv\n"
                 "# Completion of snapkv for zsh: put it as _snapkv into a folder of $fpath.\n"
                 "autoload -U +X bashcompinit && bashcompinit\n");
  return script;
}

std::string fish_completion(const CLI::App& root) {
  std::string script =
      "# Completion of snapkv for fish: put it into ~/.config/fish/completions/snapkv.fish\n"
      "function __snapkv_command_is\n"
      "  test (string join ' ' -- (commandline -opc)[2..] | string replace -r ' -.*' '') = "
      "\"$argv\"\n"
      "end\n";
  for_each_command(root, "", [&](const CLI::App& app, const std::string& name) {
    const std::string condition = fish_quoted("__snapkv_command_is " + name);
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
      if (sub->get_group().empty()) continue;
      script += fmt::format("complete -c snapkv -f -n {} -a {} -d {}\n", condition, sub->get_name(),
                            fish_quoted(first_line(sub->get_description())));
    }
    for (const CLI::Option* option : options_of(app)) {
      script += fmt::format("complete -c snapkv -n {}", condition);
      for (const std::string& s : option->get_snames()) {
        script += (s.size() == 1 ? " -s " : " -o ") + s;
      }
      for (const std::string& l : option->get_lnames()) script += " -l " + l;
      if (takes_value(*option)) script += " -r";
      script += fmt::format(" -d {}\n", fish_quoted(first_line(option->get_description())));
    }
  });
  return script;
}

std::string manual_page(const CLI::App& root) {
  std::string page = fmt::format(
      ".TH SNAPKV 1 \"\" \"snapkv {}\" \"User Commands\"\n"
      ".SH NAME\nsnapkv \\- long prompts in little memory\n"
      ".SH SYNOPSIS\n.B snapkv\n.I command\n[\\fIoption\\fR]...\n"
      ".SH DESCRIPTION\n{}\n",
      version(), roff(root.get_description()));
  for_each_command(root, "", [&](const CLI::App& app, const std::string& name) {
    page += name.empty()
                ? std::string(".SH OPTIONS OF ALL COMMANDS\n")
                : fmt::format(".SH SNAPKV {}\n{}\n", roff(name), roff(app.get_description()));
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group().empty()) continue;
      std::vector<std::string> words = option_words(*option);
      if (words.empty()) words.push_back(option->get_name());
      for (std::string& word : words) word = roff(word);
      page += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", fmt::join(words, "\\fR, \\fB"),
                          takes_value(*option)
                              ? fmt::format(" \\fI{}\\fR", roff(option->get_type_name()))
                              : std::string(),
                          roff(option->get_description()));
    }
  });
  page += fmt::format(".SH ENVIRONMENT AND EXIT STATUS\n.nf\n{}\n.fi\n", roff(root.get_footer()));
  return page;
}

}  // namespace snapkv::cli
