// SPDX-License-Identifier: MIT
#include "eval/longbench/longbench.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "eval/common/metrics.h"

namespace snapkv::eval {
namespace {

constexpr int kPublishedTasks = 16;  // the English and code tasks, over which papers average

// A prompt without its middle: the text of its first and of its last `half` tokens.
std::string without_middle(const Model& model, const std::vector<int32_t>& tokens, int64_t half) {
  const std::span all(tokens);
  const auto n = static_cast<size_t>(half);
  return to_utf8(model.detokenize(all.first(n)) + model.detokenize(all.last(n)));
}

double score_one(LongbenchMetric metric, const std::string& answer, const std::string& reference,
                 const std::vector<std::string>& classes) {
  switch (metric) {
    case LongbenchMetric::qa_f1:
      return qa_f1(answer, reference);
    case LongbenchMetric::rouge_l:
      return rouge_l_summary(answer, reference);
    case LongbenchMetric::classification:
      return classification(answer, reference, classes);
    case LongbenchMetric::retrieval:  // "Paragraph 12"
      return number_share(answer, numbers_in(reference).at(0));
    case LongbenchMetric::count:
      return number_share(answer, reference);
    case LongbenchMetric::code:
      return code_similarity(answer, reference);
  }
  return 0;
}

// The tokens that a template adds to those of the prompt. Where the two meet, a few tokens may
// differ from those of the prompt alone.
int64_t template_tokens(const Model& model, const PromptFormat& format) {
  constexpr int64_t kAtJoints = 4;
  return format.is_chat() ? format.count_tokens(model, {"a", "", ""}) + kAtJoints : 0;
}

// The format for a task's prompts.
PromptFormat format_for(const LongbenchTask& task, const PromptFormat& format) {
  return task.is_message() ? format : PromptFormat::plain();
}

std::string chat_remark(const std::vector<LongbenchSet>& sets, const PromptFormat& format) {
  if (!format.is_chat()) return "Without the chat template (--chat).";
  std::vector<std::string> plain;
  for (const LongbenchSet& set : sets) {
    if (!set.task.is_message()) plain.push_back(set.task.name);
  }
  if (plain.empty()) return "In the chat template.";
  return fmt::format("In the chat template, but for {}.", fmt::join(plain, ", "));
}

// The text after the context in a prompt: the question of question-agnostic runs.
std::string after_context(const LongbenchSet& set, const LongbenchRow& row) {
  LongbenchSet rest = set;
  const size_t at = set.prompt.rfind("{context}");
  rest.prompt = at == std::string::npos ? "" : set.prompt.substr(at + 9);
  return longbench_prompt(rest, row);
}

// Sums over the prompts of one task or of all tasks.
struct Sum {
  double score = 0, kv_bytes = 0;
  int64_t n = 0, n_truncated = 0;
};

Sum collect(const RunOptions& run, const std::vector<Item>& items, const RecordFile& file,
            const std::string& task, const SessionOptions& configuration) {
  Sum sum;
  for (const Item& item : items) {
    if (item.column != task) continue;
    const JsonField record = file.at(record_key(run, item, configuration));
    sum.score += record.at("score").number(0, 1);
    sum.kv_bytes += record.at("kv_bytes").amount();
    sum.n_truncated += record.at("truncated").boolean() ? 1 : 0;
    ++sum.n;
  }
  return sum;
}

std::string plural(int64_t n, const char* one, const char* many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

}  // namespace

Prompt make_longbench(const Model& model, const LongbenchSet& set, const LongbenchLine& line,
                      const LongbenchOptions& options) {
  const int64_t max_length = options.max_length;
  const LongbenchRow row = read_longbench_row(set, line);
  std::string text = to_utf8(longbench_prompt(set, row));
  const std::vector<int32_t> whole = model.tokenize(text, true, false);
  int64_t n_left_out = 0;
  if (std::ssize(whole) > max_length) {
    // The joined text may have a few tokens more than its halves; then this tries again with fewer.
    int64_t half = max_length / 2;
    for (;;) {
      text = without_middle(model, whole, half);
      const int64_t excess = std::ssize(model.tokenize(text, true, false)) - max_length;
      if (excess <= 0) break;
      half = std::max<int64_t>(0, half - (excess + 1) / 2);
    }
    n_left_out = std::ssize(whole) - 2 * half;
  }
  const std::string question = to_utf8(after_context(set, row));
  const size_t n_question =
      text.ends_with(question) && question.size() < text.size() ? question.size() : 0;
  const PromptFormat format = format_for(set.task, options.format);
  const size_t n_before = text.size() - n_question;
  Prompt prompt = format.make(model, {text.substr(0, n_before), text.substr(n_before), ""});
  if (options.question_agnostic && (n_question == 0 || prompt.n_context == 0)) {
    fail(ErrorCode::kUsage,
         "{}:{}: no whole question after the context in a prompt of at most {} tokens, so that it "
         "can't be asked afterwards",
         set.path, line.number, max_length);
  }
  prompt.references = row.answers;
  prompt.details = {{"task", "longbench"},
                    {"dataset", set.task.name},
                    {"_id", row.id},
                    {"language", row.language},
                    {"length", row.length},
                    {"metric", name(set.task.metric)},
                    {"n_predict", set.n_predict},
                    {"max_length", max_length},
                    {"truncated", n_left_out > 0},
                    {"n_prompt_whole", whole.size()},
                    {"n_left_out", n_left_out},
                    {"chat_template", format.record()}};
  if (!row.classes.empty()) prompt.details["all_classes"] = row.classes;
  return prompt;
}

double longbench_score(const LongbenchTask& task, const std::vector<std::string>& references,
                       const std::vector<std::string>& classes, const std::string& answer) {
  std::string counted = answer;
  if (task.first_line) {
    counted.erase(0, counted.find_first_not_of('\n'));
    counted.resize(std::min(counted.find('\n'), counted.size()));
  }
  double best = 0;
  for (const std::string& reference : references) {
    best = std::max(best, score_one(task.metric, counted, reference, classes));
  }
  return best;
}

std::vector<Item> longbench_items(std::shared_ptr<const Model> model,
                                  const std::vector<LongbenchSet>& sets,
                                  const LongbenchOptions& options) {
  std::vector<Item> items;
  const int64_t n_ctx = model->info().n_ctx_train;
  for (const LongbenchSet& set : sets) {
    LongbenchOptions chosen = options;
    chosen.format = format_for(set.task, options.format);
    const int64_t n_template = template_tokens(*model, chosen.format);
    if (chosen.max_length == 0) chosen.max_length = n_ctx - set.n_predict - n_template;
    const int64_t max_length = chosen.max_length;
    if (max_length < 2 || max_length + n_template + set.n_predict > n_ctx) {
      const std::string in_template =
          n_template > 0 ? fmt::format(", {} of the chat template", n_template) : "";
      fail(ErrorCode::kContextExceeded,
           "prompts of {} tokens{} and an answer of {} ({}) exceed the model's context of {}",
           max_length, in_template, set.n_predict, set.task.name, n_ctx);
    }
    const auto shared = std::make_shared<const LongbenchSet>(set);
    for (const LongbenchLine& line : set.lines) {
      Item item;
      item.id = fmt::format("longbench {} {} {:016x} {:016x} at most {} tokens", set.task.name,
                            line.id, line.fingerprint, hash64(set.prompt), max_length);
      item.id = chosen.format.with_id(item.id);
      item.column = set.task.name;
      item.limit = {.n_predict = set.n_predict, .ends_at_line = set.task.first_line};
      item.make = [=] { return make_longbench(*model, *shared, line, chosen); };
      item.score = [shared](const Prompt& prompt, const std::string& answer) {
        const auto classes = prompt.details.value("all_classes", std::vector<std::string>{});
        return longbench_score(shared->task, prompt.references, classes, answer);
      };
      items.push_back(std::move(item));
    }
  }
  return each_once(std::move(items));
}

std::string longbench_table(const RunOptions& run, const std::vector<LongbenchSet>& sets,
                            const std::vector<Item>& items, const RecordFile& file,
                            const PromptFormat& format) {
  const size_t n_configurations = run.configurations.size();
  std::string table = "| task | metric | prompts | cut |", rule = "|---|---|---|---|";
  for (const SessionOptions& configuration : run.configurations) {
    table += " " + configuration_label(configuration) + " |";
    rule += "---|";
  }
  table += "\n" + rule + "\n";
  std::vector<double> means(n_configurations, 0), bytes(n_configurations, 0);
  int64_t n_published = 0, n_prompts = 0, n_truncated = 0;
  for (const LongbenchSet& set : sets) {
    std::string cells;
    Sum sum;
    for (size_t c = 0; c < n_configurations; ++c) {
      sum = collect(run, items, file, set.task.name, run.configurations[c]);
      const Interval interval = wilson(sum.score / static_cast<double>(sum.n), sum.n);
      cells += fmt::format(" {:.2f} [{:.1f}, {:.1f}] |", 100 * interval.mean, 100 * interval.low,
                           100 * interval.high);
      if (!set.task.chinese) means[c] += interval.mean;
      bytes[c] += sum.kv_bytes;
    }
    table += fmt::format("| {} | {} | {} of {} | {} |{}\n", set.task.name, name(set.task.metric),
                         sum.n, set.n_lines, sum.n_truncated, cells);
    n_published += set.task.chinese ? 0 : 1;
    n_prompts += sum.n;
    n_truncated += sum.n_truncated;
  }
  std::string mean_cells, byte_cells;
  for (size_t c = 0; c < n_configurations; ++c) {
    mean_cells += fmt::format(" {:.2f} |", 100 * means[c] / static_cast<double>(n_published));
    byte_cells += fmt::format(" {:.3g} |", bytes[c] / (1 << 20) / static_cast<double>(n_prompts));
  }
  if (n_published > 0) {
    table += fmt::format("| mean of {} of the {} English tasks | | | |{}\n", n_published,
                         kPublishedTasks, mean_cells);
  }
  table +=
      fmt::format("| KV MiB kept, mean | | {} | {} |{}\n\n", n_prompts, n_truncated, byte_cells);
  table += fmt::format("{} of {} lost the middle to fit. Question {}. {}\n", n_truncated,
                       plural(n_prompts, "prompt", "prompts"),
                       run.question_agnostic ? "agnostic: asked after the context was compressed"
                                             : "aware: it chose what is kept",
                       chat_remark(sets, format));
  return table;
}

}  // namespace snapkv::eval
