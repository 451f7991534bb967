// SPDX-License-Identifier: MIT
#include "eval/quality/quality.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/timer.h"
#include "eval/qa/join.h"
#include "eval/qa/qa.h"
#include "snapkv/policy.h"

namespace snapkv::eval {
namespace {

// The lengths of documents that are tried, and what question, template and answer need besides.
constexpr int64_t kDocumentTokens[] = {16000, 8000};
constexpr int64_t kAroundDocument = 512;
// The share of the time for single texts; if it is not used up, documents have it too.
constexpr double kTextTime = 0.4;
// A long document takes longer per token than a text: attention, and decoding over more rows.
constexpr double kLongerPerToken = 1.5;

bool is_done(const RunOptions& run, const Item& item, const RecordFile& file) {
  return std::all_of(
      run.configurations.begin(), run.configurations.end(),
      [&](const SessionOptions& o) { return file.contains(record_key(run, item, o)); });
}

// Texts in an order that depends on their contents alone, so that the first ones are of all kinds.
std::vector<QaQuestion> mix_texts(std::vector<QaQuestion> questions) {
  const auto rank = [](const QaQuestion& q) { return q.context->fingerprint; };
  std::stable_sort(questions.begin(), questions.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return questions;
}

// A part while it is asked.
struct AskedPart {
  std::string name;
  QaItems qa;

  // The items of the first context.
  std::vector<Item> first_context() const {
    std::vector<Item> items;
    for (const Item& item : qa.items) {
      if (item.group == qa.items[0].group) items.push_back(item);
    }
    return items;
  }
};

class QualityRun {
 public:
  QualityRun(const RunOptions& run, const std::vector<QaQuestion>& questions,
             const QualityOptions& options, RecordFile& file)
      : run_(run), questions_(questions), options_(options), file_(file) {}

  QualityResult measure();

 private:
  QaItems items_for(const std::vector<QaQuestion>& questions) const;
  void ask(const std::vector<Item>& items, double until_seconds, bool at_least_one = false);
  std::vector<QaQuestion> join(int64_t n_tokens) const;
  int64_t document_length(double text_seconds, int64_t n_text_tokens) const;
  size_t n_budgets() const;
  QualityPart count(const AskedPart& asked) const;
  void add_auto(const std::vector<AskedPart>& asked, QualityResult& result) const;
  void add_memory(QualityResult& result) const;
  void add_remarks(const std::vector<AskedPart>& asked, QualityResult& result) const;

  const RunOptions& run_;
  const std::vector<QaQuestion>& questions_;
  const QualityOptions& options_;
  RecordFile& file_;
  Timer timer_;
};

QaItems QualityRun::items_for(const std::vector<QaQuestion>& questions) const {
  QaOptions qa;
  qa.format = options_.format;
  qa.n_predict = options_.n_predict;
  qa.max_length = std::max<int64_t>(1, run_.model->info().n_ctx_train - options_.n_predict);
  return qa_items(run_.model, questions, qa);
}

void QualityRun::ask(const std::vector<Item>& items, double until_seconds, bool at_least_one) {
  if (!at_least_one && timer_.seconds() >= until_seconds) return;
  RunOptions run = run_;
  run.enough = [&] { return timer_.seconds() >= until_seconds; };
  run_items(run, items, file_);
}

std::vector<QaQuestion> QualityRun::join(int64_t n_tokens) const {
  return join_texts(questions_, {n_tokens, [this](std::string_view text) {
                                   return std::ssize(run_.model->tokenize(text, false, false));
                                 }});
}

// The longest documents of which one can be read, and asked about, in the time that is left. A text
// took text_seconds, or 0 if it had been asked about by an earlier run. 0: none.
int64_t QualityRun::document_length(double text_seconds, int64_t n_text_tokens) const {
  if (options_.n_document > 0) return options_.n_document;
  const double seconds_left = options_.seconds - timer_.seconds();
  const double per_token =
      kLongerPerToken * text_seconds / static_cast<double>(std::max<int64_t>(1, n_text_tokens));
  for (const int64_t n : kDocumentTokens) {
    const bool fits = n + kAroundDocument <= run_.model->info().n_ctx_train;
    if (fits && per_token * static_cast<double>(n) <= seconds_left) return n;
  }
  return 0;
}

// Configurations with a number of rows, which begin at the second one.
size_t QualityRun::n_budgets() const {
  return run_.configurations.size() - 1 -
         (keeps_by_attention(run_.configurations.back().kv) ? 1 : 0);
}

QualityPart QualityRun::count(const AskedPart& asked) const {
  QualityPart part;
  part.name = asked.name;
  part.n_questions = std::ssize(asked.qa.items);
  part.n_kept.assign(n_budgets(), 0);
  std::set<std::string> contexts;
  const auto is_answered = [&](const Item& item, const SessionOptions& options) {
    return file_.at(record_key(run_, item, options)).at("score").number(0, 1) >= kQaAnswered;
  };
  for (const Item& item : asked.qa.items) {
    if (!is_done(run_, item, file_)) continue;
    const SessionOptions& full = run_.configurations[0];
    ++part.n_asked;
    contexts.insert(item.group);
    part.n_tokens += file_.at(record_key(run_, item, full)).at("n_prompt").amount();
    if (!is_answered(item, full)) continue;
    ++part.n_answered;
    for (size_t i = 0; i < part.n_kept.size(); ++i) {
      part.n_kept[i] += is_answered(item, run_.configurations[i + 1]) ? 1 : 0;
    }
    const SessionOptions& last = run_.configurations.back();
    part.n_kept_auto += keeps_by_attention(last.kv) && is_answered(item, last) ? 1 : 0;
  }
  part.n_contexts = std::ssize(contexts);
  part.n_tokens /= static_cast<double>(std::max<int64_t>(1, part.n_asked));
  return part;
}

void QualityRun::add_auto(const std::vector<AskedPart>& asked, QualityResult& result) const {
  const SessionOptions& last = run_.configurations.back();
  if (!keeps_by_attention(last.kv)) return;
  double bytes = 0;
  int64_t n = 0;
  for (const AskedPart& part : asked) {
    for (const Item& item : part.qa.items) {
      if (!is_done(run_, item, file_)) continue;
      bytes += file_.at(record_key(run_, item, last)).at("kv_bytes").amount();
      ++n;
    }
  }
  result.auto_bytes = bytes / static_cast<double>(n);
}

void QualityRun::add_memory(QualityResult& result) const {
  constexpr int64_t kLong = 32768;
  result.n_memory_tokens = std::min(kLong, run_.model->info().n_ctx_train);
  const auto bytes = [&](const SessionOptions& options) {
    return run_.model->plan(options, result.n_memory_tokens).kv_kept;
  };
  result.full_bytes = bytes(run_.configurations[0]);
  for (size_t i = 1; i <= n_budgets(); ++i) {
    result.bytes.push_back(bytes(run_.configurations[i]));
  }
}

void QualityRun::add_remarks(const std::vector<AskedPart>& asked, QualityResult& result) const {
  if (options_.asks_documents && asked.size() < 2) {
    result.remarks.push_back(
        "No questions about documents of several texts: the time or the model's context does not "
        "suffice (--minutes, --length).");
  }
  int64_t n_left = 0, n_longer = 0;
  for (const QualityPart& part : result.parts) n_left += part.n_questions - part.n_asked;
  for (const AskedPart& part : asked) n_longer += part.qa.n_left_out;
  if (n_left > 0) {
    result.remarks.push_back(fmt::format(
        "{} more questions were not asked, for lack of time: --minutes gives more.", n_left));
  }
  if (n_longer > 0) {
    result.remarks.push_back(fmt::format(
        "{} questions are left out: their texts are longer than the model's context.", n_longer));
  }
}

QualityResult QualityRun::measure() {
  // a length that the texts don't suit is refused before anything is asked
  if (options_.asks_documents && options_.n_document > 0) (void)join(options_.n_document);
  std::vector<AskedPart> asked = {{"texts", items_for(mix_texts(questions_))}};
  const std::vector<Item> first = asked[0].first_context();
  const bool is_new = std::none_of(first.begin(), first.end(),
                                   [&](const Item& item) { return is_done(run_, item, file_); });
  ask(first, options_.seconds, true);
  const double first_seconds = is_new ? timer_.seconds() : 0;
  int64_t n_document = 0;
  if (options_.asks_documents) {
    ask(asked[0].qa.items, kTextTime * options_.seconds);
    const JsonField record = file_.at(record_key(run_, first[0], run_.configurations[0]));
    n_document =
        document_length(first_seconds, static_cast<int64_t>(record.at("n_prompt").amount()));
  }
  if (n_document > 0) {
    asked.push_back({"documents", items_for(join(n_document))});
    ask(asked[1].qa.items, options_.seconds);
  }
  ask(asked[0].qa.items, options_.seconds);
  QualityResult result;
  result.model = run_.model->info().name;
  result.policy = run_.configurations.at(1).kv.name;
  result.is_chat = options_.format.is_chat();
  for (size_t i = 1; i <= n_budgets(); ++i) {
    result.rows.push_back(run_.configurations[i].kv.budget);
  }
  for (const AskedPart& part : asked) result.parts.push_back(count(part));
  add_memory(result);
  add_auto(asked, result);
  add_remarks(asked, result);
  result.seconds = timer_.seconds();
  return result;
}

}  // namespace

QualityResult measure_quality(const RunOptions& run, const std::vector<QaQuestion>& questions,
                              const QualityOptions& options, RecordFile& file) {
  SNAPKV_CHECK(run.configurations.size() > 1 && run.configurations[0].kv.name == "full" &&
               !keeps_by_attention(run.configurations[1].kv));
  return QualityRun(run, questions, options, file).measure();
}

int64_t count_answered(const QualityResult& result) {
  int64_t n = 0;
  for (const QualityPart& part : result.parts) n += part.n_answered;
  return n;
}

double kept_share(const QualityResult& result, size_t i) {
  int64_t n_kept = 0;
  for (const QualityPart& part : result.parts) n_kept += part.n_kept[i];
  return static_cast<double>(n_kept) / static_cast<double>(count_answered(result));
}

double kept_share_auto(const QualityResult& result) {
  int64_t n_kept = 0;
  for (const QualityPart& part : result.parts) n_kept += part.n_kept_auto;
  return static_cast<double>(n_kept) / static_cast<double>(count_answered(result));
}

size_t enough_rows(const QualityResult& result) {
  constexpr double kEnough = 0.98;
  size_t i = 0;
  while (i + 1 < result.rows.size() && kept_share(result, i) < kEnough) ++i;
  return i;
}

}  // namespace snapkv::eval
