// SPDX-License-Identifier: MIT
#include "cli/help_layout.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"

namespace snapkv::cli {
namespace {

constexpr size_t kHelpColumn = 40;  // where descriptions begin

// Returns a name and its description beside it, or below it where the name is too long.
std::string help_entry(const std::string& name, const std::string& description) {
  const std::string margin(kHelpColumn, ' ');
  std::string text = "  " + name;
  if (text.size() < kHelpColumn) {
    text.resize(kHelpColumn, ' ');
  } else {
    text += "\n" + margin;
  }
  for (const char c : description) {
    text += c;
    if (c == '\n') text += margin;
  }
  return text + "\n";
}

// Returns the names of options that an option needs or excludes, after a label. CLI11 has a set of
// them, ordered by address; here they have the order of the command's options.
std::string other_options(const char* label, const std::set<CLI::Option*>& others,
                          const CLI::App& command) {
  if (others.empty()) return "";
  const std::vector<const CLI::Option*> all = command.get_options();
  std::vector<const CLI::Option*> sorted(others.begin(), others.end());
  const auto place = [&](const CLI::Option* o) { return std::find(all.begin(), all.end(), o); };
  std::sort(sorted.begin(), sorted.end(),
            [&](const auto* a, const auto* b) { return place(a) < place(b); });
  std::string text = fmt::format(" {}:", label);
  for (const CLI::Option* option : sorted) text += " " + option->get_name();
  return text;
}

// Returns what follows an option's name: its value and default, and how it goes with others.
std::string option_value(const CLI::Option& option, const CLI::App& command) {
  std::string text;
  if (option.get_items_expected_max() > 0) {
    if (!option.get_type_name().empty()) text += " " + option.get_type_name();
    if (!option.get_default_str().empty()) text += "=" + option.get_default_str();
    if (option.get_expected_max() >= CLI::detail::expected_max_vector_size) {
      text += " ...";
    } else if (option.get_expected_min() > 1) {
      text += fmt::format(" x {}", option.get_expected_min());
    }
    if (option.get_required()) text += " REQUIRED";
  }
  text += other_options("Needs", option.get_needs(), command);
  return text + other_options("Excludes", option.get_excludes(), command);
}

// Returns an entry for each option below a title. An option that can be typed both with its name
// and without is an entry of the positionals and of its own group.
std::string option_group(const CLI::App& command, const std::string& title, bool is_positional,
                         const std::vector<const CLI::Option*>& options) {
  if (options.empty()) return "";
  std::string text = fmt::format("\n{}:\n", title);
  for (const CLI::Option* option : options) {
    text +=
        help_entry(option->get_name(is_positional, !is_positional) + option_value(*option, command),
                   option->get_description());
  }
  return text;
}

std::string positionals(const CLI::App& command) {
  return option_group(command, "Positionals", true,
                      command.get_options([](const CLI::Option* option) {
                        return option->get_positional() && !option->get_group().empty();
                      }));
}

std::string option_groups(const CLI::App& command) {
  const std::vector<std::string> groups = command.get_groups();
  std::string text;
  for (const std::string& group : groups) {
    if (group.empty()) continue;  // hidden
    // CLI11's own name of the options without a group, in capitals from version 2.5 on
    const std::string title = group == "OPTIONS" ? "Options" : group;
    const std::string part = option_group(
        command, title, false, command.get_options([&group](const CLI::Option* option) {
          return option->nonpositional() && option->get_group() == group;
        }));
    text += part;
    if (!part.empty() && group != groups.back()) text += "\n";
  }
  return text;
}

std::vector<const CLI::App*> visible_subcommands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::string subcommands(const CLI::App& command) {
  std::string text;
  for (const CLI::App* sub : visible_subcommands(command)) {
    text += help_entry(sub->get_name(), sub->get_description());
  }
  return text.empty() ? "" : "\nSubcommands:\n" + text;
}

// CLI11's own formatter wraps lines and names groups in ways that differ between its versions.
class HelpLayout final : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* command, std::string name,
                        CLI::AppFormatMode mode) const override {
    SNAPKV_CHECK(mode == CLI::AppFormatMode::Normal);  // --help-all lists options, not commands
    std::string text = command->get_description() + "\n" + usage_line(*command, name) + "\n";
    text += positionals(*command) + option_groups(*command) + subcommands(*command);
    return text + "\n" + command->get_footer() + "\n";
  }
};

}  // namespace

void set_help_layout(CLI::App& root) { root.formatter(std::make_shared<HelpLayout>()); }

std::string usage_line(const CLI::App& command, const std::string& name) {
  std::string text = fmt::format("Usage: {} [OPTIONS]", name);
  for (const CLI::Option* option :
       command.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    std::string words = option->get_name(true);
    int most = option->get_expected_max();
    if (most >= CLI::detail::expected_max_vector_size) {
      words += "...";
      most = 1;
    }
    const int least = option->get_required() ? option->get_expected_min() : 0;
    for (int i = 0; i < most; ++i) text += i < least ? " " + words : fmt::format(" [{}]", words);
  }
  return text + (visible_subcommands(command).empty() ? "" : " SUBCOMMAND");
}

}  // namespace snapkv::cli
