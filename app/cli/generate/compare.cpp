// SPDX-License-Identifier: MIT
#include "cli/generate/compare.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "chat/harmony_text.h"
#include "cli/common/cache_table.h"
#include "cli/common/plain_text.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"

namespace snapkv::cli {
namespace {

struct PolicyAnswer {
  CacheRun run;
  Generation generation;
};

PolicyAnswer answer(const Comparison& c, const SessionOptions& options,
                    std::span<const int32_t> prompt, const ProgressFn& progress) {
  PolicyAnswer answer;
  Session session(c.model, options);
  session.prefill(prompt, {.progress = progress});
  answer.run.after_prefill = session.stats();
  Sampler sampler(c.sampler);
  sampler.accept(prompt);
  if (c.grammar) sampler.set_grammar(*c.grammar);
  generate(session, sampler, c.limits, {}, answer.generation);
  if (answer.generation.stop_reason == StopReason::cancelled) {
    fail(ErrorCode::kCancelled, "cancelled");
  }
  answer.run.at_end = session.stats();
  return answer;
}

// Says that the answers are the same, or where they begin to differ.
std::string difference(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const auto [left, right] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (left == a.end() && right == b.end()) return "the answers are the same";
  return fmt::format("the answers are the same for {} and then differ",
                     plural(left - a.begin(), "token"));
}

}  // namespace

std::string compare_caches(const Comparison& c, std::span<const int32_t> prompt,
                           ProgressDisplay& progress, bool colour) {
  // warms up: the preparation of kernels for a shape must not count against the first cache
  const auto part = std::min<int64_t>(c.first.chunk, std::ssize(prompt));
  Session(c.model, c.first).prefill(prompt.first(part), {.progress = progress.callback()});
  const PolicyAnswer first = answer(c, c.first, prompt, progress.callback());
  const PolicyAnswer second = answer(c, c.second, prompt, progress.callback());
  progress.clear();
  std::string text;
  for (const auto& [options, of] : {std::pair(&c.first, &first), std::pair(&c.second, &second)}) {
    const std::string& written = of->generation.text;
    const std::string answer = c.is_harmony ? chat::harmony_shown("", written) : written;
    text += fmt::format("{}\n{}\n\n", paint(Style::bold, cache_name(options->kv) + ":", colour),
                        stdout_is_terminal() ? safe_output(answer) : answer);
  }
  text += fmt::format("{:<24}  {:<16}  {}\n", "", cache_name(c.first.kv), cache_name(c.second.kv));
  for (const CacheTableRow& row : cache_rows(first.run, second.run)) {
    text += fmt::format("{:<24}  {:<16}  {}\n", row.label, row.first, row.second);
  }
  for (const SessionOptions* options : {&c.first, &c.second}) {
    text += fmt::format("{}: {}\n", options->kv.name, describe_policy(options->kv));
  }
  return text + difference(first.generation.ids, second.generation.ids) + "\n";
}

}  // namespace snapkv::cli
