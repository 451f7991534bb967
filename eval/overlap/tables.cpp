// SPDX-License-Identifier: MIT
// The Markdown tables of the overlap task, made from its records.
#include <fmt/core.h>

#include <functional>

#include "eval/common/metrics.h"
#include "eval/overlap/overlap.h"

namespace snapkv::eval {
namespace {

/// The mean of one Coverage over the samples: "61% / 88%"; "-" for a hit rate that no sample has.
class Mean {
 public:
  void add(const JsonField& coverage) {
    overlap_ += coverage.at("overlap").number(0, 1);
    ++n_;
    if (coverage.at("hit").is_null()) return;
    hit_ += coverage.at("hit").number(0, 1);
    ++n_hit_;
  }
  std::string text() const {
    const std::string hit = n_hit_ > 0 ? fmt::format("{:.0f}%", 100 * hit_ / n_hit_) : "-";
    return fmt::format("{:.0f}% / {}", 100 * overlap_ / n_, hit);
  }

 private:
  double overlap_ = 0, hit_ = 0;
  int n_ = 0, n_hit_ = 0;
};

struct Column {
  std::string title;
  std::function<JsonField(const JsonField& layer)> coverage;
};

std::string table(const std::vector<JsonField>& records, const std::vector<Column>& columns) {
  std::string head = "| layer |", rule = "|---|", text;
  for (const Column& column : columns) {
    head += " " + column.title + " |";
    rule += "---|";
  }
  const int64_t n_layer = records.front().at("layers").size();
  for (int64_t il = 0; il < n_layer; ++il) {
    text += fmt::format("| {} |", il);
    for (const Column& column : columns) {
      Mean mean;
      for (const JsonField& record : records) mean.add(column.coverage(record.at("layers").at(il)));
      text += " " + mean.text() + " |";
    }
    text += "\n";
  }
  return head + "\n" + rule + "\n" + text;
}

/// The windows that the table shows, counted from the prompt's end; the records have all of them.
std::vector<int64_t> shown_windows(int64_t n) {
  std::vector<int64_t> shown;
  for (int64_t i = n; i > 0; --i) {
    if (i == n || i % 5 == 0 || i <= 2) shown.push_back(i);
  }
  return shown;
}

std::vector<JsonField> records_of(const RunOptions& run, const OverlapOptions& o, const char* part,
                                  const RecordFile& file) {
  std::vector<JsonField> records;
  for (int sample = 0; sample < o.n_samples; ++sample) {
    records.push_back(file.at(overlap_key(run, o, part, sample)));
  }
  return records;
}

/// How often the full cache answers right at all.
std::string right_answers(const std::vector<JsonField>& records) {
  int n_last = 0, n_first = 0;
  const auto right = [](const JsonField& answer, const JsonField& reference) {
    const std::vector<std::string> numbers = numbers_in(answer.text());
    return !numbers.empty() && numbers[0] == reference.text() ? 1 : 0;
  };
  for (const JsonField& record : records) {
    const JsonField references = record.at("references");
    for (int64_t i = 0; i < 2; ++i) n_last += right(record.at("answers").at(i), references.at(i));
    n_first += right(record.at("answer_question_first"), references.at(0));
  }
  return fmt::format("\nRight answers: {} of {} with the question last, {} of {} with it first.\n",
                     n_last, 2 * records.size(), n_first, records.size());
}

}  // namespace

std::string overlap_tables(const RunOptions& run, const OverlapOptions& o, const RecordFile& file) {
  std::string text = fmt::format(
      "Cells are overlap / hit rate, means over {} prompts; p = {}, theta = {}. By chance both "
      "would "
      "be {:.0f}%.\n\n",
      o.n_samples, o.p, o.theta, 100 * o.p);
  text += fmt::format(
      "Windows of {} tokens before the prompt's end, against the {} tokens that follow it, over "
      "the "
      "tokens before all windows:\n\n",
      o.window_length, o.n_gen_windows * o.window_length);
  const auto windows = records_of(run, o, "windows", file);
  std::vector<Column> columns;
  for (const int64_t i : shown_windows(o.n_windows)) {
    const int64_t at = o.n_windows - i;
    columns.push_back({i == 1 ? "last window" : fmt::format("{} before the end", i),
                       [at](const JsonField& layer) { return layer.at("windows").at(at); }});
  }
  text += table(windows, columns);
  text +=
      "\nThe prompt's last window, against each window that follows, over the tokens before "
      "it:\n\n";
  columns.clear();
  for (int64_t i = 0; i < o.n_gen_windows; ++i) {
    columns.push_back(
        {fmt::format("tokens {}-{}", i * o.window_length + 1, (i + 1) * o.window_length),
         [i](const JsonField& layer) { return layer.at("generation").at(i); }});
  }
  text += table(windows, columns);
  if (o.random_tokens) return text;
  text += fmt::format(
      "\nTwo questions about one document: what one question and its answer select, against what "
      "the other attends to; and the prompt's last {} tokens against the answer ({} tokens), with "
      "the question last and first, over the document:\n\n",
      o.question_window, o.n_answer);
  columns.clear();
  for (const auto& [title, key] :
       {std::pair("other question", "other_question"), std::pair("question last", "question_last"),
        std::pair("question first", "question_first")}) {
    columns.push_back({title, [key = key](const JsonField& layer) { return layer.at(key); }});
  }
  const auto questions = records_of(run, o, "questions", file);
  return text + table(questions, columns) + right_answers(questions);
}

}  // namespace snapkv::eval
