// SPDX-License-Identifier: MIT
// The scheduler: every answer is the one that its request gets alone, whatever else is computed;
// text that was read is not read again; memory is reserved before it is used, and is freed.
#include "server/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "chat/answer_watch.h"
#include "chat/tools.h"
#include "snapkv/sampler.h"
#include "tests/server/scheduler_support.h"
#include "tests/support/expect_error.h"

namespace snapkv::server {
namespace {

TEST(Scheduler, AnAnswerIsThatOfASession) {
  Scheduler scheduler(model(), options_of());
  const Request request = request_of(long_text(200));
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_FALSE(result.failure);
  EXPECT_EQ(result.texts[0], alone(request));
  EXPECT_EQ(result.ends[0].n_generated, 12);
  EXPECT_EQ(result.ends[0].reason, FinishReason::length);
  ASSERT_TRUE(result.read);
  EXPECT_EQ(result.read->n_tokens, std::ssize(request.prompt.tokens));
  EXPECT_EQ(result.read->kv.policy, "snapkv");
  EXPECT_EQ(result.read->kv.tokens_before, result.read->n_tokens);
  EXPECT_EQ(result.read->kv.tokens_kept, 64);
  EXPECT_LT(result.read->kv.bytes_after, result.read->kv.bytes_before);
  EXPECT_TRUE(result.read->kv.positions.empty());
  expect_nothing_runs(scheduler);
  EXPECT_EQ(scheduler.stats().n_generated_tokens, 12);
}

TEST(Scheduler, AllRowsCheckWhatKeptRowsGuess) {
  for (const Reuse reuse : {Reuse::off, Reuse::refresh, Reuse::append}) {
    Scheduler scheduler(model(), options_of(reuse));
    std::string text = long_text(200);
    for (int turn = 0; turn < 3; ++turn) {
      Request request = request_of(text, 12);
      request.ignore_eos = true;
      Request full = request_of(text, 12);
      full.ignore_eos = true;
      full.session.kv.name = "full";
      request.session.draft = Draft::self;
      request.session.draft_min = 3;
      const Result result = wait_for(*scheduler.submit(request));
      ASSERT_FALSE(result.failure) << result.failure->message;
      EXPECT_EQ(result.texts[0], alone(full)) << turn;
      EXPECT_GT(result.ends[0].n_drafted, 0);
      EXPECT_EQ(result.read->kv.tokens_kept, 64);
      text += result.texts[0] + long_text(20, turn);
    }
    expect_nothing_runs(scheduler);
  }
}

TEST(Scheduler, ASmallerModelGuessesForAnswersOfABatch) {
  const auto guessing = Model::load({.path = model()->info().path,
                                     .device = "cpu",
                                     .compute = Compute::f32,
                                     .n_threads = 1,
                                     .draft_model = model()->info().path});
  for (const Reuse reuse : {Reuse::off, Reuse::append}) {
    Scheduler scheduler(guessing, options_of(reuse));
    std::vector<Request> requests;
    std::vector<std::shared_ptr<RequestUpdates>> answers;
    for (int i = 0; i < 3; ++i) {
      Request request = request_of(long_text(60 + 40 * i, i), 20);
      request.ignore_eos = true;
      requests.push_back(request);
      request.session.draft = Draft::model;
      request.session.draft_min = 3;
      answers.push_back(scheduler.submit(request));
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      const Result result = wait_for(*answers[i]);
      ASSERT_FALSE(result.failure) << result.failure->message;
      EXPECT_EQ(result.texts[0], alone(requests[i])) << i;
      EXPECT_GT(result.ends[0].n_accepted, 0) << i;
    }
    expect_nothing_runs(scheduler);
  }
  Scheduler without(model(), options_of());
  Request request = request_of(long_text(60), 20);
  request.session.draft = Draft::model;
  EXPECT_THROW(without.submit(request), Refused);
}

TEST(Scheduler, AllRowsAreTheAnswerOfAPolicyThatKeepsThem) {
  SchedulerOptions options = options_of();
  Scheduler scheduler(model(), options);
  Request request = request_of(long_text(100));
  request.session.kv.name = "full";
  const std::string expected = alone(request);
  request.session.draft = Draft::self;
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.texts[0], expected);
}

TEST(Scheduler, ManyAtOnceGetTheirOwnAnswers) {
  for (const Reuse reuse : {Reuse::off, Reuse::refresh, Reuse::append}) {
    Scheduler scheduler(model(), options_of(reuse));
    std::vector<Request> requests;
    for (int i = 0; i < 24; ++i) {
      Request request = request_of(long_text(i % 3 == 0 ? 3 : 40 + 9 * i, i), 6 + i);
      if (i % 4 == 1) request.session.kv.name = "streaming-llm";
      if (i % 4 == 2) request.session.kv.name = "full";
      requests.push_back(std::move(request));
    }
    std::vector<std::shared_ptr<RequestUpdates>> generations;
    for (const Request& request : requests) generations.push_back(scheduler.submit(request));
    for (size_t i = 0; i < requests.size(); ++i) {
      const Result result = wait_for(*generations[i]);
      ASSERT_FALSE(result.failure) << result.failure->message;
      EXPECT_EQ(result.texts[0], alone(requests[i])) << i;
    }
    expect_nothing_runs(scheduler);
  }
}

TEST(Scheduler, SeveralAnswersToOnePrompt) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(120));
  request.sampler.temperature = 1;
  request.n = 3;
  for (const int64_t seed : {5, -2}) {
    request.sampler.seed = seed;
    const Result result = wait_for(*scheduler.submit(request), 3);
    ASSERT_FALSE(result.failure);
    for (int i = 0; i < 3; ++i) {
      Request one = request;
      one.n = 1;
      one.sampler.seed = seed < 0 ? seed - i : seed + i;
      EXPECT_EQ(result.texts[static_cast<size_t>(i)], alone(one)) << seed << ", " << i;
    }
    EXPECT_NE(result.texts[0], result.texts[1]);
  }
}

TEST(Scheduler, NoTokensAreWrittenWhereNoneAreWanted) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(60), 0);
  request.n = 2;
  const Result result = wait_for(*scheduler.submit(request), 2);
  ASSERT_FALSE(result.failure);
  EXPECT_EQ(result.read->n_tokens, std::ssize(request.prompt.tokens));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(result.texts[i], "");
    EXPECT_EQ(result.ends[i].reason, FinishReason::length);
    EXPECT_EQ(result.ends[i].n_generated, 0);
  }
  expect_nothing_runs(scheduler);
  EXPECT_EQ(scheduler.stats().n_generated_tokens, 0);
}

TEST(Scheduler, StopsAtStopStrings) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(60), 30);
  const std::string whole = alone(request);
  request.stops = {whole.substr(whole.size() / 2, 3)};
  const Result result = wait_for(*scheduler.submit(request));
  EXPECT_EQ(result.texts[0], alone(request));
  EXPECT_EQ(result.ends[0].reason, FinishReason::stop);
  EXPECT_EQ(result.ends[0].stop, request.stops[0]);
}

// Each answer has its own finder, and ends after the part at which its finder says so.
TEST(Scheduler, StopsWhereItsRequestFindsTheEnd) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(60), 30);
  const std::string whole = alone(request);
  const size_t n_bytes = whole.size() / 2;
  request.n = 2;
  request.make_watch = [n_bytes] {
    return [seen = size_t{0}, n_bytes](std::string_view text) mutable {
      seen += text.size();
      return Watched{.ends = seen >= n_bytes, .begun_call = {}};
    };
  };
  const Result result = wait_for(*scheduler.submit(request), 2);
  ASSERT_FALSE(result.failure);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(whole.starts_with(result.texts[i])) << result.texts[i];
    EXPECT_GE(result.texts[i].size(), n_bytes);
    EXPECT_LT(result.ends[i].n_generated, 30);
    EXPECT_EQ(result.ends[i].reason, FinishReason::stop);
    EXPECT_EQ(result.ends[i].stop, "");
  }
}

TEST(Scheduler, AConversationGoesOnFromItsCompressedCache) {
  Scheduler scheduler(model(), options_of(Reuse::append));
  const Request first = request_of(long_text(300));
  const Result one = wait_for(*scheduler.submit(first));
  const Request second = request_of(long_text(300) + one.texts[0] + " and what then?");
  const Result two = wait_for(*scheduler.submit(second));
  ASSERT_FALSE(two.failure);
  EXPECT_GT(two.read->n_reused, 800);
  EXPECT_LT(two.read->n_tokens - two.read->n_reused, 40);
  ASSERT_EQ(scheduler.slots().size(), 1u);  // the same conversation
  EXPECT_EQ(scheduler.slots()[0].state, SlotInfo::State::kept);

  Request other = second;  // with another budget it is another conversation
  other.session.kv.budget = 100;
  EXPECT_EQ(wait_for(*scheduler.submit(other)).read->n_reused, 0);
}

/// A chat with the user message `said`, followed by the control token </s>.
Request chat_request(const std::string& said, const std::string& rest = "") {
  Request request = request_of("x");
  RenderedChat& chat = request.prompt.chat;
  chat.text = "user: " + said + "</s> assistant:";
  chat.input = {{6, 6 + said.size()}};
  if (!rest.empty()) {
    chat.input.push_back({chat.text.size(), chat.text.size() + rest.size()});
    chat.text += rest;
  }
  request.prompt.tokens = model()->tokenize(chat);
  return request;
}

TEST(Scheduler, ATextThatSpellsControlTokensIsNotTheConversationThatHasThem) {
  const std::string words = long_text(60);
  for (const bool through_file : {false, true}) {
    Scheduler scheduler(model(), options_of(Reuse::append));
    const Result one = wait_for(*scheduler.submit(chat_request(words)));
    expect_nothing_runs(scheduler);
    if (through_file) {
      const std::string path = ::testing::TempDir() + "spelled.slot";
      const int64_t id = scheduler.slots().at(0).id;
      scheduler.save_slot(id, path);
      scheduler.erase_slot(id);
      scheduler.restore_slot(path);
    }
    // The same bytes as a single message of the user.
    const Request spelled = chat_request(words + "</s> assistant:" + one.texts[0] + " so?");
    ASSERT_TRUE(
        spelled.prompt.chat.text.starts_with(chat_request(words).prompt.chat.text + one.texts[0]));
    const Result other = wait_for(*scheduler.submit(spelled));
    EXPECT_EQ(other.read->n_reused, 0);
    EXPECT_EQ(other.texts[0], alone(spelled));
    // The conversation itself.
    const Request next = chat_request(words, one.texts[0] + " so?");
    EXPECT_GT(wait_for(*scheduler.submit(next)).read->n_reused, 100);
  }
}

TEST(Scheduler, AnswersFlowWhileALongPromptIsRead) {
  Scheduler scheduler(model(), options_of());
  Request slow = request_of(long_text(50), 400);
  slow.ignore_eos = true;
  const auto stream = scheduler.submit(slow);
  while (!std::holds_alternative<AnswerPart>(*stream->next(kPatience))) {
  }
  const auto begin = std::chrono::steady_clock::now();
  Request prompt = request_of(long_text(900), 1);
  prompt.reports_progress = true;
  const auto reading = scheduler.submit(prompt);
  int n_parts = 0;
  std::atomic<bool> is_read = false;
  std::jthread reader([&] {
    wait_for(*reading);
    is_read = true;
  });
  while (true) {
    const std::optional<Update> update = stream->next(kPatience);
    ASSERT_TRUE(update);
    if (std::holds_alternative<AnswerEnd>(*update)) break;
    if (std::holds_alternative<AnswerPart>(*update) && !is_read) ++n_parts;
  }
  reader.join();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GT(n_parts, 20);
  EXPECT_LT(scheduler.stats().longest_gap_seconds, seconds / 4);
}

TEST(Scheduler, CancelledRequestsEndAndTheirMemoryComesBack) {
  Scheduler scheduler(model(), options_of());
  const auto reading = scheduler.submit(request_of(long_text(2000)));
  const auto waiting = scheduler.submit(request_of(long_text(100)));
  std::this_thread::sleep_for(20ms);
  waiting->cancel();
  reading->cancel();
  for (const auto& updates : {reading, waiting}) {
    const Result result = wait_for(*updates);
    ASSERT_TRUE(result.failure);
    EXPECT_EQ(result.failure->kind, Failure::Kind::cancelled);
  }
  Request endless = request_of(long_text(50), -1);
  endless.ignore_eos = true;
  const auto answering = scheduler.submit(endless);
  while (!std::holds_alternative<AnswerPart>(*answering->next(kPatience))) {
  }
  answering->cancel();
  EXPECT_TRUE(wait_for(*answering).failure);
  expect_nothing_runs(scheduler);
  EXPECT_EQ(scheduler.stats().n_cancelled, 3);
}

TEST(Scheduler, ARequestEndsWhenItsTimeIsOver) {
  Scheduler scheduler(model(), options_of());
  Request endless = request_of(long_text(50), -1);
  endless.ignore_eos = true;
  endless.timeout = 0.2;
  const Result result = wait_for(*scheduler.submit(endless));
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, Failure::Kind::timeout);
  expect_nothing_runs(scheduler);
}

TEST(Scheduler, RefusesWhatItCanNeverServe) {
  SchedulerOptions options = options_of();
  options.session.n_ctx = 2000;
  options.kv_memory = size_t{14} << 20;
  options.max_queue = 2;
  Scheduler scheduler(model(), options);
  std::string message;
  EXPECT_EQ(refusal(scheduler, request_of(long_text(1000)), &message),
            Refused::Kind::context_exceeded);
  EXPECT_NE(message.find("2000"), std::string::npos) << message;
  Request many = request_of(long_text(300), 400);
  many.session.kv.name = "full";
  many.n = 10;
  EXPECT_EQ(refusal(scheduler, many, &message), Refused::Kind::never_fits);
  EXPECT_NE(message.find("longest prompt"), std::string::npos) << message;
  const PromptFit too_long = scheduler.fit(request_of(long_text(1000)));
  EXPECT_GT(too_long.n_tokens, too_long.most_tokens);
  EXPECT_EQ(too_long.most_tokens, 1999) << "one is left for the answer";
  EXPECT_FALSE(too_long.limited_by_memory);
  const PromptFit too_large = scheduler.fit(many);
  EXPECT_TRUE(too_large.limited_by_memory);
  Request longest = many;
  longest.prompt.tokens.resize(static_cast<size_t>(too_large.most_tokens), 5);
  EXPECT_NO_THROW(wait_for(*scheduler.submit(longest), longest.n));
  longest.prompt.tokens.push_back(5);
  EXPECT_EQ(refusal(scheduler, longest), Refused::Kind::never_fits);
  Request empty = request_of("x");
  empty.prompt.tokens.clear();
  EXPECT_EQ(refusal(scheduler, empty), Refused::Kind::bad_request);
  Request bad = request_of("x");
  bad.session.kv.budget = 3;  // less than the window of 16
  EXPECT_EQ(refusal(scheduler, bad), Refused::Kind::bad_request);
  scheduler.drain();
  EXPECT_EQ(refusal(scheduler, request_of("x")), Refused::Kind::draining);
}

TEST(Scheduler, WhatDoesNotFitNowWaits) {
  SchedulerOptions options = options_of(Reuse::append);
  options.kv_memory = size_t{16} << 20;
  Scheduler scheduler(model(), options);
  std::vector<std::shared_ptr<RequestUpdates>> generations;
  std::vector<Request> requests;
  for (int i = 0; i < 12; ++i) {
    Request request = request_of(long_text(200, i), 40);
    request.session.kv.name = "full";
    requests.push_back(request);
    generations.push_back(scheduler.submit(request));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    const Result result = wait_for(*generations[i]);
    ASSERT_FALSE(result.failure) << result.failure->message;
    EXPECT_EQ(result.texts[0], alone(requests[i]));
    const SchedulerStats stats = scheduler.stats();
    EXPECT_LE(stats.bytes_running + stats.bytes_kept + stats.bytes_prefixes, stats.bytes_limit);
  }
}

TEST(Scheduler, MoreThanMayWaitAreRefused) {
  SchedulerOptions options = options_of();
  options.max_queue = 3;
  Scheduler scheduler(model(), options);
  int n_refused = 0;
  std::vector<std::shared_ptr<RequestUpdates>> generations;
  for (int i = 0; i < 10; ++i) {
    try {
      generations.push_back(scheduler.submit(request_of(long_text(400, i), 1)));
    } catch (const Refused& e) {
      EXPECT_EQ(e.kind, Refused::Kind::queue_full);
      EXPECT_GT(e.retry_after, 0);
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 0);
  for (const auto& updates : generations) EXPECT_FALSE(wait_for(*updates).failure);
  EXPECT_EQ(scheduler.stats().n_refused, n_refused);
}

TEST(Scheduler, WhereNoneMayWaitWhatCanBeginDoes) {
  SchedulerOptions options = options_of();
  options.max_queue = 0;
  options.n_parallel = 2;
  Scheduler scheduler(model(), options);
  EXPECT_FALSE(wait_for(*scheduler.submit(request_of(long_text(50)))).failure);
  expect_nothing_runs(scheduler);
  Request endless = request_of(long_text(10), -1);
  endless.ignore_eos = true;
  std::vector<std::shared_ptr<RequestUpdates>> answering;
  for (int i = 0; i < 2; ++i) {
    answering.push_back(scheduler.submit(endless));
    for (int k = 0; k < 3;) {  // the next request may begin after a few rounds
      if (std::holds_alternative<AnswerPart>(*answering.back()->next(kPatience))) ++k;
    }
  }
  EXPECT_EQ(refusal(scheduler, request_of("x")), Refused::Kind::queue_full);
  for (const auto& updates : answering) {
    updates->cancel();
    wait_for(*updates);
  }
  expect_nothing_runs(scheduler);
  EXPECT_FALSE(wait_for(*scheduler.submit(request_of(long_text(50)))).failure);

  // While one prompt is read, the next one would have to wait.
  const auto reading = scheduler.submit(request_of(long_text(2000), 1));
  EXPECT_EQ(refusal(scheduler, request_of("x")), Refused::Kind::queue_full);
  EXPECT_FALSE(wait_for(*reading).failure);
}

TEST(Scheduler, AnswersFollowAGrammar) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(30), 50);
  request.grammar = std::make_shared<const Grammar>(Grammar::parse(R"(root ::= ("ab" | "cd"){3})"));
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_EQ(result.texts[0].size(), 6u) << result.texts[0];
  EXPECT_EQ(result.texts[0].find_first_not_of("abcd"), std::string::npos);
  EXPECT_EQ(result.ends[0].reason, FinishReason::stop);

  std::string many = "root ::= ";
  for (int i = 0; i < 20000; ++i) many += "\"a\"? ";
  request.grammar = std::make_shared<const Grammar>(Grammar::parse(many));
  try {
    scheduler.submit(request);
    ADD_FAILURE() << "no error";
  } catch (const Refused& e) {
    EXPECT_EQ(e.kind, Refused::Kind::bad_request);
    EXPECT_NE(std::string(e.what()).find("too ambiguous"), std::string::npos) << e.what();
  }
}

/// A model that writes any text writes a call's arguments as the tool's schema says, and any text
/// before and after them.
TEST(Scheduler, CallsThatHaveBegunFollowTheirGrammar) {
  Scheduler scheduler(model(), options_of());
  chat::Tools tools;
  tools.list = nlohmann::ordered_json::parse(R"([{"type": "function", "function": {"name": "get",
    "parameters": {"type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]},
    "days": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 2, "maxItems": 3}},
    "required": ["city", "days"]}}}])");
  chat::AnswerSyntax syntax;
  syntax.tools = chat::ToolFormat::hermes;
  syntax.functions = tools.schemas();
  syntax.any_form = true;
  std::vector<std::string> notes;
  Request request = request_of(long_text(30), 160);
  const std::string free = wait_for(*scheduler.submit(request)).texts[0];
  request.call_grammar = std::make_shared<const Grammar>(
      Grammar::parse(chat::begun_call_grammar(tools, syntax.tools, notes)));
  const auto written = std::make_shared<std::string>();  // before the call
  request.make_watch = [&] {  // takes the third token for the beginning of a call
    const auto watch = std::make_shared<chat::AnswerWatch>(syntax);
    return [watch, written, n = 0](std::string_view text) mutable {
      if (++n <= 3) *written += text;
      watch->push(n == 3 ? "{\"name\": \"get\", \"arguments\":" : n < 3 ? "" : text);
      return Watched{false, watch->begun_call()};
    };
  };
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_FALSE(result.failure) << result.failure->message;
  const std::string& text = result.texts[0];
  EXPECT_TRUE(text.starts_with(*written) && free.starts_with(*written)) << text;
  const size_t end = text.find('}', written->size());
  ASSERT_NE(end, std::string::npos) << text;
  const auto arguments = nlohmann::json::parse(
      text.substr(written->size(), end + 1 - written->size()), nullptr, false);
  ASSERT_TRUE(arguments.is_object()) << text;
  EXPECT_TRUE(arguments["city"] == "Rome" || arguments["city"] == "Oslo") << text;
  EXPECT_GE(arguments["days"].size(), 2u) << text;
  const size_t closed = text.find_first_not_of(" \n", end + 1);
  ASSERT_NE(closed, std::string::npos);
  EXPECT_TRUE(text[closed] == '}' || text[closed] == ',') << text;
  EXPECT_EQ(result.ends[0].n_generated, 160);  // it goes on, with any text
}

TEST(Scheduler, GrammarsAreKeptWithinTheirBytes) {
  for (const bool has_room : {true, false}) {
    SchedulerOptions options = options_of();
    if (!has_room) options.grammar_memory = 1;
    Scheduler scheduler(model(), options);
    for (const char* text : {"ab", "cd", "ef"}) {
      Request request = request_of("x", 20);
      request.grammar = std::make_shared<const Grammar>(
          Grammar::parse(std::string("root ::= \"") + text + "\" [a-z]{3}"));
      const Result result = wait_for(*scheduler.submit(request));
      ASSERT_FALSE(result.failure);
      EXPECT_TRUE(result.texts[0].starts_with(text)) << result.texts[0];
    }
    expect_nothing_runs(scheduler);
    EXPECT_EQ(scheduler.stats().n_grammars, has_room ? 3 : 1);
  }
}

// Each token adds more ways to read the text, so the error comes while the answer is written.
TEST(Scheduler, AGrammarThatTurnsOutAmbiguousIsTheClientsError) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(10), 200);
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "[a-z ]? ";
  request.grammar = std::make_shared<const Grammar>(
      Grammar::parse("root ::= [a-z ] [a-z ] [a-z ] " + many + "\"!\""));
  const Result result = wait_for(*scheduler.submit(request));
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, Failure::Kind::bad_request);
  EXPECT_NE(result.failure->message.find("too ambiguous"), std::string::npos)
      << result.failure->message;
  expect_nothing_runs(scheduler);
}

TEST(Scheduler, ReportsLogprobsAndPositions) {
  Scheduler scheduler(model(), options_of());
  Request request = request_of(long_text(100), 5);
  request.top_logprobs = 2;
  request.kv_report = KvReportLevel::positions;
  const auto updates = scheduler.submit(request);
  int n_tokens = 0;
  while (true) {
    const std::optional<Update> update = updates->next(kPatience);
    ASSERT_TRUE(update);
    if (std::holds_alternative<AnswerEnd>(*update)) break;
    if (const auto* read = std::get_if<PromptRead>(&*update)) {
      ASSERT_EQ(std::ssize(read->kv.positions), model()->info().n_layer);
      EXPECT_EQ(read->kv.positions[0][0].size(), 64u);
    }
    const auto* part = std::get_if<AnswerPart>(&*update);
    if (part == nullptr) continue;
    for (const AnswerPart::Token& token : part->tokens) {
      ++n_tokens;
      ASSERT_EQ(token.top.size(), 2u);
      EXPECT_EQ(token.chosen.id, token.top[0].id);  // the sampler is greedy
      EXPECT_DOUBLE_EQ(token.chosen.logprob, token.top[0].logprob);
      EXPECT_LE(token.top[1].logprob, token.top[0].logprob);
      EXPECT_LE(token.top[0].logprob, 0);
    }
  }
  EXPECT_EQ(n_tokens, 5);
}

// Each token of the prompt with the probability that a session gives it, whatever is kept; beside a
// prompt whose tokens are not wanted.
TEST(Scheduler, ReportsLogprobsOfPrompts) {
  Scheduler scheduler(model(), options_of(Reuse::refresh));
  Request request = request_of(long_text(60), 1);
  request.top_logprobs = 1;
  request.scores_prompt = true;
  request.reuses = false;
  request.n = 2;
  const std::vector<int32_t>& tokens = request.prompt.tokens;
  SessionOptions options = request.session;
  options.kv = {.name = "full"};
  Session session(model(), options);
  session.prefill(tokens, {.n_logits = std::ssize(tokens)});
  const auto updates = scheduler.submit(request);
  const auto other = scheduler.submit(request_of(long_text(5), 3));
  std::vector<std::vector<AnswerPart::Token>> scores(2);
  for (int n_ended = 0; n_ended < 2;) {
    const std::optional<Update> update = updates->next(kPatience);
    ASSERT_TRUE(update);
    n_ended += std::holds_alternative<AnswerEnd>(*update) ? 1 : 0;
    const auto* part = std::get_if<AnswerPart>(&*update);
    if (part != nullptr && part->of_prompt) {
      scores[part->choice] = part->tokens;
    }
  }
  EXPECT_EQ(wait_for(*other).ends[0].n_generated, 3);
  for (const auto& all : scores) {
    ASSERT_EQ(all.size(), tokens.size());
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_EQ(all[i].chosen.id, tokens[i]);
      if (i == 0) continue;
      const TokenLogprobs expected =
          token_logprobs(session.prefill_logits(static_cast<int64_t>(i) - 1), tokens[i], 1);
      EXPECT_NEAR(all[i].chosen.logprob, expected.chosen.logprob, 0.05) << i;
      ASSERT_EQ(all[i].top.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace snapkv::server
