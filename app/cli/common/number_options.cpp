// SPDX-License-Identifier: MIT
#include "cli/common/number_options.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <string>

namespace snapkv::cli {
namespace {

/// Makes a validator from `read`, which returns an error message, or an empty one to accept the
/// text, and may rewrite the text. Tests use the name to try the ends of every option's range
/// (option_list.h).
template <typename Read>
CLI::Validator validator(std::string name, Read read) {
  CLI::Validator made;
  made.name(std::move(name)).description("").operation(read);
  return made;
}

std::string refused(const std::string& text, const std::string& expected) {
  return fmt::format("'{}' is not {}", text, expected);
}

}  // namespace

CLI::Validator whole_number(int64_t low, int64_t high, const std::string& word) {
  return validator(fmt::format("whole {} {}", low, high), [=](std::string& text) {
    if (!word.empty() && text == word) return std::string();
    const std::optional<int64_t> value = parse_whole(text);
    if (!value || *value < low || *value > high) {
      return refused(text, fmt::format("a whole number from {} to {}{}", low, high,
                                       word.empty() ? "" : ", or " + word));
    }
    text = fmt::format("{}", *value);
    return std::string();
  });
}

CLI::Validator seed_number() { return whole_number(0, std::numeric_limits<int64_t>::max()); }

CLI::Validator real_number(double low, double high, bool low_excluded) {
  const char* kind = low_excluded ? "above" : "real";
  return validator(fmt::format("{} {} {}", kind, low, high), [=](std::string& text) {
    const std::optional<double> value = parse_real(text);
    if (!value || *value < low || *value > high || (low_excluded && *value == low)) {
      return refused(text, low_excluded ? fmt::format("a number above {} and up to {}", low, high)
                                        : fmt::format("a number from {} to {}", low, high));
    }
    return std::string();
  });
}

CLI::Validator byte_size(int64_t low, int64_t high) {
  return validator(fmt::format("size {} {}", low, high), [=](std::string& text) {
    const std::optional<int64_t> value = parse_size(text);
    if (!value || *value < low || *value > high) {
      return refused(text, fmt::format("a size from {} to {}, as in 256MiB or 8G", size_text(low),
                                       size_text(high)));
    }
    text = fmt::format("{}", *value);
    return std::string();
  });
}

void add_context_option(CLI::App& command, int64_t& n_ctx, const std::string& of) {
  command
      .add_option("-c,--ctx-size", n_ctx, fmt::format("Most tokens of {}; 0: the model's own", of))
      ->check(whole_number(0, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace snapkv::cli
