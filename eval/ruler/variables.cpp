// SPDX-License-Identifier: MIT
// RULER's variable tracking: a chain of five assignments in repeated noise, after a short worked
// example (variable_tracking.py of RULER; the wording is RULER's).
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "eval/ruler/tasks.h"

namespace snapkv::eval {
namespace {

constexpr size_t kVariables = 5;         // 4 hops
constexpr int64_t kExampleTokens = 500;  // most tokens of the worked example
constexpr size_t kLetters = 5;           // letters of a name
constexpr size_t kExampleLetters = 3;

std::vector<std::string> draw_variables(Random& random, size_t n_letters) {
  std::set<std::string> used;
  std::vector<std::string> names;
  while (names.size() < kVariables) {
    std::string variable = draw_letters(random, n_letters, 'A');
    if (used.insert(variable).second) names.push_back(std::move(variable));
  }
  return names;
}

// `n_lines` lines of noise with the chain's assignments among them, in order.
RulerText chain_text(Random& random, size_t n_letters, int64_t n_lines) {
  const std::vector<std::string> names = draw_variables(random, n_letters);
  const std::string value = fmt::format("{}", 10'000 + random.below(89'999));
  std::vector<std::string> lines(static_cast<size_t>(n_lines), kRulerNoise);
  std::vector<size_t> places = draw_different(random, lines.size(), kVariables);
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < kVariables; ++i) {
    const std::string line = i == 0 ? fmt::format("VAR {} = {}", names[0], value)
                                    : fmt::format("VAR {} = VAR {} ", names[i], names[i - 1]);
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(places[i] + i), line);
  }
  RulerText text;
  text.context = fmt::format(
      "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n"
      "{}\n",
      fmt::join(lines, "\n"));
  text.question = fmt::format(
      "Question: Find all variables that are assigned the value {} in the text above.", value);
  text.answer_prefix = fmt::format(
      " Answer: According to the chain(s) of variable assignment in the text above, {} variables "
      "are assigned the value {}, they are: ",
      kVariables, value);
  text.outputs = names;
  text.details = {{"value", value}};
  return text;
}

std::string worked_example(uint64_t seed, int64_t n_lines) {
  Random random(seed + 1);
  const RulerText text = chain_text(random, kExampleLetters, n_lines);
  return fmt::format("{}{}{} {}\n", text.context, text.question, text.answer_prefix,
                     fmt::join(text.outputs, " "));
}

RulerMaker prepare(const RulerSample& sample) {
  const auto n_tokens = [&](int64_t n_lines) {
    return sample.count_tokens(worked_example(sample.seed, n_lines));
  };
  const auto least = static_cast<int64_t>(kVariables);
  const int64_t n_lines = std::max(least, largest_size(least, kExampleTokens, n_tokens));
  const std::string example = worked_example(sample.seed, n_lines);
  return [example, seed = sample.seed](int64_t size) {
    Random random(seed);
    RulerText text = chain_text(random, kLetters, size);
    text.context = example + "\n" + text.context;
    return text;
  };
}

}  // namespace

std::vector<RulerTask> ruler_variable_tasks() {
  return {{"vt", 30, static_cast<int64_t>(kVariables), prepare}};
}

}  // namespace snapkv::eval
