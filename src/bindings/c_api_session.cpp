// SPDX-License-Identifier: MIT
// snapkv.h: sessions and answers.
#include <optional>
#include <utility>
#include <vector>

#include "bindings/c_api_engine.h"
#include "snapkv/generator.h"

struct snapkv_generator {
  snapkv_generator(std::shared_ptr<snapkv::Session> s, const snapkv::EngineOptions& options)
      : session(std::move(s)),
        sampler(options.sampler),
        generator(*session, sampler, options.answer) {}

  std::shared_ptr<snapkv::Session> session;
  snapkv::Sampler sampler;
  snapkv::Generator generator;
  std::string text;  // of the last step
};

namespace snapkv {
namespace {

Session& session_of(const snapkv_session* session) { return *given(session, "session").session; }

OrderedJson stats_json(const SessionStats& s) {
  OrderedJson layers = OrderedJson::array();
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
