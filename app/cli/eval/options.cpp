// SPDX-License-Identifier: MIT
#include "cli/eval/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "chat/document.h"
#include "cli/common/output_files.h"
#include "cli/common/policy_options.h"
#include "cli/common/signals.h"
#include "cli/common/table_options.h"
#include "cli/common/terminal.h"
#include "eval/common/page.h"
#include "eval/qa/join.h"
#include "snapkv/policy.h"

namespace snapkv::cli {

void add_record_options(CLI::App& app, EvalSettings& settings, bool draws) {
  mark_output(app.add_option("-o,--out", settings.out,
                             "Write the records here, one JSON object a line [default: nowhere]"),
              OutputKind::records)
      ->type_name("FILE");
  mark_output(app.add_option("--html", settings.html, "Also draw all records as an HTML page"),
              OutputKind::file)
      ->type_name("FILE");
  app.add_flag("--resume", settings.resume, "Continue the file: skip what it has")
      ->needs(app.get_option("--out"));
  if (draws) {
    app.add_option("--seed", settings.seed, "Another seed, other prompts")
        ->check(seed_number())
        ->type_name("N")
        ->capture_default_str();
  }
  add_model_options(app, settings.model);
  add_running_options(app, settings.model);
}

void add_eval_options(CLI::App& app, EvalSettings& settings, bool draws) {
  CLI::Option* const policies =
      app.add_option("--policies", settings.policies, "Policies to compare")
          ->check(CLI::IsMember(policy_names()))
          ->delimiter(',')
          ->type_name("NAME,...")
          ->default_str(fmt::format("{}; full,{} with --question-agnostic",
                                    fmt::join(settings.policies, ","), chat::kUnaskedPolicy));
  std::vector<CLI::Option*> lists;
  for (ParamList& list : settings.lists) {
    const PolicyParam& param = *policy_info("snapkv").find(list.param);
    const auto most = static_cast<int64_t>(std::min(param.most, double{kMostTokens}));
    CLI::Option* const option = app.add_option_function<std::vector<std::string>>(
        list.flag,
        [&list, &param](const std::vector<std::string>& texts) {
          list.values.clear();
          for (const std::string& text : texts) list.values.push_back(parse_param(param, text));
        },
        list.help);
    option->check(whole_number(1, most, list.param == "budget" ? kAutoBudget : ""));
    option->delimiter(',')->type_name("N,N,...");
    lists.push_back(option);
  }
  add_record_options(app, settings, draws);
  add_cache_options(app, settings.cache);
  app.remove_option(app.get_option("--kv-policy"));  // --policies replaces it
  app.get_option("--budgets")->excludes(app.get_option("--kv-memory"));
  app.final_callback([&app, &settings, lists, policies] {
    if (settings.question_agnostic && policies->count() == 0) {
      settings.policies = {"full", chat::kUnaskedPolicy};
    }
    note_typed_options(app, settings.cache);
    for (size_t i = 0; i < lists.size(); ++i) settings.lists[i].typed = lists[i]->count() > 0;
  });
}

void add_lengths_option(CLI::App& app, std::vector<int64_t>& lengths, const std::string& help,
                        const std::string& group) {
  app.add_option("--lengths", lengths, help)
      ->check(whole_number(1, kMostTokens))
      ->delimiter(',')
      ->type_name("N,N,...")
      ->default_str(fmt::format("{}", fmt::join(lengths, ",")))
      ->group(group);
}

CLI::Option* add_half_option(CLI::App& app, std::string& half, const std::string& group) {
  return app
      .add_option("--half", half,
                  "Only the questions of one half: choose (to choose settings by) or report")
      ->check(CLI::IsMember({"choose", "report"}))
      ->type_name("NAME")
      ->group(group);
}

void add_answer_option(CLI::App& app, EvalSettings& settings) {
  app.add_option("--n-predict", settings.n_predict,
                 "Tokens of an answer, at most; it ends with its first line")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
}

void add_question_option(CLI::App& app, EvalSettings& settings) {
  app.add_flag("--question-agnostic", settings.question_agnostic,
               "Compress the text before the question is seen, and keep the question whole");
}

void add_stored_option(CLI::App& app, EvalSettings& settings) {
  app.add_flag("--keep-full", settings.keeps_full,
               "Store every row of the text, as compress --keep-full, and select from them with "
               "the question")
      ->excludes(app.get_option("--question-agnostic"));
}

void add_chat_option(CLI::App& app, EvalSettings& settings) {
  CLI::Option* const chat =
      app.add_flag("--chat", settings.as_chat,
                   "Write each prompt as a user's message, through the model's chat template")
          ->group("Chat");
  settings.chat.add_options(app, chat);
}

eval::PromptFormat prompt_format(const EvalSettings& settings, const Model& model) {
  if (!settings.as_chat) return eval::PromptFormat::plain();
  const ModelChat chat = model.chat();
  Json variables = settings.chat.variables();
  add_token_texts(chat, variables);
  return eval::PromptFormat::chat(settings.chat.choose(chat, settings.model.path, false),
                                  std::move(variables), settings.chat.system());
}

namespace {

/// Throws kUsage when an option was typed that no policy which drops rows has, or that a list
/// replaces. The same setting from another source may be meant for another command.
void check_options_are_of_use(const EvalSettings& settings) {
  const std::vector<std::string>& typed = settings.cache.typed_params;
  for (const ParamList& list : settings.lists) {
    if (!list.typed || std::count(typed.begin(), typed.end(), list.param) == 0) continue;
    fail(ErrorCode::kUsage, "{} and {} exclude each other", list.flag,
         flag_of(policy_info("snapkv").find(list.param)->option));
  }
  std::vector<std::string> policies = settings.policies;
  std::erase(policies, "full");
  check_policy_options(settings.cache, policies);
  for (const ParamList& list : settings.lists) {
    const bool has = std::any_of(policies.begin(), policies.end(), [&](const auto& policy) {
      return policy_info(policy).find(list.param) != nullptr;
    });
    if (!list.typed || policies.empty() || has) continue;
    fail(ErrorCode::kUsage, "{} is not an option of policy {}", list.flag,
         fmt::join(policies, ", "));
  }
}

/// Whether a budget of `auto` is no budget of this policy.
bool lacks_auto_budget(const CacheSettings& settings, const std::string& policy) {
  const auto budget = settings.params.find("budget");
  const PolicyInfo& info = policy_info(policy);
  return budget != settings.params.end() && budget->second == PolicyValue(kAutoBudget) &&
         info.has_budget && info.find("least_attention") == nullptr;
}

/// Returns `base` with every value of every list in place of its own, the last list's values in
/// turn first.
std::vector<CacheSettings> with_lists(const CacheSettings& base,
                                      const std::vector<ParamList>& lists) {
  std::vector<CacheSettings> all = {base};
  for (const ParamList& list : lists) {
    if (list.values.empty()) continue;
    std::vector<CacheSettings> next;
    for (const CacheSettings& settings : all) {
      for (const PolicyValue& value : list.values) {
        next.push_back(settings);
        next.back().params[list.param] = value;
      }
    }
    all = std::move(next);
  }
  return all;
}

/// How rows are chosen again while an answer is written.
struct RefreshMode {
  bool refresh = false;
  int64_t beyond = 0;  // of EvalSettings::refresh_limits; 0: the cache options' limit
};

std::vector<RefreshMode> refresh_modes_of(const EvalSettings& settings) {
  std::vector<RefreshMode> modes;
  for (const int64_t beyond : settings.refresh_limits) modes.push_back({beyond > 0, beyond});
  for (const bool refresh : settings.refresh_modes) modes.push_back({refresh, 0});
  if (modes.empty()) modes.push_back({settings.cache.session.kv_refresh, 0});
  return modes;
}

void set_refresh_mode(const RefreshMode& mode, SessionOptions& options) {
  const bool has_budget = policy_info(options.kv.name).has_budget;
  options.kv_refresh = mode.refresh && has_budget;
  if (mode.beyond == 0 || !has_budget) return;
  if (options.kv.ratio > 0 || options.kv_memory > 0) {
    fail(ErrorCode::kUsage, "--refresh-limits {} needs a budget of rows, not {}", mode.beyond,
         options.kv.ratio > 0 ? "--kv-ratio" : "--kv-memory");
  }
  options.kv_decode_limit = options.kv.budget + mode.beyond;
}

}  // namespace

void include_full_cache(EvalSettings& settings) {
  std::vector<std::string>& policies = settings.policies;
  if (std::find(policies.begin(), policies.end(), "full") != policies.end()) return;
  policies.insert(policies.begin(), "full");
}

std::vector<SessionOptions> make_configurations(const EvalSettings& settings,
                                                const ModelInfo* model) {
  check_options_are_of_use(settings);
  const PolicyParams& params = settings.cache.params;
  const auto ratio = params.find("ratio");
  const bool has_budgets = std::any_of(
      settings.lists.begin(), settings.lists.end(),
      [](const ParamList& list) { return list.param == "budget" && !list.values.empty(); });
  if (has_budgets && ratio != params.end() && std::get<double>(ratio->second) > 0) {
    fail(ErrorCode::kUsage, "--budgets and --kv-ratio exclude each other");
  }
  std::vector<CacheSettings> combinations = with_lists(settings.cache, settings.lists);
  for (CacheSettings& cache : combinations) cache.typed_params.clear();  // which were checked
  const std::vector<RefreshMode> refresh_modes = refresh_modes_of(settings);
  std::vector<SessionOptions> all;
  for (const std::string& policy : settings.policies) {
    for (const CacheSettings& cache : combinations) {
      // in a list it is for the policies that have it
      if (has_budgets && lacks_auto_budget(cache, policy)) continue;
      const SessionOptions unrefreshed = session_options(cache, 0, {policy}, model).front();
      for (const RefreshMode& mode : refresh_modes) {
        SessionOptions options = unrefreshed;
        set_refresh_mode(mode, options);
        const auto same = [&](const SessionOptions& other) {
          return eval::configuration_json(other) == eval::configuration_json(options);
        };
        if (std::none_of(all.begin(), all.end(), same)) all.push_back(options);
      }
    }
  }
  if (all.empty()) {
    fail(ErrorCode::kUsage, "--budgets auto is for policy {}, not for {}", kDefaultPolicy,
         fmt::join(settings.policies, ", "));
  }
  return all;
}

EvalRun::EvalRun(const EvalSettings& settings, const CommonSettings& common)
    : html_(settings.html), display_(!common.no_progress, common.verbose) {
  if (!html_.empty()) eval::check_page(html_);
  // refuses invalid options before a model is loaded
  make_configurations(settings);
  if (settings.as_chat) settings.chat.variables();
  options_.question_agnostic = settings.question_agnostic;
  options_.keeps_full = settings.keeps_full;
  options_.seed = settings.seed;
  options_.model = load_model(settings.model, display_.callback());
  options_.configurations = make_configurations(settings, &model()->info());
  for (SessionOptions& o : options_.configurations) o = resolve_options(o, model()->info());
  options_.prefill_progress = display_.callback();
  options_.cancelled = interrupted;
  options_.progress = [this](int64_t done, int64_t total) {
    show_progress(fmt::format("prompt {} of {}", done + 1, total),
                  static_cast<double>(done) / static_cast<double>(total));
  };
  file_ = std::make_unique<eval::RecordFile>(settings.out, settings.resume);
  if (file_->repaired()) {
    write_stderr(fmt::format("snapkv: {}: its last line was torn and is cut off\n", settings.out));
  }
}

void EvalRun::check_length(int64_t n_tokens, int64_t n_predict) const {
  const int64_t n_ctx = model()->info().n_ctx_train;
  if (n_tokens + n_predict <= n_ctx) return;
  if (n_predict == 0) {
    fail(ErrorCode::kContextExceeded, "a length of {} tokens exceeds the model's context of {}",
         n_tokens, n_ctx);
  }
  fail(ErrorCode::kContextExceeded,
       "a length of {} and an answer of {} tokens exceed the model's context of {}", n_tokens,
       n_predict, n_ctx);
}

std::vector<eval::QaQuestion> EvalRun::join(const std::vector<eval::QaQuestion>& questions,
                                            int64_t n_tokens, int64_t n_predict) const {
  check_length(n_tokens, n_predict);
  return eval::join_texts(questions,
                          {.n_tokens = n_tokens, .count_tokens = [&](std::string_view text) {
                             return std::ssize(model()->tokenize(text, false, false));
                           }});
}

void EvalRun::ask(const std::vector<eval::Item>& items) {
  eval::run_items(options_, items, *file_);
  finish(eval::summary_table(options_, items, *file_));
}

void EvalRun::show_progress(const std::string& title, double fraction) {
  display_.set_title(title);
  display_.show_fraction(fraction, timer_.seconds());
}

void EvalRun::finish(const std::string& table) {
  display_.clear();
  try {
    write_page();
  } catch (...) {  // the table may be the only result of the run
    write_stdout(table);
    throw;
  }
  write_stdout(table);
}

void EvalRun::write_page() const {
  if (html_.empty()) return;
  eval::write_page(html_, eval::records_page("eval", file_->records()));
  write_stderr(fmt::format("snapkv: wrote {}\n", html_));
}

}  // namespace snapkv::cli
