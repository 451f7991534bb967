// SPDX-License-Identifier: MIT
#include "eval/summary/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "eval/common/metrics.h"
#include "eval/compare/paired.h"
#include "eval/summary/facts.h"

namespace snapkv::eval {
namespace {

std::string request(const SummaryOptions& options) {
  const char* const wanted =
      options.has_several
          ? "Summarize each of the texts above in two or three sentences, with the names, dates "
            "and numbers that matter."
          : "Summarize the text above in about 200 words. Name its people, places, things, dates "
            "and numbers.";
  return std::string("\n\n") + wanted + (options.format.is_chat() ? "" : "\n\nSummary:");
}

Prompt make_summary(const Model& model, const QaQuestion& text, const SummaryOptions& options) {
  const std::string asked = request(options);
  Prompt prompt = options.format.make(model, {text.context->text, asked, ""});
  prompt.details = {{"task", "summary"},
                    {"kind", text.kind},
                    {"half", text.half},
                    {"text", text.context->name},
                    {"title", text.title},
                    {"text_fingerprint", fmt::format("{:016x}", text.context->fingerprint)},
                    {"n_context", prompt.n_context},
                    {"chat_template", options.format.record()},
                    {"prompt", asked_text(model, prompt)}};
  return prompt;
}

Json worth(const FactText& text, const std::string& summary, const std::string& full) {
  const NamedFacts named = text.named_in(summary);
  return {{"facts", named.facts.size()},
          {"strange", named.strange.size()},
          {"named", named.facts},
          {"invented", named.strange},
          {"score", rouge_l(summary, full)}};
}

Item make_summary_item(const std::shared_ptr<const Model>& model, const QaQuestion& text,
                       const SummaryOptions& options) {
  const auto facts = std::make_shared<const FactText>(text.context->text);
  Item item;
  item.id =
      options.format.with_id(fmt::format("summary {} text {:016x} request {:016x}", text.title,
                                         text.context->fingerprint, hash64(request(options))));
  item.column = text.kind;
  item.limit = {.n_predict = options.n_predict, .ends_at_line = false};
  item.make = [=] { return make_summary(*model, text, options); };
  item.beside_full = [facts](const std::string& summary, const std::string& full) {
    return worth(*facts, summary, full);
  };
  return item;
}

/// What the summaries of one configuration are worth.
struct SummaryCounts {
  std::vector<double> facts;  // [items]
  int64_t strange = 0;
  double rouge_l = 0, bytes = 0;  // sums
};

SummaryCounts count_facts(const RunOptions& run, const std::vector<Item>& items,
                          const RecordFile& file, const SessionOptions& configuration) {
  SummaryCounts counts;
  for (const Item& item : items) {
    const JsonField record = file.at(record_key(run, item, configuration));
    counts.facts.push_back(record.at("facts").amount());
    counts.strange += record.at("strange").integer(0);
    counts.rouge_l += record.at("score").number(0, 1);
    counts.bytes += record.at("kv_bytes").amount();
  }
  return counts;
}

/// The share of the full cache's facts in the items of one column.
std::string share_of_column(const std::vector<Item>& items, const std::string& column,
                            const SummaryCounts& counts, const SummaryCounts& full) {
  double named = 0, by_full = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].column != column) continue;
    named += counts.facts[i];
    by_full += full.facts[i];
  }
  return by_full > 0 ? fmt::format("{:.1f}% of {}", 100 * named / by_full, by_full) : "-";
}

std::string share_of_full(const SummaryCounts& counts, const SummaryCounts& full) {
  double named = 0, by_full = 0;
  for (const double n : counts.facts) named += n;
  for (const double n : full.facts) by_full += n;
  if (by_full == 0) return fmt::format("{} | -", named);
  const Range range = bootstrap_ratio(counts.facts, full.facts);
  return fmt::format("{} | {:.1f}% [{:.1f}, {:.1f}]", named, 100 * named / by_full, 100 * range.low,
                     100 * range.high);
}

std::vector<std::string> columns_of(const std::vector<Item>& items) {
  std::vector<std::string> columns;
  for (const Item& item : items) {
    if (std::find(columns.begin(), columns.end(), item.column) == columns.end()) {
      columns.push_back(item.column);
    }
  }
  if (columns.size() == 1) columns.clear();  // it is all of them
  return columns;
}

}  // namespace

std::vector<QaQuestion> first_of_each_text(std::vector<QaQuestion> questions) {
  std::set<const QaContext*> seen;
  std::erase_if(questions, [&](const QaQuestion& question) {
    return !seen.insert(question.context.get()).second;
  });
  return questions;
}

std::vector<Item> summary_items(const std::shared_ptr<const Model>& model,
                                const std::vector<QaQuestion>& texts,
                                const SummaryOptions& options) {
  std::vector<Item> items;
  const int64_t n_ctx = model->info().n_ctx_train;
  for (const QaQuestion& text : texts) {
    Item item = make_summary_item(model, text, options);
    const int64_t n_tokens = std::ssize(item.make().tokens);
    if (n_tokens + options.n_predict > n_ctx) {
      fail(ErrorCode::kContextExceeded,
           "{}: the prompt has {} tokens and its summary up to {}, the model's context is {}",
           text.context->name, n_tokens, options.n_predict, n_ctx);
    }
    items.push_back(std::move(item));
  }
  return each_once(std::move(items));
}

std::string facts_table(const RunOptions& run, const std::vector<Item>& items,
                        const RecordFile& file) {
  const std::vector<std::string> columns = columns_of(items);
  std::string table =
      "| cache | kept KiB | facts named | of the full cache's | strange | ROUGE-L |";
  std::string rule = "|---|---|---|---|---|---|";
  for (const std::string& column : columns) {
    table += " " + column + " |";
    rule += "---|";
  }
  table += "\n" + rule + "\n";
  const auto n_items = static_cast<double>(items.size());
  const SummaryCounts full = count_facts(run, items, file, full_configuration(run));
  for (const SessionOptions& configuration : run.configurations) {
    const SummaryCounts counts = count_facts(run, items, file, configuration);
    table += fmt::format("| {} | {:.0f} | {} | {} | {:.1f}% |", configuration_label(configuration),
                         counts.bytes / 1024 / n_items, share_of_full(counts, full), counts.strange,
                         100 * counts.rouge_l / n_items);
    for (const std::string& column : columns) {
      table += " " + share_of_column(items, column, counts, full) + " |";
    }
    table += "\n";
  }
  return table +
         fmt::format("\n{} {}.\n", items.size(), items.size() == 1 ? "summary" : "summaries");
}

}  // namespace snapkv::eval
