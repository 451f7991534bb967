// SPDX-License-Identifier: MIT
// The help's text, letter by letter: it must not depend on the version of CLI11.
#include "cli/help_layout.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace snapkv::cli {
namespace help_layout_tests {

constexpr const char* kRootHelp =
    "Two lines, of which none is joined with the other, and the first is longer than eighty "
    "columns\n"
    "and the second is short.\n"
    "Usage: program [OPTIONS] SUBCOMMAND\n"
    "\n"
    "Options:\n"
    "  -h,--help                             Print this help\n"
    "  --a-name-that-is-longer-than-its-column\n"
    "                                        Below it, in two lines, of which the first is as long "
    "as "
    "it was written\n"
    "                                        and no longer\n"
    "\n"
    "Subcommands:\n"
    "  read                                  Read files\n"
    "  write                                 Write files\n"
    "\n"
    "  A line of the footer is not moved, whatever its length is, for it may be an example to "
    "copy\n"
    "\n"
    "Last line\n";

constexpr const char* kReadHelp =
    "Read files\n"
    "Usage: program read [OPTIONS] FILE PAIR PAIR [MORE...]\n"
    "\n"
    "Positionals:\n"
    "  FILE PATH REQUIRED                    The first file\n"
    "  PAIR TEXT x 2 REQUIRED                Two words\n"
    "  MORE TEXT ...                         Other files\n"
    "\n"
    "Options:\n"
    "  -h,--help                             Print this help\n"
    "  -f,--file PATH REQUIRED               The first file\n"
    "  -n,--count,--number N=3               How many\n"
    "\n"
    "\n"
    "How:\n"
    "  --fast Excludes: --slow               In little time\n"
    "  --slow TEXT REQUIRED Excludes: --fast The other way\n"
    "  --size INT x 2 Needs: --slow          Width and height\n"
    "\n"
    "Examples\n";

class HelpLayout : public ::testing::Test {
 protected:
  HelpLayout() {
    root_.set_help_flag("-h,--help", "Print this help");
    root_.require_subcommand(1);
    set_help_layout(root_);
    root_.add_flag("--a-name-that-is-longer-than-its-column", long_name_,
                   "Below it, in two lines, of which the first is as long as it was written\n"
                   "and no longer");
    read_ = root_.add_subcommand("read", "Read files");
    read_->add_option("FILE,-f,--file", file_, "The first file")->type_name("PATH")->required();
    read_->add_option("PAIR", pair_, "Two words")->expected(2)->required();
    read_->add_option("MORE", more_, "Other files");
    read_->add_option("-n,--count,--number", count_, "How many")
        ->type_name("N")
        ->capture_default_str();
    read_->add_flag("--secret", secret_, "Not for everybody")->group("");
    CLI::Option* const fast = read_->add_flag("--fast", fast_, "In little time")->group("How");
    CLI::Option* const slow = read_->add_option("--slow", slow_, "The other way")->group("How");
    slow->required()->excludes(fast);
    read_->add_option("--size", size_, "Width and height")->expected(2)->group("How")->needs(slow);
    read_->footer("Examples");
    root_.add_subcommand("write", "Write files");
    root_.add_subcommand("test", "Not for everybody")->group("");
    root_.footer(
        "  A line of the footer is not moved, whatever its length is, for it may be an example to "
        "copy\n\nLast line");
  }

  CLI::App root_{
      "Two lines, of which none is joined with the other, and the first is longer than eighty "
      "columns\nand the second is short.",
      "program"};
  CLI::App* read_ = nullptr;
  bool long_name_ = false, fast_ = false, secret_ = false;
  std::string file_, slow_;
  std::vector<std::string> pair_, more_;
  std::vector<int> size_;
  int count_ = 3;
};

TEST_F(HelpLayout, OfAProgramIsAsWritten) { EXPECT_EQ(root_.help(), kRootHelp); }

TEST_F(HelpLayout, OfACommandIsAsWritten) { EXPECT_EQ(read_->help("program"), kReadHelp); }

TEST_F(HelpLayout, AUsageLineIsThatOfTheHelp) {
  EXPECT_EQ(usage_line(*read_, "program read"),
            "Usage: program read [OPTIONS] FILE PAIR PAIR [MORE...]");
}

}  // namespace help_layout_tests
}  // namespace snapkv::cli
