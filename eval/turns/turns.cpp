// SPDX-License-Identifier: MIT
#include "eval/turns/turns.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "eval/common/haystack.h"
#include "eval/common/metrics.h"
#include "eval/needle/document.h"

namespace snapkv::eval {
namespace {

// Room for any one question and its lead; names differ by a few tokens.
constexpr int64_t kQuestionTokens = 64;

// Appends the answer and the next question to `messages`, which end with a question.
Turn next_turn(const Model& model, const PromptFormat& format,
               const NeedleDocument::Question& before, const NeedleDocument::Question& q,
               std::vector<std::string>& messages) {
  Turn turn;
  if (format.is_chat()) {
    messages.push_back(before.lead + " " + before.answer);
    messages.push_back(q.question.substr(q.question.find_first_not_of('\n')));
    turn = format.make_turn(model, messages, q.lead);
  } else {
    turn.text = "\n" + q.question + q.lead;  // the previous answer ended without its newline
    turn.tokens = model.tokenize(turn.text, false, false);
  }
  turn.reference = q.answer;
  return turn;
}

Prompt make_conversation(const Model& model, const TurnsOptions& options, int64_t length,
                         int sample) {
  NeedleOptions needle;
  needle.n_facts = options.n_questions;
  needle.seed = options.seed;
  needle.haystack = options.haystack;
  needle.format = options.format;
  const double depth = (sample + 0.5) / options.n_samples;
  const NeedleDocument document = make_needle_document(model, needle, length, depth, sample);
  const NeedleDocument::Question& first = document.questions[0];
  Prompt prompt = options.format.make(model, {document.text, first.question, first.lead});
  prompt.references = {first.answer};
  std::vector<std::string> messages = {document.text + first.question};
  for (size_t i = 1; i < document.questions.size(); ++i) {
    prompt.turns.push_back(next_turn(model, options.format, document.questions[i - 1],
                                     document.questions[i], messages));
  }
  prompt.details = {{"task", "turns"},
                    {"kind", fmt::format("{} questions", options.n_questions)},
                    {"length", length},
                    {"sample", sample}};
  if (options.format.is_chat()) prompt.details["chat_template"] = options.format.record();
  return prompt;
}

double score(const Prompt& prompt, const std::string& answer) {
  const std::vector<std::string> numbers = numbers_in(answer);
  return !numbers.empty() && numbers[0] == prompt.references[0] ? 1 : 0;
}

}  // namespace

int64_t later_tokens(const Model& model, const TurnsOptions& options) {
  int64_t n_question = kQuestionTokens;
  if (options.format.is_chat()) {
    n_question += std::ssize(options.format.make_turn(model, {"a", "b", "c"}, "").tokens);
  }
  return options.n_predict + (options.n_questions - 1) * (n_question + options.n_predict);
}

std::vector<Item> turns_items(std::shared_ptr<const Model> model, const TurnsOptions& options) {
  if (options.n_questions < 2) {
    fail(ErrorCode::kUsage, "{} questions: turns need at least 2", options.n_questions);
  }
  const auto shared = std::make_shared<const TurnsOptions>(options);
  const std::string source = haystack_id(options.haystack);
  std::vector<Item> items;
  for (const int64_t length : options.lengths) {
    for (int sample = 0; sample < options.n_samples; ++sample) {
      Item item;
      item.id =
          fmt::format("turns questions {} length {} sample {} of {} seed {} {}",
                      options.n_questions, length, sample, options.n_samples, options.seed, source);
      item.id = options.format.with_id(item.id);
      item.column = fmt::format("{} tokens", length);
      item.limit.n_predict = options.n_predict;
      item.make = [=] { return make_conversation(*model, *shared, length, sample); };
      item.score = score;
      items.push_back(std::move(item));
    }
  }
  return each_once(std::move(items));
}

std::string turns_tables(const RunOptions& run, const TurnsOptions& options,
                         const std::vector<Item>& items, const RecordFile& file) {
  std::string head = "| cache |", rule = "|---|";
  for (int q = 1; q <= options.n_questions; ++q) {
    head += fmt::format(" question {} |", q);
    rule += "---|";
  }
  std::string text = head +
                     " kept MiB at the end | MiB for refresh | ms to read a later question |\n" +
                     rule + "---|---|---|\n";
  const auto n = std::ssize(items);
  for (const SessionOptions& configuration : run.configurations) {
    std::vector<double> right(options.n_questions, 0.0);
    double bytes = 0, history = 0, seconds = 0;
    int64_t n_later = 0;
    for (const Item& item : items) {
      const JsonField record = file.at(record_key(run, item, configuration));
      for (int q = 0; q < options.n_questions; ++q) {
        right[q] += record.at("scores").at(q).number(0, 1);
      }
      bytes += record.at("kv_bytes_at_end").amount();
      history += record.at("history_bytes").amount();
      for (int q = 1; q < options.n_questions; ++q) {
        seconds += record.at("turn_seconds").at(q - 1).amount();
        ++n_later;
      }
    }
    text += fmt::format("| {} |", configuration_label(configuration));
    for (const double sum : right) {
      const Interval interval = wilson(sum / static_cast<double>(n), n);
      text += fmt::format(" {:.1f}% [{:.1f}, {:.1f}] |", 100 * interval.mean, 100 * interval.low,
                          100 * interval.high);
    }
    const double per_mib = 1.0 / (1 << 20) / static_cast<double>(n);
    text += fmt::format(" {:.3g} | {:.3g} | {:.3g} |\n", bytes * per_mib, history * per_mib,
                        1000 * seconds / static_cast<double>(n_later));
  }
  return text;
}

}  // namespace snapkv::eval
