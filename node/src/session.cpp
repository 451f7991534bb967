// SPDX-License-Identifier: MIT
// The addon's functions of sessions and answers. The classes of lib/ see to it that a session has
// one call at a time.
#include <algorithm>

#include "handles.h"

namespace snapkv_node {
namespace {

using Session = Handle<snapkv_session>;

/// Tokens that a session has read, which JavaScript cannot ask for while a call runs.
int64_t n_past(const Session& session) { return snapkv_n_past(session.object.get()); }

/// newSession(model, options): a promise of a session.
Napi::Value new_session(const Napi::CallbackInfo& info) {
  const auto model = object_at<snapkv_model>(info, 0);
  const Options options = options_at(info, 1);
  return submit(info, model.engine, {.is_brief = true}, [model, options](Job&) {
    return Session{model.engine, owned(ErrorText::pointer([&](char* error, size_t size) {
                     return snapkv_session_new(model.object.get(), options.get(), error, size);
                   }))};
  });
}

/// contextSize(session): the most tokens that it may read.
Napi::Value context_size(const Napi::CallbackInfo& info) {
  return to_js(info.Env(), snapkv_n_ctx(object_at<snapkv_session>(info, 0).object.get()));
}

/// prefill(session, ids, control): a promise of n_past, as those below.
Napi::Value prefill(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  return submit(info, session.engine, job_at(info, 2), [session, ids = ids_at(info, 1)](Job& job) {
    ErrorText::check([&](char* error, size_t size) {
      return snapkv_prefill(session.object.get(), ids.data(), ids.size(), EngineThread::on_progress,
                            &job, error, size);
    });
    return n_past(session);
  });
}

/// prefillAfter(session, document, ids, control)
Napi::Value prefill_after(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  const auto document = object_at<snapkv_prefix>(info, 1);
  return submit(
      info, session.engine, job_at(info, 3), [session, document, ids = ids_at(info, 2)](Job& job) {
        ErrorText::check([&](char* error, size_t size) {
          return snapkv_prefill_after(session.object.get(), document.object.get(), ids.data(),
                                      ids.size(), EngineThread::on_progress, &job, error, size);
        });
        return n_past(session);
      });
}

/// decode(sessions, ids): a token each. The promise's value says nothing.
Napi::Value decode(const Napi::CallbackInfo& info) {
  const auto list = info[0].As<Napi::Array>();
  std::vector<Session> sessions;
  for (uint32_t i = 0; i < list.Length(); ++i) {
    sessions.push_back(*list.Get(i).As<Napi::External<Session>>().Data());
    if (!sessions.back().object) {
      throw new_error(info.Env(), {SNAPKV_ERROR_USAGE, "the session has been freed"}, "session");
    }
  }
  if (sessions.empty()) throw new_error(info.Env(), {SNAPKV_ERROR_USAGE, "decode: no sessions"});
  const auto engine = sessions.front().engine;
  return submit(info, engine, {.is_brief = true}, [sessions, ids = ids_at(info, 1)](Job&) {
    std::vector<snapkv_session*> batch;
    for (const Session& session : sessions) batch.push_back(session.object.get());
    ErrorText::check([&](char* error, size_t size) {
      return snapkv_decode(batch.data(), ids.data(), batch.size(), error, size);
    });
    return static_cast<int64_t>(batch.size());
  });
}

Napi::Value floats(Napi::Env env, const std::vector<float>& values) {
  auto array = Napi::Float32Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

/// logits(session): a promise of a Float32Array [n_vocab], empty before the first prompt.
Napi::Value logits(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  const auto values = std::make_shared<std::vector<float>>();
  Job job{.is_brief = true};
  job.work = [session, values](Job&) {
    size_t n = 0;
    const float* first = snapkv_logits(session.object.get(), &n);
    values->assign(first, first + n);
  };
  job.result = [values](Napi::Env env) { return floats(env, *values); };
  return session.engine->submit(info.Env(), std::move(job));
}

/// positions(session, layer, head): a promise of ids.
Napi::Value positions(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  return submit(info, session.engine, {.is_brief = true},
                [session, il = info[1].ToNumber().Int32Value(),
                 head = info[2].ToNumber().Int32Value()](Job&) {
                  return take_tokens(ErrorText::pointer([&](char* error, size_t size) {
                    return snapkv_positions(session.object.get(), il, head, error, size);
                  }));
                });
}

/// stats(session): a promise of JSON.
Napi::Value stats(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  return submit(info, session.engine, {.is_brief = true}, [session](Job&) {
    return take_text(ErrorText::pointer(
        [&](char* error, size_t size) { return snapkv_stats(session.object.get(), error, size); }));
  });
}

/// resetSession(session)
Napi::Value reset(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  return submit(info, session.engine, {.is_brief = true}, [session](Job&) {
    ErrorText::check([&](char* error, size_t size) {
      return snapkv_session_reset(session.object.get(), error, size);
    });
    return n_past(session);
  });
}

/// saveSession(session, path) and loadSession(session, path)
template <auto function>
Napi::Value with_file(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  return submit(info, session.engine, {}, [session, path = string_at(info, 1)](Job&) {
    ErrorText::check([&](char* error, size_t size) {
      return function(session.object.get(), path.c_str(), error, size);
    });
    return n_past(session);
  });
}

// ---------------------------------------------------------------- answers

/// newAnswer(session, options, grammar or null, history): a promise of an answer.
Napi::Value new_answer(const Napi::CallbackInfo& info) {
  const auto session = object_at<snapkv_session>(info, 0);
  const bool has_grammar = info[2].IsString();
  return submit(info, session.engine, {.is_brief = true},
                [session, options = options_at(info, 1), has_grammar,
                 grammar = has_grammar ? string_at(info, 2) : "", history = ids_at(info, 3)](Job&) {
                  return Handle<snapkv_generator>{
                      session.engine, owned(ErrorText::pointer([&](char* error, size_t size) {
                        return snapkv_generator_new(session.object.get(), options.get(),
                                                    has_grammar ? grammar.c_str() : nullptr,
                                                    history.data(), history.size(), error, size);
                      }))};
                });
}

/// Tokens up to the next piece of text, or to the end of the answer.
struct Piece {
  std::vector<int32_t> ids;
  std::vector<double> logprobs;  // of ids
  std::string text;
  const char* stop_reason = nullptr;  // static
  bool is_last = false;
};

Piece next_piece(snapkv_generator* generator, const Job& job) {
  Piece piece;
  while (piece.text.empty() && !piece.is_last) {
    if (job.cancel && job.cancel->requested) {
      throw Failure{SNAPKV_ERROR_CANCELLED, "the answer was cancelled"};
    }
    snapkv_token token;
    ErrorText::check([&](char* error, size_t size) {
      return snapkv_generator_step(generator, &token, error, size);
    });
    if (token.id >= 0) {
      piece.ids.push_back(token.id);
      piece.logprobs.push_back(token.logprob);
    }
    piece.text.assign(token.text, token.n_text);
    piece.is_last = token.is_last != 0;
  }
  piece.stop_reason = snapkv_generator_stop_reason(generator);
  return piece;
}

Napi::Value piece_object(Napi::Env env, const Piece& piece, int64_t n_past) {
  auto object = Napi::Object::New(env);
  auto logprobs = Napi::Array::New(env, piece.logprobs.size());
  for (uint32_t i = 0; i < piece.logprobs.size(); ++i) logprobs.Set(i, piece.logprobs[i]);
  object.Set("ids", to_js(env, piece.ids));
  object.Set("logprobs", logprobs);
  object.Set("text", piece.text);
  object.Set("stopReason",
             piece.stop_reason != nullptr ? Napi::String::New(env, piece.stop_reason) : env.Null());
  object.Set("nPast", static_cast<double>(n_past));
  return object;
}

/// nextPiece(answer, session, control): a promise of {ids, logprobs, text, stopReason, nPast}.
Napi::Value next_piece_of(const Napi::CallbackInfo& info) {
  const auto answer = object_at<snapkv_generator>(info, 0);
  const auto session = object_at<snapkv_session>(info, 1);
  const auto piece = std::make_shared<std::pair<Piece, int64_t>>();
  Job job = job_at(info, 2);
  job.is_brief = true;
  job.work = [answer, session, piece](Job& self) {
    *piece = {next_piece(answer.object.get(), self), n_past(session)};
  };
  job.result = [piece](Napi::Env env) { return piece_object(env, piece->first, piece->second); };
  return answer.engine->submit(info.Env(), std::move(job));
}

}  // namespace

void add_session_functions(Napi::Env env, Napi::Object exports) {
  const auto add = [&](const char* name, Napi::Value (*function)(const Napi::CallbackInfo&)) {
    exports.Set(name, Napi::Function::New(env, function, name));
  };
  add("newSession", new_session);
  add("contextSize", context_size);
  add("prefill", prefill);
  add("prefillAfter", prefill_after);
  add("decode", decode);
  add("logits", logits);
  add("positions", positions);
  add("stats", stats);
  add("resetSession", reset);
  add("saveSession", with_file<snapkv_session_save>);
  add("loadSession", with_file<snapkv_session_load>);
  add("newAnswer", new_answer);
  add("nextPiece", next_piece_of);
}

}  // namespace snapkv_node
