// SPDX-License-Identifier: MIT
// What `snapkv eval quality` prints, and the same as JSON.
#include <fmt/core.h>

#include <cmath>
#include <string>
#include <string_view>

#include "eval/common/metrics.h"
#include "eval/quality/quality.h"

namespace snapkv::eval {
namespace {

double memory_share(const QualityResult& result, size_t i) {
  return static_cast<double>(result.bytes[i]) / static_cast<double>(result.full_bytes);
}

double mebibytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

/// Of so many of the part's answers.
Interval interval_of(const QualityPart& part, int64_t n_kept) {
  const double n = static_cast<double>(part.n_answered);
  return wilson(static_cast<double>(n_kept) / n, part.n_answered);
}

Interval kept_interval(const QualityPart& part, size_t i) {
  return interval_of(part, part.n_kept[i]);
}

double auto_mebibytes(const QualityResult& result) { return *result.auto_bytes / (1 << 20); }

std::string quality_sentence(const QualityResult& result) {
  const int64_t n = count_answered(result);
  if (n == 0) {
    return "With the full cache the model answers none of the questions, so that they say nothing "
           "about fewer rows.";
  }
  const size_t best = enough_rows(result);
  std::string sentence = fmt::format(
      "With {} rows this model keeps {:.1f}% of its {} answers, in {:.1f}% of the memory that a "
      "full cache takes at {} tokens.",
      result.rows[best], 100 * kept_share(result, best), n, 100 * memory_share(result, best),
      result.n_memory_tokens);
  if (result.auto_bytes) {
    sentence += fmt::format(" With --kv-budget auto it keeps {:.1f}%, in {:.1f} MiB on average.",
                            100 * kept_share_auto(result), auto_mebibytes(result));
  }
  return sentence;
}

std::string share_cell(const QualityPart& part, int64_t n_kept) {
  if (part.n_answered == 0) return " - |";
  const Interval share = interval_of(part, n_kept);
  return fmt::format(" {:.1f}% [{:.1f}, {:.1f}] |", 100 * share.mean, 100 * share.low,
                     100 * share.high);
}

std::string quality_table(const QualityResult& result) {
  std::string head = "| rows kept |", rule = "|---|", full = "| all |";
  for (const QualityPart& part : result.parts) {
    head += fmt::format(" {} of {:.0f} tokens |", part.name, part.n_tokens);
    rule += "---|";
    full += fmt::format(" {} of {} answered |", part.n_answered, part.n_asked);
  }
  head += fmt::format(" cache at {} tokens |\n", result.n_memory_tokens);
  full += fmt::format(" {:.1f} MiB |\n", mebibytes(result.full_bytes));
  std::string table = head + rule + "---|\n" + full;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    table += fmt::format("| {} |", result.rows[i]);
    for (const QualityPart& part : result.parts) table += share_cell(part, part.n_kept[i]);
    table += fmt::format(" {:.1f} MiB, {:.1f}% |\n", mebibytes(result.bytes[i]),
                         100 * memory_share(result, i));
  }
  if (result.auto_bytes) {
    table += "| auto |";
    for (const QualityPart& part : result.parts) table += share_cell(part, part.n_kept_auto);
    table += fmt::format(" {:.1f} MiB on average |\n", auto_mebibytes(result));
  }
  return table;
}

}  // namespace

std::string quality_report(const QualityResult& result) {
  std::string report = quality_sentence(result) + "\n\n" + quality_table(result) + "\n";
  std::string asked;
  for (const QualityPart& part : result.parts) {
    const std::string_view many = part.name;
    asked += fmt::format("{}{} question{} about {} {}", asked.empty() ? "" : " and ", part.n_asked,
                         part.n_asked == 1 ? "" : "s", part.n_contexts,
                         part.n_contexts == 1 ? many.substr(0, many.size() - 1) : many);
  }
  report += fmt::format(
      "{}, asked {}, policy {}. A share counts the questions that the full cache answers, with its "
      "95% interval.\n",
      asked, result.is_chat ? "in the model's chat template" : "as plain text", result.policy);
  for (const std::string& remark : result.remarks) report += remark + "\n";
  return report;
}

Json quality_json(const RunOptions& run, const QualityResult& result) {
  Json rows = Json::array();
  for (size_t i = 0; i < result.rows.size(); ++i) {
    rows.push_back({{"rows", result.rows[i]},
                    {"cache_bytes", result.bytes[i]},
                    {"cache_share", memory_share(result, i)}});
  }
  Json parts = Json::array();
  for (const QualityPart& part : result.parts) {
    Json kept = Json::array();
    for (size_t i = 0; i < result.rows.size() && part.n_answered > 0; ++i) {
      const Interval share = kept_interval(part, i);
      kept.push_back({{"rows", result.rows[i]},
                      {"answered", part.n_kept[i]},
                      {"share", share.mean},
                      {"low", share.low},
                      {"high", share.high}});
    }
    Json of_part = {{"name", part.name},           {"tokens", std::round(part.n_tokens)},
                    {"contexts", part.n_contexts}, {"questions", part.n_questions},
                    {"asked", part.n_asked},       {"answered", part.n_answered},
                    {"kept", std::move(kept)}};
    if (result.auto_bytes) of_part["answered_auto"] = part.n_kept_auto;
    parts.push_back(std::move(of_part));
  }
  Json cache = {{"tokens", result.n_memory_tokens},
                {"full_bytes", result.full_bytes},
                {"rows", std::move(rows)}};
  if (result.auto_bytes) cache["auto_bytes"] = std::round(*result.auto_bytes);
  return {{"model", result.model},
          {"path", run.model->info().path},
          {"fingerprint", fmt::format("{:016x}", run.model->fingerprint())},
          {"backend", run.model->backend_description()},
          {"processor", cpu_name()},
          {"version", version()},
          {"commit", build_commit()},
          {"date", run.date},
          {"seconds", std::round(result.seconds)},
          {"chat", result.is_chat},
          {"policy", result.policy},
          {"summary", quality_sentence(result)},
          {"parts", std::move(parts)},
          {"cache", std::move(cache)},
          {"remarks", result.remarks}};
}

}  // namespace snapkv::eval
