// SPDX-License-Identifier: MIT
// Helpers for the tests of the scheduler: requests to the needle model, and their results.
#pragma once

#include <gtest/gtest.h>

#include <thread>

#include "server/scheduler/scheduler.h"
#include "snapkv/text_stream.h"
#include "tests/support/test_models.h"

namespace snapkv::server {

using namespace std::chrono_literals;

/// The time to wait for an update that must come.
#if defined(SNAPKV_SANITIZED)
constexpr auto kPatience = 600s;  // a prompt may take a minute
#else
constexpr auto kPatience = 60s;
#endif

/// Everything that came back for one request.
struct Result {
  std::vector<std::string> texts;
  std::vector<AnswerEnd> ends;  // [n], in the order of the choices
  std::optional<PromptRead> read;
  std::optional<Failure> failure;
  std::vector<PromptProgress> progress;
};

inline Result wait_for(RequestUpdates& updates, int n = 1) {
  Result result;
  result.texts.resize(static_cast<size_t>(n));
  result.ends.resize(static_cast<size_t>(n));
  for (int n_ended = 0; n_ended < n && !result.failure;) {
    std::optional<Update> update = updates.next(kPatience);
    if (!update) {
      ADD_FAILURE() << "nothing came for " << kPatience.count() << " seconds";
      return result;
    }
    if (const auto* read = std::get_if<PromptRead>(&*update)) result.read = *read;
    if (const auto* progress = std::get_if<PromptProgress>(&*update)) {
      result.progress.push_back(*progress);
    }
    if (const auto* part = std::get_if<AnswerPart>(&*update)) {
      result.texts[part->choice] += part->text;
    }
    if (const auto* end = std::get_if<AnswerEnd>(&*update)) {
      result.ends[end->choice] = *end;
      ++n_ended;
    }
    if (const auto* failure = std::get_if<Failure>(&*update)) result.failure = *failure;
  }
  return result;
}

inline std::shared_ptr<const Model> model() { return test::load_model("needle"); }

inline SchedulerOptions options_of(Reuse reuse = Reuse::off) {
  SchedulerOptions options;
  options.session.chunk = 64;
  options.reuse = reuse;
  options.kv_memory = size_t{512} << 20;
  options.prefix_cache = reuse == Reuse::refresh ? size_t{128} << 20 : 0;
  return options;
}

inline std::string long_text(int n_words, int seed = 0) {
  std::string text;
  for (int i = 0; i < n_words; ++i) text += "word" + std::to_string((i * 7 + seed) % 97) + " ";
  return text;
}

inline Request request_of(const std::string& text, int64_t max_tokens = 12) {
  Request request;
  request.id = "test";
  request.prompt.chat.text = text;
  request.prompt.tokens = model()->tokenize(request.prompt.chat);
  request.session.kv.budget = 64;
  request.session.kv.window_size = 16;
  request.sampler.temperature = 0;
  request.max_tokens = max_tokens;
  return request;
}

/// The request's answer from a session that has read its prompt.
inline std::string written(Session& session, const Request& request) {
  Sampler sampler(request.sampler);
  sampler.accept(request.prompt.tokens);
  TextStream stream(request.stops);
  std::string text;
  for (int64_t i = 0; i < request.max_tokens && !stream.stopped(); ++i) {
    const int32_t id = sampler.sample(session.logits());
    if (model()->is_end_of_generation(id)) break;
    text += stream.push(model()->piece(id));
    session.decode(id);
  }
  return text + stream.finish();
}

/// The request's answer from a session of its own.
inline std::string alone(const Request& request) {
  Session session(model(), request.session);
  session.prefill(request.prompt.tokens);
  return written(session, request);
}

inline void expect_nothing_runs(const Scheduler& scheduler) {
  for (int i = 0; i < 500 && !scheduler.idle(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(scheduler.idle());
  EXPECT_EQ(scheduler.stats().bytes_running, 0u);
}

inline Refused::Kind refusal(Scheduler& scheduler, const Request& request,
                             std::string* message = nullptr) {
  try {
    scheduler.submit(request);
  } catch (const Refused& e) {
    if (message != nullptr) *message = e.what();
    return e.kind;
  }
  ADD_FAILURE() << "not refused";
  return {};
}

}  // namespace snapkv::server
