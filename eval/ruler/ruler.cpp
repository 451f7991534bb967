// SPDX-License-Identifier: MIT
#include "eval/ruler/ruler.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "eval/common/haystack.h"
#include "eval/common/metrics.h"
#include "eval/ruler/tasks.h"

namespace snapkv::eval {

const char* const kRulerNoise =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

namespace {

const std::vector<RulerTask>& all_tasks() {
  static const std::vector<RulerTask> tasks = [] {
    std::vector<RulerTask> all = ruler_needle_tasks();
    for (const auto& more : {ruler_variable_tasks(), ruler_count_tasks()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return tasks;
}

const RulerTask& ruler_task(const std::string& name) {
  for (const RulerTask& task : all_tasks()) {
    if (task.name == name) return task;
  }
  fail(ErrorCode::kUsage, "RULER task must be one of {}, it is {}",
       fmt::join(ruler_task_names(), ", "), name);
}

uint64_t sample_seed(const RulerOptions& options, const std::string& task, int64_t length,
                     int sample) {
  uint64_t task_number = 0;  // does not depend on which tasks are chosen
  for (const char c : task) task_number = task_number * 131 + static_cast<unsigned char>(c);
  // The constants only keep the sums apart.
  return options.seed * 1'000'003 + task_number * 15'485'863 +
         static_cast<uint64_t>(length) * 104'729 + static_cast<uint64_t>(sample) * 7919;
}

PromptText prompt_text(const RulerText& text) {
  return {text.context, text.question, text.answer_prefix};
}

RulerMaker prepare_sample(const Model& model, const RulerOptions& options, const RulerTask& task,
                          int64_t length, int sample) {
  RulerSample s;
  s.seed = sample_seed(options, task.name, length, sample);
  s.length = length;
  s.haystack = options.haystack;
  s.count_tokens = [&model](const std::string& text) {
    return std::ssize(model.tokenize(text, true, false));
  };
  s.count_prompt = [&model, &options](const RulerText& text) {
    return options.format.count_tokens(model, prompt_text(text));
  };
  return task.prepare(s);
}

// The number of tokens of prompt and answer.
int64_t count_all(const Model& model, const RulerOptions& options, const RulerTask& task,
                  const RulerText& text) {
  return options.format.count_tokens(model, prompt_text(text)) + task.n_predict;
}

[[noreturn]] void fail_no_room(const RulerTask& task, int64_t length, int64_t needed) {
  fail(ErrorCode::kUsage, "a length of {} tokens has no room for {}: it needs {} with this model",
       length, task.name, needed);
}

// Checks before a run of hours that the first sample fits.
void check_room(const Model& model, const RulerOptions& options, const RulerTask& task,
                int64_t length) {
  const RulerMaker make = prepare_sample(model, options, task, length, 0);
  const int64_t needed = count_all(model, options, task, make(task.least_size));
  if (needed > length) fail_no_room(task, length, needed);
}

bool uses_haystack(const std::string& task) {
  return task == "niah_single_2" || task == "niah_single_3" || task == "niah_multikey_1" ||
         task == "niah_multivalue" || task == "niah_multiquery";
}

}  // namespace

int64_t largest_size(int64_t least, int64_t length,
                     const std::function<int64_t(int64_t size)>& count_tokens) {
  if (count_tokens(least) > length) return 0;
  int64_t good = least, bad = 2 * least;
  for (; count_tokens(bad) <= length; bad *= 2) good = bad;
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (count_tokens(middle) <= length ? good : bad) = middle;
  }
  return good;
}

const std::vector<std::string>& ruler_task_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const RulerTask& task : all_tasks()) all.push_back(task.name);
    return all;
  }();
  return names;
}

Prompt make_ruler(const Model& model, const RulerOptions& options, const std::string& task_name,
                  int64_t length, int sample) {
  const RulerTask& task = ruler_task(task_name);
  const RulerMaker make = prepare_sample(model, options, task, length, sample);
  const auto n_tokens = [&](int64_t size) { return count_all(model, options, task, make(size)); };
  const int64_t size = largest_size(task.least_size, length, n_tokens);
  if (size == 0) fail_no_room(task, length, n_tokens(task.least_size));
  const RulerText text = make(size);
  Prompt prompt = options.format.make(model, prompt_text(text));
  prompt.references = text.outputs;
  prompt.details = {{"task", "ruler"},
                    {"ruler_task", task_name},
                    {"length_wanted", length},
                    {"size", size},
                    {"index", sample},
                    {"input", text.context + text.question},
                    {"answer_prefix", text.answer_prefix},
                    {"outputs", text.outputs},
                    {"length", std::ssize(prompt.tokens) + task.n_predict}};
  if (uses_haystack(task_name)) {
    prompt.details["haystack"] = options.haystack.empty() ? "generated" : "files";
  }
  if (options.format.is_chat()) prompt.details["chat_template"] = options.format.record();
  prompt.details.update(text.details);
  return prompt;
}

std::vector<Item> ruler_items(std::shared_ptr<const Model> model, const RulerOptions& options) {
  const auto shared = std::make_shared<const RulerOptions>(options);
  std::vector<Item> items;
  for (const int64_t length : options.lengths) {
    for (const std::string& task : options.tasks) {
      check_room(*model, options, ruler_task(task), length);
      for (int sample = 0; sample < options.n_samples; ++sample) {
        Item item;
        item.id =
            fmt::format("ruler {} length {} sample {} seed {}", task, length, sample, options.seed);
        if (uses_haystack(task)) item.id += " " + haystack_id(options.haystack);
        item.id = options.format.with_id(item.id);
        item.column = task;
        item.make = [=] { return make_ruler(*model, *shared, task, length, sample); };
        item.score = [](const Prompt& prompt, const std::string& answer) {
          return found_share(answer, prompt.references);
        };
        item.limit = {.n_predict = ruler_task(task).n_predict, .ends_at_line = false};
        items.push_back(std::move(item));
      }
    }
  }
  return each_once(std::move(items));
}

}  // namespace snapkv::eval
