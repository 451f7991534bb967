// SPDX-License-Identifier: MIT
// Validators for numbers on the command line, in the environment and in configuration files. Every
// numeric option has one, which states its range. A refused value is a usage error that names the
// option, the text and the range.
#pragma once

#include <cstdint>
#include <string>

#include "base/parse_number.h"
#include "cli/common/cli_types.h"
#include "snapkv/limits.h"

namespace snapkv::cli {

/// Accepts whole numbers from low to high, and the word, if there is one.
CLI::Validator whole_number(int64_t low, int64_t high, const std::string& word = "");
/// Accepts finite numbers from low to high; `low_excluded`: greater than low.
CLI::Validator real_number(double low, double high, bool low_excluded = false);
/// Accepts sizes ("8G", "256MiB") from low to high bytes, and replaces them with the number of
/// bytes.
CLI::Validator byte_size(int64_t low, int64_t high = kMostBytes);

/// Adds -c: the most tokens of a session, made up of `of` ("prompt and answer"); 0: the model's own
/// context.
void add_context_option(CLI::App& command, int64_t& n_ctx, const std::string& of);

/// Upper limit for numbers of prompts, samples, repetitions and the like.
inline constexpr int64_t kMostSamples = 1'000'000;
/// Accepts seeds, which records store as whole numbers.
CLI::Validator seed_number();

}  // namespace snapkv::cli
