// SPDX-License-Identifier: MIT
#include "eval/common/runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/timer.h"
#include "eval/common/metrics.h"
#include "eval/common/prompt_reader.h"
#include "snapkv/generator.h"

namespace snapkv::eval {
namespace {

// The session of one configuration while answers are decoded.
struct Writer {
  std::unique_ptr<Session> session;
  Answer answer;
  std::unique_ptr<Sampler> sampler = std::make_unique<Sampler>(SamplerConfig{.temperature = 0});
  std::unique_ptr<Generator> generator = nullptr;
  std::string text = {};  // of the answer that is being written
};

// The end of the first line of `text` that is not empty; npos if there is none yet.
size_t line_end(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  return text.find('\n', begin);
}

void begin_answer(const AnswerLimit& limit, Writer& writer) {
  writer.text.clear();
  GeneratorOptions options{.max_tokens = limit.n_predict};
  if (limit.ends_at_line) {
    options.is_end = [&text = writer.text](std::string_view part) {
      return line_end(text + std::string(part)) != std::string::npos;
    };
  }
  writer.generator =
      std::make_unique<Generator>(*writer.session, *writer.sampler, std::move(options));
}

// Chooses the tokens that the session's logits give, or ends the answer.
void choose(const AnswerLimit& limit, Writer& writer) {
  Generator& generator = *writer.generator;
  while (!generator.must_read() && generator.choose()) writer.text += generator.token().text;
  if (!generator.done()) return;
  writer.text += generator.rest();
  if (limit.ends_at_line) writer.text.resize(std::min(line_end(writer.text), writer.text.size()));
}

// The token that was chosen last, if only the limit of tokens kept the session from reading it.
bool is_cut(const Writer& writer) {
  return writer.generator->stop_reason() == StopReason::length && writer.generator->n_unread() > 0;
}

const char* question_mode(const RunOptions& run) {
  if (run.keeps_full) return "stored";
  return run.question_agnostic ? "agnostic" : "aware";
}

// Makes a session for each configuration and reads the prompt into them.
std::vector<Writer> read_prompt(const RunOptions& run,
                                const std::vector<SessionOptions>& configurations,
                                const Prompt& prompt, PromptReader& reader, bool keeps) {
  std::vector<Writer> writers(configurations.size());
  std::vector<Session*> sessions;
  for (size_t i = 0; i < writers.size(); ++i) {
    writers[i].session = std::make_unique<Session>(run.model, configurations[i]);
    sessions.push_back(writers[i].session.get());
  }
  reader.read(sessions, prompt, keeps);
  return writers;
}

// Continues all sessions together until each answer is complete.
void write_answers(const RunOptions& run, const AnswerLimit& limit, std::span<Writer> writers) {
  for (Writer& writer : writers) {
    begin_answer(limit, writer);
    choose(limit, writer);
  }
  for (;;) {
    if (run.cancelled()) fail(ErrorCode::kCancelled, "cancelled");
    std::vector<Session*> sessions;
    std::vector<StepTokens> next;
    for (const Writer& writer : writers) {
      if (writer.generator->done()) continue;
      sessions.push_back(writer.session.get());
      next.push_back(writer.generator->next_tokens());
    }
    if (sessions.empty()) return;
    decode_steps(sessions, next);
    for (Writer& writer : writers) {
      if (!writer.generator->done()) choose(limit, writer);
    }
  }
}

// Adds the scores of all answers of a conversation, and what was asked and answered.
void add_turns(const Item& item, const Prompt& prompt, const Answer& answer, Json& record) {
  // Json::array(), because braces around one Json are an array for GCC and a copy for Clang.
  Json answers = Json::array({answer.text}), scores = Json::array({record.at("score")});
  Json references = Json::array({prompt.references.at(0)}), seconds = Json::array();
  double sum = record.at("score").get<double>();
  for (size_t i = 0; i < prompt.turns.size(); ++i) {
    Prompt turn;
    turn.references = {prompt.turns[i].reference};
    const double score = checked_score(item.score(turn, answer.later[i].text), item.id);
    sum += score;
    answers.push_back(answer.later[i].text);
    references.push_back(prompt.turns[i].reference);
    scores.push_back(score);
    seconds.push_back(answer.later[i].prefill_seconds);
  }
  record["score"] = sum / static_cast<double>(scores.size());
  record["answers"] = std::move(answers);
  record["references"] = std::move(references);
  record["scores"] = std::move(scores);
  record["turn_seconds"] = std::move(seconds);
  record["kv_bytes_at_end"] = answer.at_end.kv_bytes_used;
  record["history_bytes"] = answer.at_end.history_bytes;
}

// The tokens of a turn that a session reads.
std::vector<int32_t> turn_tokens(const Turn& turn, const Writer& writer) {
  std::vector<int32_t> tokens;
  if (turn.completes_answer && is_cut(writer)) tokens.push_back(writer.generator->next_token());
  tokens.insert(tokens.end(), turn.tokens.begin(), turn.tokens.end());
  return tokens;
}

// The tokens of a complete answer as the session of its writer will have read them when it has read
// the next turn.
std::vector<int32_t> answer_tokens(const Turn& turn, const Writer& writer) {
  std::vector<int32_t> tokens = writer.generator->ids();
  if (!turn.completes_answer || !is_cut(writer)) {
    tokens.resize(tokens.size() - static_cast<size_t>(writer.generator->n_unread()));
  }
  return tokens;
}

// The answers to a prompt that has_full_history. The session that answers for the full cache is
// one more than those of the configurations, which may lack it.
std::vector<Answer> answer_last_turn(const RunOptions& run,
                                     std::vector<SessionOptions> configurations,
                                     const Prompt& prompt, const AnswerLimit& limit,
                                     PromptReader& reader, bool keeps) {
  SNAPKV_CHECK(!prompt.turns.empty() && !run.question_agnostic && !run.keeps_full);
  SessionOptions full = configurations.front();
  full.kv = PolicyConfig{};
  full.kv.name = "full";
  full.kv_refresh = false;
  full.kv_memory = 0;
  full.kv_decode_limit = 0;
  configurations.push_back(full);
  std::vector<Writer> all = read_prompt(run, configurations, prompt, reader, keeps);
  const std::span<Writer> asked = std::span(all).first(all.size() - 1);
  const std::span<Writer> guide = std::span(all).last(1);
  std::vector<std::string> history;
  for (const Turn& turn : prompt.turns) {
    write_answers(run, limit, guide);
    history.push_back(guide[0].text);
    std::vector<int32_t> tokens = answer_tokens(turn, guide[0]);
    tokens.insert(tokens.end(), turn.tokens.begin(), turn.tokens.end());
    for (Writer& writer : asked) writer.session->prefill(tokens);
    guide[0].session->prefill(turn_tokens(turn, guide[0]));
  }
  for (Writer& writer : asked) {
    writer.answer.after_prefill = writer.session->stats();
    writer.answer.n_read = writer.session->n_past();
  }
  write_answers(run, limit, asked);
  std::vector<Answer> answers;
  for (Writer& writer : asked) {
    writer.answer.text = std::exchange(writer.text, {});
    writer.answer.history = history;
    writer.answer.at_end = writer.session->stats();
    answers.push_back(std::move(writer.answer));
  }
  return answers;
}

std::vector<SessionOptions> missing_configurations(const RunOptions& run, const Item& item,
                                                   const RecordFile& file) {
  std::vector<SessionOptions> missing;
  for (const SessionOptions& options : run.configurations) {
    if (!file.contains(record_key(run, item, options))) missing.push_back(options);
  }
  return missing;
}

// The answer of policy full to an item, which was written now or stands in the file.
std::string full_answer(const RunOptions& run, const Item& item, const RecordFile& file,
                        const std::vector<SessionOptions>& configurations,
                        const std::vector<Answer>& answers) {
  for (size_t i = 0; i < configurations.size(); ++i) {
    if (configurations[i].kv.name == "full") return to_utf8(answers[i].text);
  }
  return file.at(record_key(run, item, full_configuration(run))).at("answer").text();
}

void append_records(const RunOptions& run, const Item& item, RecordFile& file,
                    const std::vector<SessionOptions>& missing, PromptReader& reader, bool keeps) {
  const Prompt prompt = item.make();
  const std::vector<Answer> answers =
      answer_prompt(run, missing, prompt, item.limit, reader, keeps);
  const std::string full =
      item.beside_full ? full_answer(run, item, file, missing, answers) : std::string();
  for (size_t i = 0; i < missing.size(); ++i) {
    const SessionStats& stats = answers[i].after_prefill;
    Json record = begin_record(run, record_key(run, item, missing[i]), item.id, missing[i]);
    record["question"] = question_mode(run);
    record["n_prompt"] = prompt.tokens.size();
    record["kv_bytes"] = stats.kv_bytes_used;
    record["kv_bytes_full"] = stats.kv_bytes_full;
    record["references"] = prompt.references;
    record["answer"] = answers[i].text;
    if (item.beside_full) {
      record.update(item.beside_full(to_utf8(answers[i].text), full));
      checked_score(record.at("score").get<double>(), item.id);
    } else {
      record["score"] = checked_score(item.score(prompt, answers[i].text), item.id);
    }
    if (prompt.has_full_history) {
      record["n_prompt"] = answers[i].n_read;
      record["history"] = answers[i].history;
    } else if (!prompt.turns.empty()) {
      add_turns(item, prompt, answers[i], record);
    }
    record.update(prompt.details);
    // If the task does not record its question in its own fields, the whole prompt is recorded.
    if (!record.contains("input") && !record.contains("prompt")) record["prompt"] = prompt.text;
    file.append(std::move(record));
  }
}

}  // namespace

Json policy_json(const PolicyConfig& config) {
  Json json = {{"policy", config.name}};
  for (const PolicySetting& setting : policy_settings(config)) {
    std::visit([&](const auto& v) { json[setting.param->name] = v; }, setting.value);
  }
  return json;
}

Json configuration_json(const SessionOptions& options) {
  Json json = policy_json(options.kv);
  if (policy_info(options.kv.name).has_budget) {
    json.erase(options.kv.ratio > 0 ? "budget" : "ratio");  // the one that has no effect
    if (options.kv_memory > 0) json["kv_memory"] = options.kv_memory;
    if (options.kv_decode_limit > 0) json["kv_decode_limit"] = options.kv_decode_limit;
    if (options.kv_refresh) json["kv_refresh"] = true;
  }
  json["kv_type"] = name(options.kv_type);
  if (options.prefill_attention == PromptAttention::sparse) {
    json["attention_share"] = options.attention_share;
  }
  return json;
}

std::string configuration_label(const SessionOptions& options) {
  const PolicyConfig& kv = options.kv;
  if (!policy_info(kv.name).has_budget) return kv.name;
  std::string rows =
      kv.ratio > 0 ? fmt::format("{:.3g}%", kv.ratio * 100) : fmt::format("{}", kv.budget);
  if (options.kv_memory > 0) rows += fmt::format(" ({} bytes)", options.kv_memory);
  std::string label = fmt::format("{} {}, {}", kv.name, rows, describe_params(kv));
  if (options.kv_refresh) label += ", refresh";
  if (options.kv_decode_limit > 0) label += fmt::format(", limit {}", options.kv_decode_limit);
  return label;
}

Prompt split_prompt(const Model& model, std::string text, size_t context_bytes) {
  Prompt prompt;
  prompt.tokens = model.tokenize(text, true, false);
  const std::vector<int32_t> context =
      model.tokenize(std::string_view(text).substr(0, context_bytes), true, false);
  const auto last = std::min(context.end(), context.begin() + std::ssize(prompt.tokens));
  prompt.n_context =
      std::mismatch(context.begin(), last, prompt.tokens.begin()).first - context.begin();
  prompt.question_end = std::ssize(prompt.tokens);
  prompt.text = std::move(text);
  return prompt;
}

std::string asked_text(const Model& model, const Prompt& prompt) {
  std::string text;
  for (int64_t i = prompt.n_context; i < std::ssize(prompt.tokens); ++i) {
    text += model.piece(prompt.tokens[i], true);
  }
  return text;
}

std::vector<Item> each_once(std::vector<Item> items) {
  std::set<std::string> ids;
  std::erase_if(items, [&](const Item& item) { return !ids.insert(item.id).second; });
  return items;
}

const SessionOptions& full_configuration(const RunOptions& run) {
  const auto full = std::find_if(run.configurations.begin(), run.configurations.end(),
                                 [](const SessionOptions& o) { return o.kv.name == "full"; });
  SNAPKV_CHECK(full != run.configurations.end());
  return *full;
}

std::string model_key(const Model& model) {
  const bool f32_rounded = model.compute_dtype() == DType::f32 && model.rounds_activations();
  // In the form that records have, or they would not be found again.
  const std::string file = to_utf8(std::filesystem::path(model.info().path).filename().string());
  return fmt::format("{} {:016x} {}{}", file, model.fingerprint(), name(model.compute_dtype()),
                     f32_rounded ? " and 8 bits" : "");
}

std::string record_key(const RunOptions& run, const Item& item,
                       const SessionOptions& configuration) {
  return fmt::format("{} | {} | {} | {} tokens{} | {} | question-{}", item.id,
                     model_key(*run.model), version(), item.limit.n_predict,
                     item.limit.ends_at_line ? ", a line" : "",
                     to_line(configuration_json(configuration)), question_mode(run));
}

Json begin_record(const RunOptions& run, std::string key, std::string id,
                  const SessionOptions& configuration) {
  static const std::string processor = cpu_name();
  return {{"key", std::move(key)},
          {"id", std::move(id)},
          {"model", run.model->info().path},
          {"fingerprint", fmt::format("{:016x}", run.model->fingerprint())},
          {"backend", run.model->backend_description()},
          {"processor", processor.empty() ? "unknown" : processor},
          {"version", version()},
          {"commit", build_commit()},
          {"date", run.date},
          {"seed", run.seed},
          {"configuration", configuration_json(configuration)}};
}

std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const Prompt& prompt, const AnswerLimit& limit) {
  PromptReader reader(run);
  return answer_prompt(run, configurations, prompt, limit, reader, false);
}

std::vector<Answer> answer_prompt(const RunOptions& run,
                                  const std::vector<SessionOptions>& configurations,
                                  const Prompt& prompt, const AnswerLimit& limit,
                                  PromptReader& reader, bool keeps) {
  if (prompt.has_full_history) {
    return answer_last_turn(run, configurations, prompt, limit, reader, keeps);
  }
  std::vector<Writer> writers = read_prompt(run, configurations, prompt, reader, keeps);
  for (Writer& writer : writers) writer.answer.after_prefill = writer.session->stats();
  write_answers(run, limit, writers);
  for (Writer& writer : writers) writer.answer.text = std::exchange(writer.text, {});
  for (const Turn& turn : prompt.turns) {
    for (Writer& writer : writers) {
      const Timer timer;
      writer.session->prefill(turn_tokens(turn, writer), {.compress = !run.question_agnostic});
      writer.answer.later.push_back({{}, timer.seconds()});
    }
    write_answers(run, limit, writers);
    for (Writer& writer : writers) writer.answer.later.back().text = std::exchange(writer.text, {});
  }
  std::vector<Answer> answers;
  for (Writer& writer : writers) {
    writer.answer.at_end = writer.session->stats();
    answers.push_back(std::move(writer.answer));
  }
  return answers;
}

void run_items(const RunOptions& run, const std::vector<Item>& items, RecordFile& file) {
  std::vector<std::pair<const Item*, std::vector<SessionOptions>>> todo;
  for (const Item& item : items) {
    std::vector<SessionOptions> missing = missing_configurations(run, item, file);
    if (!missing.empty()) todo.emplace_back(&item, std::move(missing));
  }
  PromptReader reader(run);
  for (size_t i = 0; i < todo.size(); ++i) {
    const auto& [item, missing] = todo[i];
    if (i > 0 && run.enough && run.enough()) return;
    if (run.progress) run.progress(static_cast<int64_t>(i), std::ssize(todo));
    const bool keeps =
        i + 1 < todo.size() && !item->group.empty() && item->group == todo[i + 1].first->group;
    append_records(run, *item, file, missing, reader, keeps);
    if (!keeps) reader.forget();
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
  if (columns.size() > 1) columns.emplace_back("all");
  std::string table = "| cache | question | kept MiB |", rule = "|---|---|---|";
  for (const std::string& column : columns) {
    table += " " + column + " |";
    rule += "---|";
  }
  table += "\n" + rule + "\n";
  for (const SessionOptions& configuration : run.configurations) {
    double bytes = 0;
    std::map<std::string, std::pair<double, int64_t>> sums;  // by column: sum of scores, items
    for (const Item& item : items) {
      const JsonField record = file.at(record_key(run, item, configuration));
      bytes += record.at("kv_bytes").amount();
      for (const std::string& column : {item.column, std::string("all")}) {
        sums[column].first += record.at("score").number(0, 1);
        ++sums[column].second;
      }
    }
    table += fmt::format("| {} | {} | {:.3g} |", configuration_label(configuration),
                         question_mode(run), bytes / (1 << 20) / static_cast<double>(items.size()));
    for (const std::string& column : columns) {
      const auto& [sum, n] = sums[column];
      const Interval interval = wilson(sum / static_cast<double>(n), n);
      table += fmt::format(" {:.1f}% [{:.1f}, {:.1f}] of {} |", 100 * interval.mean,
                           100 * interval.low, 100 * interval.high, n);
    }
    table += "\n";
  }
  return table;
}

}  // namespace snapkv::eval
