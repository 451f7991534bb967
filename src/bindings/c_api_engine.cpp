// SPDX-License-Identifier: MIT
// snapkv.h, second part: models, sessions and answers.
#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/c_api_support.h"
#include "snapkv/chat.h"
#include "snapkv/engine.h"
#include "snapkv/generator.h"
#include "snapkv/grammar.h"
#include "snapkv/options.h"
#include "snapkv/prefill.h"

using Json = nlohmann::ordered_json;

struct snapkv_options {
  snapkv::EngineOptions options;
};

struct snapkv_model {
  std::shared_ptr<const snapkv::Model> model;
  /// Made once, with the first grammar.
  struct Vocabulary {
    std::once_flag made;
    std::shared_ptr<const snapkv::GrammarVocabulary> tokens;
  };
  std::shared_ptr<Vocabulary> vocabulary = std::make_shared<Vocabulary>();
};

struct snapkv_prefix {
  std::shared_ptr<const snapkv::Model> model;
  std::shared_ptr<const snapkv::KvPrefix> prefix;
};

struct snapkv_session {
  snapkv_model model;
  std::shared_ptr<snapkv::Session> session;
};

struct snapkv_generator {
  snapkv_generator(std::shared_ptr<snapkv::Session> s, const snapkv::EngineOptions& options)
      : session(std::move(s)), sampler(options.sampler), generator(*session, sampler, options.answer) {}

  std::shared_ptr<snapkv::Session> session;
  snapkv::Sampler sampler;
  snapkv::Generator generator;
  std::string text;  // of the last step
};

namespace snapkv {
namespace {

constexpr const char* kTokensName = "ids";

snapkv_text* new_text(std::string_view text) {
  auto result = std::make_unique<snapkv_text>();
  result->data = static_cast<char*>(std::malloc(text.size() + 1));
  if (result->data == nullptr) throw std::bad_alloc();
  std::memcpy(result->data, text.data(), text.size());
  result->data[text.size()] = '\0';
  result->n = text.size();
  return result.release();
}

/// JSON with U+FFFD for what is not UTF-8.
snapkv_text* new_json(const Json& json) {
  return new_text(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

snapkv_tokens* new_tokens(std::span<const int32_t> ids) {
  auto result = std::make_unique<snapkv_tokens>();
  result->ids = static_cast<int32_t*>(std::malloc(std::max<size_t>(1, ids.size_bytes())));
  if (result->ids == nullptr) throw std::bad_alloc();
  std::copy(ids.begin(), ids.end(), result->ids);
  result->n = ids.size();
  return result.release();
}

std::span<const int32_t> tokens_of(const int32_t* ids, size_t n) {
  if (n > 0) given(ids, kTokensName);
  return {ids, n};
}

std::string_view text_of(const char* text, const char* what) { return &given(text, what); }

ProgressFn progress_of(snapkv_progress_fn progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](const Progress& p) {
    return progress(user, p.phase == Phase::load ? "load" : "prefill", p.fraction) == 0;
  };
}

const Model& model_of(const snapkv_model* model) { return *given(model, "model").model; }

Session& session_of(const snapkv_session* session) { return *given(session, "session").session; }

/// The conversation as the model's own template writes it.
RenderedChat render(const Model& model, std::string_view variables) {
  const ModelChat chat = model.chat();
  const auto found = chat.templates.find("default");
  if (found == chat.templates.end()) {
    fail(ErrorCode::kUsage, "{}: the model has no chat template: it continues texts",
         model.info().path);
  }
  Json json = Json::parse(variables, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) fail(ErrorCode::kUsage, "variables: it must be a JSON object");
  const auto add = [&json](const char* name, Json value) {
    if (!json.contains(name)) json[name] = std::move(value);
  };
  add("add_generation_prompt", true);
  add("bos_token", chat.bos_token);
  add("eos_token", chat.eos_token);
  return ChatTemplate::parse(found->second, "chat template").render(json.dump());
}

Json info_json(const Model& model) {
  const ModelInfo& m = model.info();
  Json templates = Json::array();
  for (const auto& [name, source] : model.chat().templates) templates.push_back(name);
  return {{"path", m.path},
          {"architecture", m.architecture},
          {"name", m.name},
          {"file_type", m.file_type},
          {"tokenizer", m.tokenizer},
          {"n_layer", m.n_layer},
          {"n_embd", m.n_embd},
          {"n_ff", m.n_ff},
          {"n_vocab", m.n_vocab},
          {"n_ctx_train", m.n_ctx_train},
          {"n_head", m.n_head},
          {"n_head_kv", m.n_head_kv},
          {"head_dim", m.head_dim},
          {"n_params", m.n_params},
          {"weight_bytes", m.weight_bytes},
          {"backend", model.backend_description()},
          {"chat_templates", std::move(templates)}};
}

Json stats_json(const SessionStats& s) {
  Json layers = Json::array();
  for (const SessionStats::Layer& layer : s.layers) {
    layers.push_back({{"n_total", layer.n_total}, {"n_kept", layer.n_kept}});
  }
  return {{"n_prompt", s.n_prompt},
          {"n_decoded", s.n_decoded},
          {"prefill_seconds", s.prefill_seconds},
          {"decode_seconds", s.decode_seconds},
          {"kv_bytes_used", s.kv_bytes_used},
          {"kv_bytes_full", s.kv_bytes_full},
          {"kv_bytes_peak", s.kv_bytes_peak},
          {"compression", s.compression()},
          {"layers", std::move(layers)}};
}

std::shared_ptr<const KvPrefix> read_prefix(const std::shared_ptr<const Model>& model,
                                            const EngineOptions& options,
                                            std::span<const int32_t> ids, ProgressFn progress) {
  SessionOptions session_options = options.session;
  // the rows that count are the prefix's; what the session keeps beside them is of no use
  session_options.kv = {.name = "streaming-llm", .budget = 64};
  session_options.kv_memory = 0;
  session_options.kv_decode_limit = 0;
  Session session(model, session_options);
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens.assign(ids.begin(), ids.end());
  prompt.options.progress = std::move(progress);
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  return prefill.take_prefix();
}

/// Reads `ids` after the prefix. The policy's window needs tokens that are read, so the last ones of
/// the document may be read again.
void prefill_after(Session& session, const std::shared_ptr<const KvPrefix>& prefix,
                   std::span<const int32_t> ids, const ProgressFn& progress) {
  const std::span<const int32_t> document = prefix->tokens();
  std::vector<int32_t> all(document.begin(), document.end());
  all.insert(all.end(), ids.begin(), ids.end());
  const int64_t window = std::max(1, policy_window(session.options().kv));
  const int64_t n = std::min(std::ssize(document), std::ssize(all) - window);
  if (n < 1) return session.prefill(all, {.progress = progress});
  session.prefill(all, {.progress = progress, .prefix = prefix, .n_from_prefix = n});
}

std::optional<Grammar> grammar_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view source = text;
  const size_t begin = source.find_first_not_of(" \t\r\n");
  if (begin != std::string_view::npos && source[begin] == '{') {
    return Grammar::from_json_schema(source);
  }
  return Grammar::parse(source);
}

std::shared_ptr<const GrammarVocabulary> vocabulary_of(const snapkv_model& model) {
  snapkv_model::Vocabulary& vocabulary = *model.vocabulary;
  std::call_once(vocabulary.made, [&] {
    vocabulary.tokens = std::make_shared<const GrammarVocabulary>(model.model->tokenizer());
  });
  return vocabulary.tokens;
}

void step(snapkv_generator& g, snapkv_token& token) {
  token = {-1, "", 0, 0.0, 1};
  g.text.clear();
  if (g.generator.step()) {
    token.id = g.generator.token().id;
    g.text = g.generator.token().text;
    if (g.generator.token().logprobs) token.logprob = g.generator.token().logprobs->chosen.logprob;
  }
  g.text += g.generator.rest();
  token.text = g.text.c_str();
  token.n_text = g.text.size();
  token.is_last = g.generator.done() ? 1 : 0;
}

}  // namespace
}  // namespace snapkv

using namespace snapkv;  // NOLINT: the functions below are C's

void snapkv_text_free(snapkv_text* text) {
  if (text != nullptr) std::free(text->data);
  delete text;
}

void snapkv_tokens_free(snapkv_tokens* tokens) {
  if (tokens != nullptr) std::free(tokens->ids);
  delete tokens;
}

const char* snapkv_version(void) { return version(); }

int snapkv_error_code(void) { return last_error_code; }

// ---------------------------------------------------------------- options

snapkv_options* snapkv_options_new(void) {
  return guarded_pointer(nullptr, 0, [] { return new snapkv_options(); });
}

void snapkv_options_free(snapkv_options* options) { delete options; }

int snapkv_options_set(snapkv_options* options, const char* name, const char* value, char* error,
                       size_t error_size) {
  return guarded(error, error_size, [&] {
    set_option(given(options, "options").options, text_of(name, "name"), text_of(value, "value"));
  });
}

snapkv_text* snapkv_options_get(const snapkv_options* options, const char* name, char* error,
                                size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(option_text(given(options, "options").options, text_of(name, "name")));
  });
}

snapkv_text* snapkv_options_list(const char* policy, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(list_options_json(policy != nullptr ? policy : kDefaultPolicy));
  });
}

// ---------------------------------------------------------------- models

snapkv_model* snapkv_model_load(const snapkv_options* options, snapkv_progress_fn progress,
                                void* user, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    ModelOptions model = given(options, "options").options.model;
    model.progress = progress_of(progress, user);
    return new snapkv_model{Model::load(model)};
  });
}

void snapkv_model_free(snapkv_model* model) { delete model; }

snapkv_text* snapkv_model_info(const snapkv_model* model, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] { return new_json(info_json(model_of(model))); });
}

snapkv_tokens* snapkv_tokenize(const snapkv_model* model, const char* text, size_t n_text,
                               int add_special, int parse_special, char* error,
                               size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    if (n_text > 0) given(text, "text");
    return new_tokens(model_of(model).tokenize(std::string_view(text, n_text), add_special != 0,
                                               parse_special != 0));
  });
}

snapkv_text* snapkv_detokenize(const snapkv_model* model, const int32_t* ids, size_t n, char* error,
                               size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(std::string_view(model_of(model).detokenize(tokens_of(ids, n))));
  });
}

snapkv_text* snapkv_chat_text(const snapkv_model* model, const char* variables, char* error,
                              size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_text(
        std::string_view(render(model_of(model), text_of(variables, "variables")).text));
  });
}

snapkv_tokens* snapkv_chat_tokens(const snapkv_model* model, const char* variables, char* error,
                                  size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    const Model& m = model_of(model);
    return new_tokens(m.tokenize(render(m, text_of(variables, "variables"))));
  });
}

int snapkv_is_end_of_generation(const snapkv_model* model, int32_t id) {
  return model != nullptr && model->model->is_end_of_generation(id) ? 1 : 0;
}

// ---------------------------------------------------------------- documents

snapkv_prefix* snapkv_prefix_read(const snapkv_model* model, const snapkv_options* options,
                                  const int32_t* ids, size_t n, snapkv_progress_fn progress,
                                  void* user, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    const std::shared_ptr<const Model>& m = given(model, "model").model;
    return new snapkv_prefix{m, read_prefix(m, given(options, "options").options, tokens_of(ids, n),
                                            progress_of(progress, user))};
  });
}

snapkv_prefix* snapkv_prefix_load(const snapkv_model* model, const char* path, char* error,
                                  size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    const std::shared_ptr<const Model>& m = given(model, "model").model;
    return new snapkv_prefix{m, KvPrefix::load(m, std::string(text_of(path, "path")))};
  });
}

int snapkv_prefix_save(const snapkv_prefix* prefix, const char* path, int zstd_level, char* error,
                       size_t error_size) {
  return guarded(error, error_size, [&] {
    const snapkv_prefix& rows = given(prefix, "prefix");
    rows.prefix->save(std::string(text_of(path, "path")), stored_kv_type(rows.model->info()), {},
                      zstd_level);
  });
}

size_t snapkv_prefix_tokens(const snapkv_prefix* prefix) {
  return prefix != nullptr ? prefix->prefix->tokens().size() : 0;
}

void snapkv_prefix_free(snapkv_prefix* prefix) { delete prefix; }

// ---------------------------------------------------------------- sessions

snapkv_session* snapkv_session_new(const snapkv_model* model, const snapkv_options* options,
                                   char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    const snapkv_model& m = given(model, "model");
    return new snapkv_session{
        m, std::make_shared<Session>(m.model, given(options, "options").options.session)};
  });
}

void snapkv_session_free(snapkv_session* session) { delete session; }

int snapkv_prefill(snapkv_session* session, const int32_t* ids, size_t n,
                   snapkv_progress_fn progress, void* user, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    session_of(session).prefill(tokens_of(ids, n), {.progress = progress_of(progress, user)});
  });
}

int snapkv_prefill_after(snapkv_session* session, const snapkv_prefix* prefix, const int32_t* ids,
                         size_t n, snapkv_progress_fn progress, void* user, char* error,
                         size_t error_size) {
  return guarded(error, error_size, [&] {
    prefill_after(session_of(session), given(prefix, "prefix").prefix, tokens_of(ids, n),
                  progress_of(progress, user));
  });
}

int snapkv_decode(snapkv_session* const* sessions, const int32_t* ids, size_t n, char* error,
                  size_t error_size) {
  return guarded(error, error_size, [&] {
    std::vector<Session*> batch;
    if (n > 0) given(sessions, "sessions");
    for (size_t i = 0; i < n; ++i) batch.push_back(&session_of(sessions[i]));
    decode_batch(batch, tokens_of(ids, n));
  });
}

const float* snapkv_logits(const snapkv_session* session, size_t* n) {
  std::span<const float> logits;
  guarded(nullptr, 0, [&] { logits = session_of(session).logits(); });
  if (n != nullptr) *n = logits.size();
  return logits.data();
}

int64_t snapkv_n_past(const snapkv_session* session) {
  return session != nullptr ? session->session->n_past() : 0;
}

int64_t snapkv_n_ctx(const snapkv_session* session) {
  return session != nullptr ? session->session->n_ctx() : 0;
}

snapkv_tokens* snapkv_positions(const snapkv_session* session, int il, int head, char* error,
                                size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    return new_tokens(session_of(session).cached_positions(il, head));
  });
}

snapkv_text* snapkv_stats(const snapkv_session* session, char* error, size_t error_size) {
  return guarded_pointer(error, error_size,
                         [&] { return new_json(stats_json(session_of(session).stats())); });
}

int snapkv_session_reset(snapkv_session* session, char* error, size_t error_size) {
  return guarded(error, error_size, [&] { session_of(session).reset(); });
}

int snapkv_session_save(const snapkv_session* session, const char* path, char* error,
                        size_t error_size) {
  return guarded(error, error_size,
                 [&] { session_of(session).save(std::string(text_of(path, "path"))); });
}

int snapkv_session_load(snapkv_session* session, const char* path, char* error, size_t error_size) {
  return guarded(error, error_size,
                 [&] { session_of(session).load(std::string(text_of(path, "path"))); });
}

// ---------------------------------------------------------------- answers

snapkv_generator* snapkv_generator_new(snapkv_session* session, const snapkv_options* options,
                                       const char* grammar, const int32_t* history,
                                       size_t n_history, char* error, size_t error_size) {
  return guarded_pointer(error, error_size, [&] {
    auto g = std::make_unique<snapkv_generator>(given(session, "session").session,
                                                given(options, "options").options);
    if (session->session->logits().empty()) {
      fail(ErrorCode::kUsage, "session: it has read no prompt yet");
    }
    g->sampler.accept(tokens_of(history, n_history));
    if (const std::optional<Grammar> rules = grammar_of(grammar)) {
      g->sampler.set_grammar(GrammarMatcher(*rules, vocabulary_of(session->model)));
    }
    return g.release();
  });
}

void snapkv_generator_free(snapkv_generator* generator) { delete generator; }

int snapkv_generator_step(snapkv_generator* generator, snapkv_token* token, char* error,
                          size_t error_size) {
  return guarded(error, error_size,
                 [&] { step(given(generator, "generator"), given(token, "token")); });
}

const char* snapkv_generator_stop_reason(const snapkv_generator* generator) {
  if (generator == nullptr || !generator->generator.done()) return nullptr;
  return name(generator->generator.stop_reason()).data();  // a literal
}
