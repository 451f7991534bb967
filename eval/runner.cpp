// SPDX-License-Identifier: MIT
#include "eval/runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "eval/metrics.h"

namespace snapkv::eval {
namespace {

// One configuration's session while the answers are decoded.
struct Writer {
  std::unique_ptr<Session> session;
  Answer answer;
  int64_t n_tokens = 0;
  bool done = false;
  int32_t next = -1;  // chosen, not yet decoded
};

int32_t likeliest(std::span<const float> logits) {  // ties to the lower id
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Chooses a writer's next token, or ends its answer.
void choose(const Model& model, int64_t n_predict, Writer& writer) {
  writer.next = likeliest(writer.session->logits());
  if (model.is_end_of_generation(writer.next)) {
    writer.done = true;
    return;
  }
  std::string& text = writer.answer.text;
  text += model.piece(writer.next);
  const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  const size_t line_end = text.find('\n', begin);
  if (line_end != std::string::npos) text.resize(line_end);
  writer.done = line_end != std::string::npos || ++writer.n_tokens >= n_predict;
}

std::vector<SessionOptions> missing_configurations(const RunOptions& run, const Item& item,
                                                   const RecordFile& file) {
  std::vector<SessionOptions> missing;
  for (const SessionOptions& options : run.configurations) {
    if (!file.contains(record_key(run, item.id, options))) missing.push_back(options);
  }
  return missing;
}

void append_records(const RunOptions& run, const Item& item, RecordFile& file,
                    const std::vector<SessionOptions>& missing) {
  const Prompt prompt = item.make();
  const std::vector<Answer> answers = answer_prompt(run, missing, prompt.tokens);
  for (size_t i = 0; i < missing.size(); ++i) {
    const SessionStats& stats = answers[i].after_prefill;
    Json record = {{"key", record_key(run, item.id, missing[i])},
                   {"id", item.id},
                   {"model", run.model->info().path},
                   {"backend", run.model->backend_description()},
                   {"version", version()},
                   {"seed", run.seed},
                   {"configuration", configuration_json(missing[i])},
                   {"n_prompt", prompt.tokens.size()},
                   {"kv_bytes", stats.kv_bytes_used},
                   {"kv_bytes_full", stats.kv_bytes_full},
                   {"references", prompt.references},
                   {"answer", answers[i].text},
                   {"score", item.score(prompt, answers[i].text)}};
    record.update(prompt.details);
    record["prompt"] = prompt.text;
    file.append(std::move(record));
  }
}

}  // namespace

Json configuration_json(const SessionOptions& options) {
  const PolicyConfig& kv = options.kv;
  Json json = {{"policy", kv.name}};
  if (kv.name != "full") {
    if (kv.ratio > 0) {
      json["ratio"] = kv.ratio;
    } else {
      json["budget"] = kv.budget;
    }
    json["window"] = kv.window_size;
    json["kernel"] = kv.kernel_size;
    json["pooling"] = kv.pooling == Pooling::max ? "max" : "avg";
    json["group"] = kv.group == GroupReduce::mean ? "mean" : "max";
    json["sinks"] = kv.sinks;
    json["seed"] = kv.seed;
    json["chunk_length"] = kv.chunk_length;
    json["n_future"] = kv.n_future;
    json["head_floor"] = kv.head_floor;
    json["pyramid_beta"] = kv.pyramid_beta;
  }
  json["kv_type"] = name(options.kv_type);
  return json;
}

std::string configuration_label(const SessionOptions& options) {
  const PolicyConfig& kv = options.kv;
  if (kv.name == "full") return kv.name;
  return fmt::format(
      "{} {}, window {}, kernel {}", kv.name,
      kv.ratio > 0 ? fmt::format("{:.3g}%", kv.ratio * 100) : fmt::format("{}", kv.budget),
      kv.window_size, kv.kernel_size);
}

std::string record_key(const RunOptions& run, const std::string& id,
                       const SessionOptions& configuration) {
  const ModelInfo& info = run.model->info();
  return fmt::format("{} | {} {} {} | {} | {} tokens | {}", id,
                     std::filesystem::path(info.path).filename().string(), info.weight_bytes,
                     name(run.model->compute_dtype()), version(), run.n_predict,
                     to_line(configuration_json(configuration)));
}

std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const std::vector<int32_t>& tokens) {
  std::vector<Writer> writers(configurations.size());
  std::vector<Session*> sessions;
  for (size_t i = 0; i < writers.size(); ++i) {
    writers[i].session = std::make_unique<Session>(run.model, configurations[i]);
    sessions.push_back(writers[i].session.get());
  }
  prefill_many(sessions, tokens, {.progress = run.prefill_progress});
  for (Writer& writer : writers) {
    writer.answer.after_prefill = writer.session->stats();
    choose(*run.model, run.n_predict, writer);
  }
  for (;;) {
    if (run.cancelled()) fail(ErrorCode::kCancelled, "cancelled");
    sessions.clear();
    std::vector<int32_t> next;
    for (const Writer& writer : writers) {
      if (writer.done) continue;
      sessions.push_back(writer.session.get());
      next.push_back(writer.next);
    }
    if (sessions.empty()) break;
    decode_batch(sessions, next);
    for (Writer& writer : writers) {
      if (!writer.done) choose(*run.model, run.n_predict, writer);
    }
  }
  std::vector<Answer> answers;
  for (Writer& writer : writers) answers.push_back(std::move(writer.answer));
  return answers;
}

void run_items(const RunOptions& run, const std::vector<Item>& items, RecordFile& file) {
  std::vector<std::pair<const Item*, std::vector<SessionOptions>>> todo;
  for (const Item& item : items) {
    std::vector<SessionOptions> missing = missing_configurations(run, item, file);
    if (!missing.empty()) todo.emplace_back(&item, std::move(missing));
  }
  int64_t n_done = 0;
  for (const auto& [item, missing] : todo) {
    if (run.progress) run.progress(n_done, std::ssize(todo));
    append_records(run, *item, file, missing);
    ++n_done;
  }
}

std::string summary_table(const RunOptions& run, const std::vector<Item>& items,
                          const RecordFile& file) {
  std::vector<std::string> columns;
  for (const Item& item : items) {
    if (std::find(columns.begin(), columns.end(), item.column) == columns.end()) {
      columns.push_back(item.column);
    }
  }
  columns.emplace_back("all");
  std::string table = "| cache |", rule = "|---|";
  for (const std::string& column : columns) {
    table += " " + column + " |";
    rule += "---|";
  }
  table += "\n" + rule + "\n";
  for (const SessionOptions& configuration : run.configurations) {
    table += "| " + configuration_label(configuration) + " |";
    for (const std::string& column : columns) {
      double sum = 0;
      int64_t n = 0;
      for (const Item& item : items) {
        if (column != "all" && item.column != column) continue;
        sum += file.at(record_key(run, item.id, configuration)).at("score").get<double>();
        ++n;
      }
      const Interval interval = wilson(n > 0 ? sum / static_cast<double>(n) : 0, n);
      table += fmt::format(" {:.1f}% [{:.1f}, {:.1f}] of {} |", 100 * interval.mean,
                           100 * interval.low, 100 * interval.high, n);
    }
    table += "\n";
  }
  return table;
}

}  // namespace snapkv::eval
