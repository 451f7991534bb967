// SPDX-License-Identifier: MIT
// The sampling options that settings.h declares.
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "cli/common/settings.h"
#include "cli/common/table_options.h"
#include "snapkv/options.h"

namespace snapkv::cli {
namespace {

constexpr const char* kSamplingGroup = "Sampling";

// Parses "1234+1.5" or "1234-inf".
std::optional<LogitBias> parse_bias(const std::string& text) {
  const size_t sign = text.find_first_of("+-");
  if (sign == std::string::npos) return std::nullopt;
  const std::optional<int64_t> id = parse_whole(text.substr(0, sign));
  if (!id || *id < 0 || *id > std::numeric_limits<int32_t>::max()) return std::nullopt;
  if (text.substr(sign) == "-inf") {
    return LogitBias{static_cast<int32_t>(*id), -std::numeric_limits<double>::infinity()};
  }
  const std::optional<double> size = parse_real(text.substr(sign + 1));
  if (!size || *size > SamplerConfig::kMostBias || std::signbit(*size)) return std::nullopt;
  return LogitBias{static_cast<int32_t>(*id), text[sign] == '-' ? -*size : *size};
}

CLI::Validator is_bias() {
  CLI::Validator made;
  made.name("bias").description("").operation([](std::string& text) {
    return parse_bias(text)
               ? std::string()
               : fmt::format("'{}' is not a token's number, + or -, and a number up to {} or inf",
                             text, SamplerConfig::kMostBias);
  });
  return made;
}

}  // namespace

void add_sampler_options(CLI::App& command, SamplerConfig& config) {
  add_table_options(command, sampler_option_table(), config, kSamplingGroup);
  command
      .add_option_function<std::vector<std::string>>(
          flag_names("logit_bias"),
          [&config](const std::vector<std::string>& texts) {
            config.logit_bias.clear();
            for (const std::string& text : texts) config.logit_bias.push_back(*parse_bias(text));
          },
          "Add to a token's logit, as in 1234+1.5 or 1234-2; 1234-inf: never this token; can be "
          "given several times")
      ->check(is_bias())
      ->type_name("ID+BIAS")
      ->allow_extra_args(false)
      ->group(kSamplingGroup);
}

}  // namespace snapkv::cli
