// SPDX-License-Identifier: MIT
// Every row of the engine's option tables is an option of the command and a line of
// docs/options.md, and errors of the engine are told in the command's names.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <set>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/common/settings.h"
#include "cli/common/table_options.h"
#include "snapkv/options.h"
#include "tests/support/marked_part.h"

namespace snapkv::cli {
namespace option_tables_tests {

// Options of the library that a program sets by itself.
const std::set<std::string> kNoFlags = {"decode_reserve", "one_paragraph", "shows_control_tokens",
                                        "top_logprobs", "stop"};

/// All options but the parameters of policies, which docs/policies.md has.
std::vector<OptionInfo> engine_options() {
  std::vector<OptionInfo> all = list_options("full");
  std::erase_if(all, [](const OptionInfo& info) { return info.name == "stop"; });
  return all;
}

std::string markdown_table() {
  std::string text =
      "| name | option | default | range | what it is |\n"
      "|---|---|---|---|---|\n";
  for (const OptionInfo& info : engine_options()) {
    const std::string flag =
        kNoFlags.contains(info.name) ? "" : fmt::format("`{}`", flag_of(info.option));
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", info.option, flag,
                        value_text(info.default_value), range_text(info), info.help);
  }
  return text;
}

TEST(Generated, OptionsOfTheDocument) {
  test::expect_marked_part(std::string(SNAPKV_DOCS) + "/options.md", "<!-- option tables -->",
                           markdown_table());
}

TEST(OptionTables, TheCommandHasEveryRow) {
  CommandLine line;
  CLI::App* const generate = line.root().get_subcommand("generate");
  for (const OptionInfo& info : engine_options()) {
    if (kNoFlags.contains(info.name)) continue;
    const std::string flag = flag_of(info.option);
    const CLI::Option* const option = generate->get_option_no_throw(flag);
    ASSERT_NE(option, nullptr) << flag;
    if (info.name == "n_ctx") continue;  // with a meaning of its own
    EXPECT_TRUE(option->get_description().starts_with(info.help)) << option->get_description();
  }
}

TEST(OptionTables, ErrorsAreToldInTheCommandsNames) {
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return message_of(e);
    }
    return "";
  };
  EXPECT_EQ(message([] { Sampler({.top_p = 2}); }),
            "--top-p is 2; it must be a number from 0 to 1");
  EXPECT_EQ(message([] { validate({.window_size = 0}); }),
            "--kv-window is 0; it must be a whole number, at least 1");
  EXPECT_EQ(message([] { Model::load({.path = "a", .n_threads = -1}); }),
            "--threads is -1; it must be a whole number from 0 to 4096");
  // what no option sets keeps its name, and so does a text that only looks like one
  EXPECT_EQ(message([] { fail(ErrorCode::kUsage, "{} is 0", OptionName("n_logits")); }),
            "n_logits is 0");
  EXPECT_NE(message([] { Model::load({.path = "/none/n_threads"}); }).find("/none/n_threads"),
            std::string::npos);
}

}  // namespace option_tables_tests
}  // namespace snapkv::cli
