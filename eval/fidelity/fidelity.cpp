// SPDX-License-Identifier: MIT
#include "eval/fidelity/fidelity.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "eval/common/metrics.h"

namespace snapkv::eval {
namespace {

int32_t likeliest(std::span<const double> log_p) {  // ties to the lower id
  return static_cast<int32_t>(std::max_element(log_p.begin(), log_p.end()) - log_p.begin());
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Five significant digits, which is more than the precision of the models' arithmetic.
double rounded(double value) { return read_double(fmt::format("{:.5g}", value).c_str()); }
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = rounded(value);
  return values;
}

// Throws Error{kRuntime} if the result does not fit a double.
double perplexity_of(const std::vector<double>& nll) {
  const double nats = mean(nll), perplexity = std::exp(nats);
  if (std::isfinite(perplexity)) return perplexity;
  fail(
      ErrorCode::kRuntime,
      "the perplexity, exp({:.5g}), is beyond every double: the text is all but impossible to this "
      "model, whose weights or file may be damaged",
      nats);
}

// The fewest and the most rows that a head of any layer kept.
std::pair<int64_t, int64_t> rows_kept(const SessionStats& stats) {
  std::pair<int64_t, int64_t> range = {INT64_MAX, 0};
  for (const auto& layer : stats.layers) {
    for (const int64_t n : layer.n_kept) {
      range = {std::min(range.first, n), std::max(range.second, n)};
    }
  }
  return range;
}

Json make_record(const RunOptions& run, const FidelityPlan& plan, const Passage& passage,
                 const SessionOptions& configuration, const Comparison& c) {
  const TokenizedText& text = plan.texts[passage.text];
  const auto [fewest, most] = rows_kept(c.after_prefill);
  const double agreement = mean(std::vector<double>(c.agreement.begin(), c.agreement.end()));
  std::string continuation;
  for (const int32_t id : plan.continuation(passage)) continuation += run.model->piece(id);
  Json record = begin_record(run, fidelity_key(run, plan, passage, configuration), plan.id(passage),
                             configuration);
  record.update({{"task", "fidelity"},
                 {"length", passage.length},
                 {"text", text.path},
                 {"text_fingerprint", text.fingerprint},
                 {"text_tokens", text.tokens.size()},
                 {"first_token", passage.first},
                 {"end_token", plan.end(passage)},
                 {"n_prompt", passage.length},
                 {"n_continue", plan.n_continue},
                 {"rows_kept", {fewest, most}},
                 {"kv_bytes", c.after_prefill.kv_bytes_used},
                 {"kv_bytes_full", c.after_prefill.kv_bytes_full},
                 {"nll_mean", rounded(mean(c.nll))},
                 {"perplexity", rounded(perplexity_of(c.nll))},
                 {"kl_mean", rounded(mean(c.kl))},
                 {"top1_agreement", rounded(agreement)},
                 {"nll", rounded(c.nll)},
                 {"kl", rounded(c.kl)},
                 {"agreement", c.agreement},
                 {"continuation", continuation},
                 {"prompt", run.model->detokenize(plan.prompt(passage))}});
  return record;
}

// The reference, followed by the configurations that the file does not have; empty if it has all.
std::vector<SessionOptions> to_compare(const RunOptions& run, const FidelityPlan& plan,
                                       const Passage& passage, const RecordFile& file) {
  std::vector<SessionOptions> missing;
  bool any = false;
  for (const SessionOptions& options : with_reference(run.configurations)) {
    const bool there = file.contains(fidelity_key(run, plan, passage, options));
    any |= !there;
    if (!there || missing.empty()) missing.push_back(options);
  }
  return any ? missing : std::vector<SessionOptions>{};
}

// All positions of one configuration, over the passages of one length.
struct Row {
  std::vector<double> nll, kl;
  int64_t n_agree = 0, n = 0;
  int64_t fewest = INT64_MAX, most = 0;
  double kv_bytes = 0;  // mean over the passages
};

Row collect(const RunOptions& run, const FidelityPlan& plan, const RecordFile& file, int64_t length,
            const SessionOptions& configuration) {
  Row row;
  int64_t n_passages = 0;
  for (const Passage& passage : plan.passages) {
    if (passage.length != length) continue;
    const JsonField record = file.at(fidelity_key(run, plan, passage, configuration));
    for (int64_t i = 0; i < plan.n_continue; ++i) {
      row.nll.push_back(record.at("nll").at(i).number());
      row.kl.push_back(record.at("kl").at(i).number());
      row.n_agree += record.at("agreement").at(i).integer(0, 1);
    }
    row.fewest = std::min(row.fewest, record.at("rows_kept").at(0).integer(0));
    row.most = std::max(row.most, record.at("rows_kept").at(1).integer(0));
    row.kv_bytes += record.at("kv_bytes").amount();
    ++n_passages;
  }
  row.n = std::ssize(row.nll);
  row.kv_bytes /= static_cast<double>(n_passages);
  return row;
}

// The smallest value that is not exceeded by 95% of the values.
double percentile_95(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() * 95 + 99) / 100 - 1];
}

std::string table_row(const SessionOptions& configuration, const Row& row, const Row& full) {
  const std::string rows = row.fewest == row.most ? fmt::format("{}", row.most)
                                                  : fmt::format("{}-{}", row.fewest, row.most);
  const double perplexity = perplexity_of(row.nll), of_full = perplexity_of(full.nll);
  const Interval agreement =
      wilson(static_cast<double>(row.n_agree) / static_cast<double>(row.n), row.n);
  return fmt::format(
      "| {} | {} | {:.2f} | {:.4g} | {:.4g} | {:.3g} | {:.3g} | {:.1f}% [{:.1f}, {:.1f}] of {} |\n",
      configuration_label(configuration), rows, row.kv_bytes / (1 << 20), perplexity, of_full,
      mean(row.kl), percentile_95(row.kl), 100 * agreement.mean, 100 * agreement.low,
      100 * agreement.high, row.n);
}

}  // namespace

std::vector<Comparison> compare(const RunOptions& run,
                                const std::vector<SessionOptions>& configurations,
                                const std::vector<int32_t>& prompt,
                                const std::vector<int32_t>& continuation,
                                const std::function<void(int64_t step)>& on_step) {
  std::vector<std::unique_ptr<Session>> owned;
  std::vector<Session*> sessions;
  for (const SessionOptions& options : configurations) {
    owned.push_back(std::make_unique<Session>(run.model, options));
    sessions.push_back(owned.back().get());
  }
  prefill_many(sessions, prompt, {.progress = run.prefill_progress});
  std::vector<Comparison> all(sessions.size());
  for (size_t i = 0; i < all.size(); ++i) all[i].after_prefill = sessions[i]->stats();
  std::vector<int32_t> fed(sessions.size());
  for (size_t step = 0; step + 1 < continuation.size(); ++step) {
    if (run.cancelled()) fail(ErrorCode::kCancelled, "cancelled");
    std::fill(fed.begin(), fed.end(), continuation[step]);
    decode_batch(sessions, fed);
    const auto truth = static_cast<size_t>(continuation[step + 1]);
    const std::vector<double> reference = log_softmax(sessions[0]->logits());
    const int32_t best = likeliest(reference);
    for (size_t i = 0; i < all.size(); ++i) {
      const std::vector<double> log_p = i == 0 ? reference : log_softmax(sessions[i]->logits());
      all[i].nll.push_back(-log_p[truth]);
      all[i].kl.push_back(kl_divergence(reference, log_p));
      all[i].agreement.push_back(likeliest(log_p) == best ? 1 : 0);
    }
    if (on_step) on_step(static_cast<int64_t>(step) + 1);
  }
  return all;
}

std::string fidelity_key(const RunOptions& run, const FidelityPlan& plan, const Passage& passage,
                         const SessionOptions& configuration) {
  return fmt::format("{} | {} | {} | {} positions | {}", plan.id(passage), model_key(*run.model),
                     version(), plan.n_continue, to_line(configuration_json(configuration)));
}

std::vector<SessionOptions> with_reference(const std::vector<SessionOptions>& configurations) {
  SNAPKV_CHECK(!configurations.empty());
  std::vector<SessionOptions> all = {configurations[0]};
  all[0].kv = {.name = "full"};
  for (const SessionOptions& options : configurations) {
    if (options.kv.name != "full") all.push_back(options);
  }
  return all;
}

void run_fidelity(const RunOptions& run, const FidelityPlan& plan, RecordFile& file,
                  const std::function<void(const std::string& title, double)>& on_progress) {
  std::vector<std::pair<const Passage*, std::vector<SessionOptions>>> todo;
  // Work is counted in units of the time for a prompt token. A decode step reads all weights for
  // one token of each configuration, which takes about as long as a handful of prompt tokens.
  constexpr double kStep = 8;
  double total = 0, done = 0;
  for (const Passage& passage : plan.passages) {
    auto missing = to_compare(run, plan, passage, file);
    if (missing.empty()) continue;
    todo.emplace_back(&passage, std::move(missing));
    total += static_cast<double>(passage.length) + kStep * static_cast<double>(plan.n_continue);
  }
  for (size_t i = 0; i < todo.size(); ++i) {
    const auto& [passage, missing] = todo[i];
    const auto report = [&,
                         title = fmt::format("passage {} of {}", i + 1, todo.size())](double of) {
      if (on_progress) on_progress(title, (done + of) / total);
    };
    const auto length = static_cast<double>(passage->length);
    RunOptions inner = run;
    inner.prefill_progress = [&](const Progress& p) {
      if (p.phase == Phase::prefill) report(p.fraction * length);
      return !run.prefill_progress || run.prefill_progress(p);
    };
    report(0);
    const std::vector<Comparison> all =
        compare(inner, missing, plan.prompt(*passage), plan.continuation(*passage),
                [&](int64_t step) { report(length + kStep * static_cast<double>(step)); });
    for (size_t c = 0; c < missing.size(); ++c) {
      const std::string key = fidelity_key(run, plan, *passage, missing[c]);
      if (file.contains(key)) continue;  // the reference, which had to run again
      file.append(make_record(run, plan, *passage, missing[c], all[c]));
    }
    done += length + kStep * static_cast<double>(plan.n_continue);
  }
}

std::string fidelity_table(const RunOptions& run, const FidelityPlan& plan,
                           const RecordFile& file) {
  std::vector<int64_t> lengths;
  for (const Passage& passage : plan.passages) {
    if (std::find(lengths.begin(), lengths.end(), passage.length) == lengths.end()) {
      lengths.push_back(passage.length);
    }
  }
  const std::vector<SessionOptions> configurations = with_reference(run.configurations);
  std::string table;
  for (const int64_t length : lengths) {
    const auto n = std::count_if(plan.passages.begin(), plan.passages.end(),
                                 [&](const Passage& p) { return p.length == length; });
    table += fmt::format(
        "Prompts of {} tokens: {}, {} positions each\n\n"
        "| cache | rows kept | KV MiB | perplexity | full's | KL mean | KL 95% | top-1 agreement "
        "|\n"
        "|---|---|---|---|---|---|---|---|\n",
        length, n, plan.n_continue);
    const Row full = collect(run, plan, file, length, configurations[0]);
    for (const SessionOptions& configuration : configurations) {
      table += table_row(configuration, collect(run, plan, file, length, configuration), full);
    }
    table += "\n";
  }
  table +=
      fmt::format("Used {} of {} tokens ({:.1f}%) of {} text{}.\n", plan.n_used(), plan.n_tokens(),
                  100.0 * static_cast<double>(plan.n_used()) / static_cast<double>(plan.n_tokens()),
                  plan.texts.size(), plan.texts.size() == 1 ? "" : "s");
  for (const std::string& remark : plan.remarks) table += remark + "\n";
  return table;
}

}  // namespace snapkv::eval
