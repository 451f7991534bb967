// SPDX-License-Identifier: MIT
// snapkv explain: reads a prompt and shows, step by step and with its tokens, how SnapKV chooses
// the rows of one KV head. The votes come from the engine (AttentionProbe); the ranking is repeated
// here and must match what the engine kept.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/chat_settings.h"
#include "cli/common/plain_text.h"
#include "cli/common/progress.h"
#include "cli/common/prompt_length.h"
#include "cli/common/prompt_settings.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/demo/needle_model.h"
#include "cli/explain/view.h"

namespace snapkv::cli {
namespace {

struct ExplainSettings {
  ModelSettings model;
  CacheSettings cache = needle_cache_defaults();
  PromptSettings prompt;
  bool as_chat = false;
  ChatSettings chat;
  int64_t length = 300;
  uint64_t seed = 1;
  int layer = -1;
  int head = -1;
  int64_t n_rows = 24;
  bool ascii = false;
  CLI::Option* budget_option = nullptr;
};

/// Collects the rankings of every layer and KV head while the prompt is read: the kept positions of
/// all of them, and all values of the head to show.
class Rankings {
 public:
  Rankings(const ExplainSettings& s, const ModelInfo& info, const SnapKvRule& kv, int64_t n_tokens)
      : layer_(s.layer), head_(s.head), layers_(info.layers), kv_(kv), n_tokens_(n_tokens) {
    probe_.ranges = {{n_tokens - kv.window_size, n_tokens}};
    probe_.report = [this](const AttentionProbe::Report& r) { add(r); };
  }
  Rankings(const Rankings&) = delete;
  Rankings& operator=(const Rankings&) = delete;

  const AttentionProbe& probe() const { return probe_; }
  HeadRanking take_shown() { return std::move(shown_); }

  /// Throws kRuntime unless the session kept the window and the positions that rank highest here.
  void check(const Session& session) const {
    for (size_t il = 0; il < kept_.size(); ++il) {
      for (size_t g = 0; g < kept_[il].size(); ++g) {
        std::vector<int32_t> expected = kept_[il][g];
        for (int64_t t = n_tokens_ - kv_.window_size; t < n_tokens_; ++t) {
          expected.push_back(static_cast<int32_t>(t));
        }
        const auto kept = session.cached_positions(static_cast<int>(il), static_cast<int>(g));
        if (kept == expected) continue;
        fail(ErrorCode::kRuntime,
             "layer {}, KV head {}: the engine kept {} rows, ranking its votes gives {}, and they "
             "are not the same: this explanation would be wrong",
             il, g, kept.size(), expected.size());
      }
    }
  }

 private:
  /// The layers that see the rows of layer il, whose queries all vote for them.
  std::vector<int> readers(int il) const {
    std::vector<int> all = {il};
    for (int other = il + 1; other < std::ssize(layers_); ++other) {
      if (layers_[other].rows_of == il) all.push_back(other);
    }
    return all;
  }

  void add(const AttentionProbe::Report& report) {
    const int own = layers_[report.il].rows_of;
    const int il = own >= 0 ? own : report.il;
    const int64_t n_head_kv = layers_[il].n_head_kv;
    const int64_t n_group = report.n_head / n_head_kv;
    kept_.resize(std::max<size_t>(kept_.size(), report.il + 1));
    if (!layers_[il].compressed) return;  // it keeps its window, whatever the votes
    std::vector<std::vector<float>>& groups = sums_[il];
    groups.resize(n_head_kv);
    for (int64_t g = 0; g < n_head_kv; ++g) {
      const auto sums = report.sums.subspan(static_cast<size_t>(g * n_group * n_tokens_),
                                            static_cast<size_t>(n_group * n_tokens_));
      groups[g].insert(groups[g].end(), sums.begin(), sums.end());
    }
    if (readers(il).back() == report.il) rank(il);
  }

  void rank(int il) {
    const std::vector<std::vector<float>> groups = std::move(sums_[il]);
    sums_.erase(il);
    for (size_t g = 0; g < groups.size(); ++g) {
      const int64_t n_group = std::ssize(groups[g]) / n_tokens_;
      HeadRanking ranking = rank_head(kv_, groups[g], n_group, n_tokens_);
      ranking.il = il;
      ranking.head = static_cast<int>(g);
      kept_[il].push_back(ranking.kept);
      const bool asked =
          (layer_ < 0 || layer_ == ranking.il) && (head_ < 0 || head_ == ranking.head);
      if (!asked || (!shown_.votes.empty() && peak_vote(ranking) <= peak_vote(shown_))) continue;
      shown_ = std::move(ranking);
    }
  }

  const int layer_, head_;  // head to show; negative: the one with the highest peak
  const std::vector<LayerInfo> layers_;
  const SnapKvRule kv_;
  const int64_t n_tokens_;
  AttentionProbe probe_;
  HeadRanking shown_;
  // by layer, [n_head_kv][n_group, n_tokens] of the layers so far that see its rows
  std::map<int, std::vector<std::vector<float>>> sums_;
  // [n_layer][n_head_kv] positions in the prefix; no heads in layers where no policy chooses
  std::vector<std::vector<std::vector<int32_t>>> kept_;
};

void check_settings(const ExplainSettings& s) {
  if (s.cache.policy != "snapkv") {
    fail(ErrorCode::kUsage, "explain shows the steps of snapkv; --kv-policy is {}", s.cache.policy);
  }
  const auto critical = s.cache.params.find("critical");
  if (critical != s.cache.params.end() && std::get<bool>(critical->second)) {
    fail(ErrorCode::kUsage, "explain shows the steps of snapkv alone, without --kv-critical");
  }
  if (!s.as_chat) return;
  if (!s.prompt.is_given()) {
    fail(ErrorCode::kUsage,
         "--chat: no prompt: give the user's message as -p TEXT or as -f FILE (- for stdin)");
  }
  s.chat.variables();
}

void check_place(const ExplainSettings& s, const ModelInfo& info) {
  const auto check = [&](const char* option, int value, int64_t n, const char* what) {
    if (value < n) return;
    fail(ErrorCode::kUsage, "{} is {}, but the model has {} {}, 0 to {}", option, value, n, what,
         n - 1);
  };
  check("--layer", s.layer, info.n_layer, "layers");
  if (s.layer >= 0 && info.layers[s.layer].attention == AttentionKind::none) {
    fail(ErrorCode::kUsage, "--layer is {}, which has no attention: it keeps no rows", s.layer);
  }
  if (info.n_head == 0) {
    fail(ErrorCode::kUsage, "{} has no attention: there are no rows to choose from", info.path);
  }
  if (info.n_compressed() == 0) {
    fail(ErrorCode::kUsage,
         "every layer of {} has a sliding window or chunks: SnapKV chooses nothing here",
         info.path);
  }
  if (s.layer >= 0 && info.layers[s.layer].rows_of >= 0) {
    fail(ErrorCode::kUsage,
         "--layer is {}, which has no rows of its own: it reads those of layer {}", s.layer,
         info.layers[s.layer].rows_of);
  }
  if (s.layer >= 0 && !info.layers[s.layer].compressed) {
    fail(ErrorCode::kUsage,
         "--layer is {}, whose attention has {} of {} tokens: it keeps those, and SnapKV chooses "
         "nothing there",
         s.layer,
         info.layers[s.layer].attention == AttentionKind::chunked ? "chunks" : "a sliding window",
         info.layers[s.layer].window);
  }
  check("--head", s.head, info.n_head_kv, "KV heads");
}

/// Replaces a ratio, or a missing budget, by a number of rows.
void settle_budget(const ExplainSettings& s, int64_t n_tokens, Explanation& e) {
  PolicyConfig& kv = e.session.kv;
  const int64_t least = policy_window(kv) + std::get<int64_t>(policy_value(kv, "sinks")) + 1;
  if (e.session.kv_memory > 0) {
    e.budget_reason = "what --kv-memory " + format_bytes(e.session.kv_memory) + " holds";
  } else if (kv.ratio > 0) {
    e.budget_reason = fmt::format("{:g}% of the prompt", 100 * kv.ratio);
    const double share = kv.ratio * static_cast<double>(n_tokens) * (1 + 1e-12);  // as the policy
    kv.budget = std::max(least, static_cast<int64_t>(share));
    kv.ratio = 0;
  } else if (s.budget_option->count() == 0) {
    e.budget_reason = "a quarter of the prompt; --kv-budget sets it";
    kv.budget = std::max(least, n_tokens / 4);
  }
}

std::vector<int32_t> prompt_tokens(const ExplainSettings& s, const Model& model) {
  if (s.prompt.is_given()) {
    const std::string prompt = s.prompt.read();
    refuse_hopeless_length(model, prompt, 0);
    return s.as_chat ? s.chat.tokenize(model, model.info().path, prompt) : model.tokenize(prompt);
  }
  return make_needle_prompt(model, {.length = s.length, .name = {}, .seed = s.seed}).tokens;
}

int run_explain(const ExplainSettings& s, const CommonSettings& common) {
  check_settings(s);
  session_options(s.cache, 0);  // refuses invalid options before a model is loaded
  Explanation e;
  ProgressDisplay progress(!common.no_progress, common.verbose);
  const std::shared_ptr<const Model> model = load_needle_model(s.model, progress.callback());
  e.model = model->info();
  e.session = resolve_options(session_options(s.cache, 0, &e.model), e.model);
  check_place(s, e.model);
  const std::vector<int32_t> tokens = prompt_tokens(s, *model);
  if (tokens.empty()) fail(ErrorCode::kUsage, "the prompt is empty");
  const int64_t n_tokens = std::ssize(tokens);
  refuse_beyond_context(e.model, n_tokens, 0);
  settle_budget(s, n_tokens, e);
  if (n_tokens <= e.session.kv.budget) {
    progress.clear();
    write_stdout(show_nothing_dropped(n_tokens, e.session.kv.budget));
    return 0;
  }
  for (const int32_t id : tokens) e.pieces.push_back(model->piece(id, true));
  Rankings rankings(s, e.model, SnapKvRule(e.session.kv), n_tokens);
  Session session(model, e.session);
  session.prefill(tokens, {.progress = progress.callback(), .probe = &rankings.probe()});
  rankings.check(session);
  if (s.head < 0) e.chosen_of = s.layer < 0 ? "all heads" : "this layer's heads";
  if (s.head >= 0 && s.layer < 0) e.chosen_of = "this head in all layers";
  e.shown = rankings.take_shown();
  e.stats = session.stats();
  progress.clear();
  write_styled_stdout(show_explanation(e, {.utf8 = !s.ascii && locale_is_utf8(),
                                           .colour = colour_stdout(),
                                           .width = std::clamp(terminal_width(), 60, 120),
                                           .n_rows = s.n_rows}));
  return 0;
}

}  // namespace

Command add_explain_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<ExplainSettings>();
  CLI::App* app =
      root.add_subcommand("explain", "Show how SnapKV chooses what is kept of a prompt");
  s->cache.policy = "snapkv";  // whose steps these are, whatever the other commands use
  s->prompt.add_options(*app, PromptSettings::Parts::document_and_question);
  s->chat.add_prompt_options(*app, s->as_chat);
  app->add_option("--length", s->length, "Without a prompt: tokens of the demo's text")
      ->check(whole_number(1, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--seed", s->seed, "Without a prompt: another seed, another text")
      ->check(seed_number())
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--layer", s->layer, "The layer to show, from 0 [default: chosen, and said]")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N");
  app->add_option("--head", s->head, "The KV head to show, from 0 [default: chosen, and said]")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N");
  app->add_option("--rows", s->n_rows, "Tokens in the table of votes, or a few more")
      ->check(whole_number(1, kMostTokens))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--ascii", s->ascii, "Draw in ASCII [default: where the locale is not UTF-8]");
  add_model_argument(*app, s->model);
  add_running_options(*app, s->model);
  add_cache_options(*app, s->cache);
  s->budget_option = app->get_option("--kv-budget");
  s->budget_option->default_str("a quarter of the prompt");
  return {app, [s, &common] { return run_explain(*s, common); }};
}

}  // namespace snapkv::cli
