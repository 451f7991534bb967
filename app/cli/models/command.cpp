// SPDX-License-Identifier: MIT
// snapkv models: the models on this machine, with size, context and what fits into memory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/plain_text.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/models/local_models.h"
#include "eval/common/json_field.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ModelRow {
  LocalModel model;
  size_t bytes = 0;
  int64_t n_ctx = 0;
  int64_t longest = 0;  // prompt that fits, in tokens; at most the context
  bool is_chat = false;
  std::string problem;  // why it can't run
};

ModelRow row_of(const LocalModel& model, size_t memory) {
  ModelRow row = {.model = model, .problem = {}};
  try {
    const ModelDescription d = describe_model(model.path);
    row.bytes = d.info.weight_bytes;
    row.n_ctx = d.info.n_ctx_train;
    row.is_chat = !d.chat_template.empty();
    if (!d.problems.empty()) {
      row.problem = d.problems.front();
    } else {
      const SessionOptions options =
          resolve_options(session_options(CacheSettings{}, 0, &d.info), d.info);
      row.longest =
          std::min(row.n_ctx, longest_prompt(d.info, options, memory, cpu_compute_dtype()));
    }
  } catch (const Error& e) {
    row.problem = e.what();
  }
  const std::string path = model.path + ": ";  // the row names the model already
  if (row.problem.starts_with(path)) row.problem.erase(0, path.size());
  return row;
}

std::string fit_text(const ModelRow& row) {
  constexpr size_t kMost = 60;
  if (!row.problem.empty()) return "can't run: " + terminal_text(row.problem, kMost);
  if (row.longest <= 0) return "too large for this memory";
  if (row.longest < row.n_ctx) return fmt::format("prompts of {} tokens", row.longest);
  return "whole context";
}

Json to_json(const ModelRow& row) {
  return {{"name", row.model.name},
          {"path", row.model.path},
          {"source", row.model.source},
          {"bytes", row.bytes},
          {"context", row.n_ctx},
          {"longest_prompt", row.longest},
          {"chat_template", row.is_chat},
          {"problem", row.problem.empty() ? Json() : Json(row.problem)}};
}

std::string table(const std::vector<ModelRow>& rows, size_t memory) {
  size_t width = 4;
  for (const ModelRow& row : rows) width = std::max(width, n_columns(printable(row.model.name)));
  std::string text = fmt::format("{:<{}}  {:>10}  {:>8}  {:<4}  {:<28}  {}\n", "name", width,
                                 "size", "context", "chat", "fits into memory", "from");
  for (const ModelRow& row : rows) {
    const std::string name = printable(row.model.name);
    text += fmt::format("{}{}  {:>10}  {:>8}  {:<4}  {:<28}  {}\n", name,
                        std::string(width - n_columns(name), ' '), format_bytes(row.bytes),
                        row.n_ctx, row.is_chat ? "yes" : "no", fit_text(row), row.model.source);
  }
  return text + fmt::format("\n{} of memory are free. snapkv run NAME starts one.\n",
                            format_bytes(memory));
}

std::string nothing_found() {
  std::string text = "no models on this machine; these folders were looked into:\n";
  for (const std::string& folder : model_folders()) text += "  " + printable(folder) + "\n";
  return text +
         "Any GGUF file will do (snapkv run FILE). snapkv pull org/repo fetches one from Hugging "
         "Face, and make models in snapkv's source three small ones\n";
}

int run_models(bool as_json) {
  const size_t memory = free_memory();
  std::vector<ModelRow> rows;
  for (const LocalModel& model : find_local_models()) rows.push_back(row_of(model, memory));
  if (as_json) {
    Json all = Json::array();
    for (const ModelRow& row : rows) all.push_back(to_json(row));
    write_stdout(all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    write_stdout(rows.empty() ? nothing_found() : table(rows, memory));
  }
  return 0;
}

}  // namespace

Command add_models_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("models", "List the models on this machine");
  auto as_json = std::make_shared<bool>(false);
  app->add_flag("--json", *as_json, "Print a JSON list instead of a table");
  app->footer(
      "Looks into the local Hugging Face cache, the stores of ollama, LM Studio and llama.cpp,\n"
      "models/real of make models, and $XDG_CACHE_HOME/snapkv/models. snapkv pull fetches others.");
  return {app, [as_json] { return run_models(*as_json); }};
}

}  // namespace snapkv::cli
