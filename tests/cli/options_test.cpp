// SPDX-License-Identifier: MIT
// Every numeric option of every command states its range and keeps to it: the ends of the range are
// accepted; values beyond them and text that is not a number are usage errors that name the option,
// the text and the range. The test finds the options itself, so it covers new ones too.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "cli/command_line.h"
#include "run_process.h"

namespace snapkv::test {
namespace options_tests {

using cli::CommandLine;

// The description that a validator of number_options.h gives: "whole 1 4096", "size 0
// 1152921504606846976".
struct Range {
  std::string kind;
  std::string low, high;
};

std::optional<Range> range_of(CLI::Option& option) {
  for (int i = 0; i < 10; ++i) {
    try {
      std::istringstream name(option.get_validator(i)->get_name());
      Range range;
      if (name >> range.kind >> range.low >> range.high) return range;
    } catch (const CLI::OptionNotFound&) {
      break;  // there are no more validators
    }
  }
  return std::nullopt;
}

bool looks_numeric(const CLI::Option& option) {
  static const std::set<std::string> kTypes = {"N", "X", "T", "P", "R", "SIZE", "N,N,..."};
  return kTypes.contains(option.get_type_name());
}

using OptionFn = std::function<void(const std::string& command, CLI::Option&)>;

void for_each_option(CLI::App& app, const OptionFn& f) {
  for (CLI::Option* option : app.get_options()) f(app.get_name(), *option);
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    for_each_option(*sub, f);
  }
}

// Sets the option as the command line, the environment and a file do. Returns the error message, or
// an empty string.
std::string set(CLI::Option& option, const std::string& text) {
  option.clear();
  try {
    option.add_result(text);
    option.run_callback();
  } catch (const CLI::Error& e) {
    return e.what();
  }
  return "";
}

// A number just below or above the end of a range, in decimal digits.
std::string beyond(const Range& range, bool above) {
  const std::string& end = above ? range.high : range.low;
  if (range.kind == "real" || range.kind == "above") {
    const double value = std::stod(end);
    return fmt::format("{}", value + (above ? 1 : -1) * std::max(1e-9, std::abs(value) * 1e-9));
  }
  const int64_t value = std::stoll(end);
  if (above && value == std::numeric_limits<int64_t>::max()) return "9223372036854775808";
  if (!above && value == std::numeric_limits<int64_t>::min()) return "-9223372036854775809";
  return std::to_string(value + (above ? 1 : -1));
}

TEST(Options, OfNumbersHaveARange) {
  CommandLine line;
  std::set<std::string> names;
  int n = 0;
  for_each_option(line.root(), [&](const std::string& command, CLI::Option& option) {
    const bool has_range = range_of(option).has_value();
    if (has_range) names.insert(option.get_name()), ++n;
    EXPECT_TRUE(has_range || !looks_numeric(option))
        << command << " " << option.get_name() << ": give it a validator of number_options.h";
  });
  EXPECT_GE(names.size(), 45u);
  EXPECT_GE(n, 200);
}

TEST(Options, AcceptTheEndsOfTheirRangeAndNothingBeyond) {
  CommandLine line;
  for_each_option(line.root(), [&](const std::string& command, CLI::Option& option) {
    const std::optional<Range> range = range_of(option);
    if (!range) return;
    const bool whole = range->kind == "whole", size = range->kind == "size";
    SCOPED_TRACE(command + " " + option.get_name() + " " + range->low + " " + range->high);
    if (range->kind != "above") {
      EXPECT_EQ(set(option, range->low), "");
    }
    EXPECT_EQ(set(option, range->high), "");
    std::vector<std::string> refused = {beyond(*range, false),
                                        beyond(*range, true),
                                        "99999999999999999999",
                                        "-99999999999999999999",
                                        "18446744073709551615",
                                        "1e999",
                                        "-1e999",
                                        "nan",
                                        "-nan",
                                        "NaN",
                                        "inf",
                                        "-inf",
                                        "infinity",
                                        "0x10",
                                        "five",
                                        "1x",
                                        " 1",
                                        "1 ",
                                        "1\n",
                                        "+-1",
                                        "--1",
                                        "1..2",
                                        "\xd9\xa1"};  // a digit in another script
    if (whole || size) refused.insert(refused.end(), {"1.5", "1e3", "01"});
    if (size) refused.insert(refused.end(), {"8X", "8GG", "8iB", "9999999P", "-1K", "G"});
    for (const std::string& text : refused) {
      const std::string message = set(option, text);
      EXPECT_NE(message.find(option.get_name()), std::string::npos) << text << ": " << message;
      EXPECT_NE(message.find("'" + text + "'"), std::string::npos) << message;
      if (!size) {
        EXPECT_NE(message.find(range->low), std::string::npos) << message;
        EXPECT_NE(message.find(range->high), std::string::npos) << message;
      }
    }
    option.clear();
  });
}

TEST(Options, SizesHaveUnits) {
  EXPECT_EQ(parse_size("8G"), int64_t{8} << 30);
  EXPECT_EQ(parse_size("8g"), int64_t{8} << 30);
  EXPECT_EQ(parse_size("256MiB"), int64_t{256} << 20);
  EXPECT_EQ(parse_size("256 mb"), int64_t{256} << 20);
  EXPECT_EQ(parse_size("1000b"), 1000);
  EXPECT_EQ(parse_size("1000"), 1000);
  EXPECT_EQ(parse_size("7E"), int64_t{7} << 60);
  EXPECT_EQ(parse_size("8E"), std::nullopt);
  EXPECT_EQ(parse_size("-8E"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_size(""), std::nullopt);
  EXPECT_EQ(parse_size("1.5G"), int64_t{3} << 29);
  EXPECT_EQ(parse_size("0.25 KiB"), 256);
  EXPECT_EQ(parse_size("7.5E"), int64_t{15} << 59);
  for (const char* text :
       {"1.5", "1.5b", "1.G", ".5G", "1.5.5G", "-1.5G", "1.5eG", "7.9999999E9"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
  EXPECT_EQ(size_text(int64_t{8} << 30), "8 GiB");
  EXPECT_EQ(size_text(1000), "1000 B");
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(parse_whole("+7"), 7);
  EXPECT_EQ(parse_whole("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_real("1e-5"), 1e-5);
  EXPECT_EQ(parse_real("+.5"), 0.5);
  EXPECT_EQ(parse_real("1e-400"), std::nullopt) << "0 would be another number";
}

// The same for whole commands, with values from every source.
TEST(Options, RefuseNumbersFromEverySource) {
  const std::pair<std::string, std::string> kWrong[] = {
      {"memory-limit", "-1"}, {"kv-memory", "-5"},   {"memory-limit", "99999P"},
      {"temp", "nan"},        {"top-p", "inf"},      {"n-predict", "99999999999999999999"},
      {"chunk", "1e3"},       {"kv-budget", "1e30"}, {"kv-head-floor", "nan"}};
  const auto expect_refused = [](Command command, const std::string& name,
                                 const std::string& text) {
    command.args.insert(command.args.end(), {"-m", needle_model(), "-p", "x"});
    const Result result = run(command);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    for (const std::string& part : {"--" + name, text}) {
      EXPECT_NE(result.err.find(part), std::string::npos) << part << " in\n" << result.err;
    }
  };
  for (const auto& [name, text] : kWrong) {
    Command typed, from_environment, from_file;
    typed.args = {"generate", "--" + name, text};
    expect_refused(typed, name, text);
    from_environment.args = from_file.args = {"generate"};
    std::string variable = "SNAPKV_" + name;
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    from_environment.env[variable] = text;
    expect_refused(from_environment, name, text);
    const std::string file = make_file("config.toml", name + " = \"" + text + "\"\n");
    from_file.args.insert(from_file.args.end(), {"--config", file});
    expect_refused(from_file, name, text);
  }
}

}  // namespace options_tests
}  // namespace snapkv::test
