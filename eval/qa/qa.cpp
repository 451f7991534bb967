// SPDX-License-Identifier: MIT
#include "eval/qa/qa.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "eval/common/metrics.h"
#include "snapkv/fill_in.h"

namespace snapkv::eval {
namespace {

// A hash of everything in a question that prompt and score depend on, except the context.
uint64_t question_fingerprint(const QaQuestion& question) {
  Hash64 hash;
  std::vector<std::string> parts = {question.question, question.lead, name(question.metric)};
  if (fills_gap(question)) parts.push_back(question.gap.suffix);
  parts.insert(parts.end(), question.answers.begin(), question.answers.end());
  for (const std::string& part : parts) {
    hash.add(static_cast<uint64_t>(part.size()));
    hash.add(part);
  }
  return hash.value();
}

// The text before the gap is the context, the text after it stands in the question's place.
Prompt make_gap(const Model& model, const QaQuestion& question) {
  Prompt prompt;
  const std::string& before = question.context->text;
  prompt.text = before + question.gap.suffix;
  prompt.tokens = fill_in_prompt(model.tokenizer(), before, question.gap.suffix);
  const int32_t mark = fill_in_tokens(model.tokenizer()).after;  // texts can't have it
  prompt.n_context =
      std::find(prompt.tokens.begin(), prompt.tokens.end(), mark) - prompt.tokens.begin();
  prompt.question_end = std::ssize(prompt.tokens);
  return prompt;
}

// The question after the earlier ones about its text.
Prompt make_last(const Model& model, const QaQuestion& question, const PromptFormat& format) {
  const auto& earlier = question.earlier;
  Prompt prompt = format.make(model, qa_text(*earlier[0], format));
  prompt.has_full_history = true;
  std::vector<std::string> messages = {question.context->text +
                                       qa_text(*earlier[0], format).question};
  for (size_t i = 0; i < earlier.size(); ++i) {
    const QaQuestion& next = i + 1 < earlier.size() ? *earlier[i + 1] : question;
    Turn& turn = prompt.turns.emplace_back();
    if (format.is_chat()) {
      // what follows an answer does not depend on it
      messages.push_back(earlier[i]->lead + " " + earlier[i]->answers.front());
      messages.push_back(next.question);
      turn = format.make_turn(model, messages, next.lead);
    } else {
      const PromptText text = qa_text(next, format);
      turn.text = text.question + text.lead;
      turn.tokens = model.tokenize(turn.text, false, false);
    }
  }
  return prompt;
}

Prompt make_prompt(const Model& model, const QaQuestion& question, const PromptFormat& format) {
  if (fills_gap(question)) return make_gap(model, question);
  if (!question.earlier.empty()) return make_last(model, question, format);
  return format.make(model, qa_text(question, format));
}

// The fields that only questions with a gap, or after others, have.
Json special_details(const Model& model, const QaQuestion& question) {
  Json details = Json::object();
  if (fills_gap(question)) details["suffix"] = question.gap.suffix;
  if (!question.gap.name.empty()) {
    const std::string_view text = question.context->text;
    details["name"] = question.gap.name;
    details["n_back"] = model.tokenize(text.substr(question.gap.defined), false, false).size();
  }
  if (!question.earlier.empty()) {
    Json ids = Json::array();
    for (const auto& earlier : question.earlier) ids.push_back(earlier->id);
    details["after"] = std::move(ids);
  }
  return details;
}

Prompt make_qa(const Model& model, const QaQuestion& question, const PromptFormat& format) {
  Prompt prompt = make_prompt(model, question, format);
  prompt.references = question.answers;
  prompt.details = {
      {"task", "qa"},
      {"question_id", question.id},
      {"question_text", question.question},
      {"lead", question.lead},
      {"kind", question.kind},
      {"half", question.half},
      {"metric", name(question.metric)},
      {"text", question.context->name},
      {"title", question.title},
      {"text_fingerprint", fmt::format("{:016x}", question.context->fingerprint)},
      {"n_context", prompt.n_context},
      {"chat_template", format.record()},
      {"prompt", prompt.has_full_history ? prompt.turns.back().text : asked_text(model, prompt)}};
  prompt.details.update(special_details(model, question));
  return prompt;
}

Item make_item(const std::shared_ptr<const Model>& model, const QaQuestion& question,
               const QaOptions& options) {
  const auto shared = std::make_shared<const QaQuestion>(question);
  const std::string format_id = options.format.id();
  Item item;
  item.id = fmt::format("qa {} text {:016x} question {:016x}", question.id,
                        question.context->fingerprint, question_fingerprint(question));
  for (const auto& earlier : question.earlier) {
    item.id += fmt::format(" after {:016x}", question_fingerprint(*earlier));
  }
  if (!format_id.empty()) item.id += " " + format_id;
  item.column = question.kind;
  // the texts before a file's gaps begin alike
  item.group = fills_gap(question) && !question.title.empty()
                   ? "before gaps of " + question.title
                   : fmt::format("{:016x}", question.context->fingerprint);
  item.limit = {.n_predict = options.n_predict, .ends_at_line = true};
  item.make = [=, format = options.format] { return make_qa(*model, *shared, format); };
  item.score = [shared](const Prompt&, const std::string& answer) {
    return qa_score(shared->metric, shared->answers, answer);
  };
  return item;
}

void check_gap(const Model& model, const QaQuestion& question, const PromptFormat& format) {
  if (!fills_gap(question)) return;
  if (format.is_chat()) {
    fail(ErrorCode::kUsage,
         "{}: {} fills a gap (field suffix), which is no message of a chat: ask it without --chat",
         question.place, question.id);
  }
  if (fill_in_tokens(model.tokenizer()).complete()) return;
  fail(ErrorCode::kUsage,
       "{}: {} fills a gap (field suffix), for which the vocabulary of {} has no tokens (such as "
       "<|fim_prefix|>, <|fim_suffix|> and <|fim_middle|>)",
       question.place, question.id, model.info().path);
}

// The tokens of a prompt, or of a conversation with answers as long as they may be.
int64_t most_tokens(const Prompt& prompt, int64_t n_predict) {
  int64_t n_tokens = std::ssize(prompt.tokens);
  for (const Turn& turn : prompt.turns) n_tokens += n_predict + std::ssize(turn.tokens);
  return n_tokens;
}

// Counts of questions: all, those that the full cache answers, and those of these that another
// configuration answers too.
struct AnsweredCounts {
  int64_t n = 0, n_full = 0, n_too = 0;
};

std::string answered_share(int64_t n, int64_t of) {
  if (of == 0) return "-";
  const Interval interval = wilson(static_cast<double>(n) / static_cast<double>(of), of);
  return fmt::format("{:.1f}% [{:.1f}, {:.1f}] of {}", 100 * interval.mean, 100 * interval.low,
                     100 * interval.high, of);
}

std::vector<std::string> kinds_of(const std::vector<Item>& items) {
  std::vector<std::string> columns;
  for (const Item& item : items) {
    if (std::find(columns.begin(), columns.end(), item.column) == columns.end()) {
      columns.push_back(item.column);
    }
  }
  if (columns.size() > 1) columns.emplace_back("all");
  return columns;
}

bool is_answered(const JsonField& record) { return record.at("score").number(0, 1) >= kQaAnswered; }

std::string qa_row(const RunOptions& run, const std::vector<Item>& items, const RecordFile& file,
                   const std::vector<std::string>& columns, const SessionOptions& full,
                   const SessionOptions& configuration) {
  std::map<std::string, AnsweredCounts> counts;
  double bytes = 0;
  for (const Item& item : items) {
    const JsonField record = file.at(record_key(run, item, configuration));
    const bool by_full = is_answered(file.at(record_key(run, item, full)));
    bytes += record.at("kv_bytes").amount();
    for (const std::string& column : std::set<std::string>{item.column, "all"}) {
      AnsweredCounts& count = counts[column];
      ++count.n;
      count.n_full += by_full ? 1 : 0;
      count.n_too += by_full && is_answered(record) ? 1 : 0;
    }
  }
  std::string row =
      fmt::format("| {} | {} | {:.0f} |", configuration_label(configuration),
                  file.at(record_key(run, items[0], configuration)).at("question").text(),
                  bytes / 1024 / static_cast<double>(items.size()));
  for (const std::string& column : columns) {
    const AnsweredCounts& count = counts[column];
    const bool is_full = &configuration == &full;
    row += is_full ? fmt::format(" {} of {} |", count.n_full, count.n)
                   : fmt::format(" {} |", answered_share(count.n_too, count.n_full));
  }
  return row + "\n";
}

}  // namespace

PromptText qa_text(const QaQuestion& question, const PromptFormat& format) {
  if (format.is_chat()) {
    return {question.context->text, "\n\n" + question.question, question.lead};
  }
  return {question.context->text, "\n\nQuestion: " + question.question + "\nAnswer:",
          question.lead.empty() ? "" : " " + question.lead};
}

QaItems qa_items(std::shared_ptr<const Model> model, const std::vector<QaQuestion>& questions,
                 const QaOptions& options) {
  QaItems out;
  const int64_t n_ctx = model->info().n_ctx_train;
  for (const QaQuestion& question : questions) {
    check_gap(*model, question, options.format);
    Item item = make_item(model, question, options);
    const int64_t n_tokens = most_tokens(item.make(), options.n_predict);
    if (options.max_length > 0 && n_tokens > options.max_length) {
      ++out.n_left_out;
      continue;
    }
    if (n_tokens + options.n_predict > n_ctx) {
      fail(ErrorCode::kContextExceeded,
           "{}: {}: the text has {} tokens with question {} and an answer up to {}, the model's "
           "context is {}; --max-length {} leaves out such questions",
           question.place, question.context->name, n_tokens, question.id, options.n_predict, n_ctx,
           std::max<int64_t>(2, n_ctx - options.n_predict));
    }
    out.items.push_back(std::move(item));
  }
  if (out.items.empty()) {
    fail(ErrorCode::kUsage, "no question is left: all {} have more than {} tokens", out.n_left_out,
         options.max_length);
  }
  return out;
}

std::string qa_table(const RunOptions& run, const QaItems& all, const RecordFile& file) {
  const std::vector<Item>& items = all.items;
  const SessionOptions& full = full_configuration(run);
  int64_t n_full = 0;
  std::set<std::string> groups;
  for (const Item& item : items) {
    n_full += is_answered(file.at(record_key(run, item, full))) ? 1 : 0;
    groups.insert(item.group);
  }
  const std::vector<std::string> columns = kinds_of(items);
  std::string table = "| cache | question | kept KiB |", rule = "|---|---|---|";
  for (const std::string& column : columns) {
    table += " " + column + " |";
    rule += "---|";
  }
  table += "\n" + rule + "\n";
  for (const SessionOptions& configuration : run.configurations) {
    table += qa_row(run, items, file, columns, full, configuration);
  }
  table += fmt::format(
      "\n{} question{} about {} text{}. The full cache answers {}; the other rows are shares of "
      "these.\n",
      items.size(), items.size() == 1 ? "" : "s", groups.size(), groups.size() == 1 ? "" : "s",
      answered_share(n_full, std::ssize(items)));
  if (all.n_left_out > 0) {
    table += fmt::format("Left out: {} questions, whose prompts are longer than --max-length.\n",
                         all.n_left_out);
  }
  return table;
}

}  // namespace snapkv::eval
