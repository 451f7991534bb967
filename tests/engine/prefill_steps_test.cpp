// SPDX-License-Identifier: MIT
// Prefill in steps, several prompts in one prefill, and prefixes that prompts share: the results
// are the same as for each prompt alone and in one piece.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "snapkv/prefill.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace prefill_steps_tests {

constexpr int64_t kVocab = 512;
/// The most that logits may differ: products with other numbers of rows may be summed in another
/// order, after which a key or value may round to the next value in the cache's type.
float rounding(DType kv_type) {
  if (kv_type == DType::f32) return 2e-4f;
  return kv_type == DType::q8_0 ? 3e-2f : 4e-3f;
}

std::vector<int32_t> ids(int64_t n, uint32_t seed) { return generated_ids(n, kVocab, seed); }

SessionOptions options_of(const std::string& policy, DType kv_type = DType::f16) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = 48;
  options.kv.window_size = 16;
  options.kv_type = kv_type;
  options.chunk = 64;
  options.decode_reserve = 16;
  return options;
}

PrefillPrompt prompt_of(Session& session, std::vector<int32_t> tokens) {
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = std::move(tokens);
  return prompt;
}

void finish(Prefill& prefill) {
  while (!prefill.step()) {
  }
}

void expect_close(std::span<const float> a, std::span<const float> b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  float difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
  EXPECT_LT(difference, tolerance);
}

/// Expects the same logits and rows, now and after more tokens.
void expect_same(Session& a, Session& b) {
  const float tolerance = rounding(a.options().kv_type);
  expect_close(a.logits(), b.logits(), tolerance);
  EXPECT_EQ(a.n_past(), b.n_past());
  const ModelInfo& info = a.model().info();
  for (int il = 0; il < info.n_layer; ++il) {
    for (int h = 0; h < info.n_head_kv; ++h) {
      EXPECT_EQ(a.cached_positions(il, h), b.cached_positions(il, h)) << il << " " << h;
    }
  }
  for (const int32_t id : {40, 7, 300}) {
    a.decode(id);
    b.decode(id);
  }
  expect_close(a.logits(), b.logits(), tolerance);
  EXPECT_EQ(a.stats().kv_bytes_used, b.stats().kv_bytes_used);
}

std::shared_ptr<const KvPrefix> read_prefix(const std::shared_ptr<const Model>& model,
                                            const SessionOptions& options,
                                            std::vector<int32_t> tokens) {
  Session session(model, options);
  PrefillPrompt prompt = prompt_of(session, std::move(tokens));
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  finish(prefill);
  return prefill.take_prefix();
}

TEST(PrefillSteps, OthersDecodeBetweenThem) {
  const auto model = load_model("tiny-f32");
  Session whole(model, options_of("snapkv")), steps(model, options_of("snapkv"));
  Session other(model, options_of("snapkv")), undisturbed(model, options_of("snapkv"));
  whole.prefill(ids(300, 1));
  other.prefill(ids(100, 2));
  undisturbed.prefill(ids(100, 2));
  Prefill prefill(prompt_of(steps, ids(300, 1)));
  double fraction = 0;
  int n_steps = 1;
  for (; !prefill.step(); ++n_steps) {
    EXPECT_GT(prefill.fraction(), fraction);
    fraction = prefill.fraction();
    other.decode(n_steps);
    undisturbed.decode(n_steps);
  }
  EXPECT_EQ(prefill.fraction(), 1.0);
  EXPECT_EQ(n_steps, 5 * model->info().n_layer);  // chunks of 64
  expect_same(whole, steps);
  expect_same(undisturbed, other);
}

TEST(PrefillSteps, ASessionIsInUseUntilItIsReadAndAsBeforeWhenItIsNot) {
  const auto model = load_model("tiny-f32");
  Session session(model, options_of("snapkv")), reference(model, options_of("snapkv"));
  session.prefill(ids(90, 1));
  reference.prefill(ids(90, 1));
  {
    Prefill prefill(prompt_of(session, ids(200, 2)));
    for (int i = 0; i < 6; ++i) EXPECT_FALSE(prefill.step());
    expect_error(ErrorCode::kUsage, {"in use"}, [&] { session.decode(1); });
  }
  expect_same(reference, session);
  Prefill prefill(prompt_of(session, ids(20, 3)));
  finish(prefill);
  expect_error(ErrorCode::kUsage, {"nothing to read"}, [&] { prefill.step(); });
}

TEST(PrefillSteps, ShortPromptsTogetherAreWhatEachIsAlone) {
  for (const char* name : {"tiny-f32", "gemma3", "llama4-chunks", "tiny-q8_0"}) {
    SCOPED_TRACE(name);
    const auto model = load_model(name);
    const std::vector<int64_t> lengths = {5, 21, 1, 30};
    std::vector<Session> alone, together;
    for (size_t i = 0; i < lengths.size(); ++i) {
      SessionOptions options = options_of(i == 3 ? "streaming-llm" : "snapkv");
      options.kv.budget = 20;
      options.kv.window_size = 8;
      alone.emplace_back(model, options);
      together.emplace_back(model, options);
    }
    together[1].prefill(ids(70, 9));  // one of them is a further turn
    alone[1].prefill(ids(70, 9));
    std::vector<PrefillPrompt> prompts;
    for (size_t i = 0; i < lengths.size(); ++i) {
      alone[i].prefill(ids(lengths[i], 10 + i));
      prompts.push_back(prompt_of(together[i], ids(lengths[i], 10 + i)));
    }
    ASSERT_TRUE(Prefill::may_share(prompts));
    Prefill prefill(std::move(prompts));
    finish(prefill);
    for (size_t i = 0; i < lengths.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same(alone[i], together[i]);
    }
  }
}

TEST(PrefillSteps, PromptsThatCannotBeComputedTogetherAreRefused) {
  const auto model = load_model("tiny-f32");
  Session a(model, options_of("snapkv")), b(model, options_of("snapkv"));
  std::vector<PrefillPrompt> prompts = {prompt_of(a, ids(40, 1)), prompt_of(b, ids(40, 2))};
  EXPECT_FALSE(Prefill::may_share(prompts));  // together more than a chunk
  expect_error(ErrorCode::kUsage, {"2 prompts"}, [&] { Prefill refused(prompts); });
  prompts[0].tokens.resize(10);
  EXPECT_TRUE(Prefill::may_share(prompts));
  Session other_type(model, options_of("snapkv", DType::f32));
  prompts[1].sessions = {&other_type};
  EXPECT_FALSE(Prefill::may_share(prompts));
  expect_error(ErrorCode::kUsage, {"no prompt"},
               [] { Prefill nothing{std::vector<PrefillPrompt>()}; });
}

TEST(KvPrefix, APromptThatBeginsWithItIsWhatItIsWithout) {
  const std::vector<int32_t> first = ids(230, 1);
  for (const char* name : {"tiny-f32", "gemma3", "phi3"}) {
    for (const char* policy : {"snapkv", "full", "streaming-llm", "knorm"}) {
      for (const DType type : {DType::f16, DType::f32, DType::q8_0}) {
        SCOPED_TRACE(std::string(name) + " " + policy + " " + std::string(snapkv::name(type)));
        const auto model = load_model(name);
        if (model->info().head_dim % 32 != 0 && type == DType::q8_0) continue;
        const bool is_snapkv = std::string(policy) == "snapkv";
        if (!is_snapkv && (std::string(name) != "tiny-f32" || type != DType::f16)) continue;
        const SessionOptions options = options_of(policy, type);
        const auto prefix = read_prefix(model, options_of("snapkv", type), first);
        EXPECT_EQ(prefix->bytes(), KvPrefix::bytes_for(model->info(), options, 230));
        for (const int64_t n_shared : {1, 63, 64, 200, 230}) {
          SCOPED_TRACE(n_shared);
          std::vector<int32_t> tokens(first.begin(), first.begin() + n_shared);
          const std::vector<int32_t> rest = ids(70, 5);
          tokens.insert(tokens.end(), rest.begin(), rest.end());
          Session whole(model, options), shared(model, options);
          whole.prefill(tokens);
          shared.prefill(tokens, {.prefix = prefix, .n_from_prefix = n_shared});
          expect_same(whole, shared);
        }
      }
    }
  }
}

TEST(KvPrefix, GrowsFromAnotherAndServesKvRefresh) {
  const auto model = load_model("tiny-f32");
  SessionOptions options = options_of("snapkv");
  options.kv_refresh = true;
  const auto first = read_prefix(model, options, ids(100, 1));
  std::vector<int32_t> longer = ids(100, 1);
  const std::vector<int32_t> more = ids(80, 2);
  longer.insert(longer.end(), more.begin(), more.end());
  Session grown_session(model, options), whole_session(model, options);
  PrefillPrompt prompt = prompt_of(grown_session, longer);
  prompt.makes_prefix = true;
  prompt.options.prefix = first;
  prompt.options.n_from_prefix = 100;
  Prefill prefill(std::move(prompt));
  finish(prefill);
  const auto grown = prefill.take_prefix();
  ASSERT_TRUE(std::equal(longer.begin(), longer.end(), grown->tokens().begin()));
  whole_session.prefill(longer);
  grown_session.prefill(ids(30, 3));  // sees every row of the prompt, including the prefix
  whole_session.prefill(ids(30, 3));
  expect_same(whole_session, grown_session);
  longer.insert(longer.end(), 20, 77);
  Session from_grown(model, options), whole(model, options);
  from_grown.prefill(longer, {.prefix = grown, .n_from_prefix = 180});
  whole.prefill(longer);
  expect_same(whole, from_grown);
}

/// The prefix of `tokens` that is made of the first n of another.
std::shared_ptr<const KvPrefix> go_on(const std::shared_ptr<const KvPrefix>& from, int64_t n,
                                      const std::shared_ptr<const Model>& model,
                                      const std::vector<int32_t>& tokens) {
  Session session(model, options_of("snapkv"));
  PrefillPrompt prompt = prompt_of(session, tokens);
  prompt.makes_prefix = true;
  prompt.options.prefix = from;
  prompt.options.n_from_prefix = n;
  Prefill prefill(std::move(prompt));
  finish(prefill);
  return prefill.take_prefix();
}

size_t bytes_of(const std::vector<std::shared_ptr<const KvPrefix>>& prefixes) {
  std::vector<const KvPrefix*> all;
  for (const auto& prefix : prefixes) all.push_back(prefix.get());
  return KvPrefix::bytes(all);
}

TEST(KvPrefix, SharesTheRowsOfThatWhichItGoesOnFrom) {
  for (const char* name : {"tiny-f32", "gemma3", "llama4-chunks"}) {
    SCOPED_TRACE(name);
    const auto model = load_model(name);
    const SessionOptions options = options_of("snapkv");
    const size_t token = KvPrefix::bytes_for(model->info(), options, 1);
    const std::vector<int32_t> tokens = ids(300, 1);
    const auto first_of = [&](int64_t n) {
      return std::vector<int32_t>(tokens.begin(), tokens.begin() + n);
    };
    const auto other_after = [&](int64_t n) {
      std::vector<int32_t> other = first_of(n);
      const std::vector<int32_t> rest = ids(50, 2);
      other.insert(other.end(), rest.begin(), rest.end());
      return other;
    };
    const auto first = read_prefix(model, options, first_of(100));
    const auto turn = go_on(first, 96, model, first_of(180));  // the seam splits otherwise
    EXPECT_EQ(turn->bytes(), (100 + 84) * token) << "the rows of the seam stay";
    EXPECT_EQ(bytes_of({first, turn}), turn->bytes());
    EXPECT_EQ(first->shared(96).n_tokens, 96);
    EXPECT_EQ(first->shared(96).bytes, 100 * token);
    EXPECT_EQ(first->shared(50).n_tokens, 0) << "half of the rows would be kept for nothing";
    const auto last = go_on(turn, 180, model, tokens);
    EXPECT_EQ(bytes_of({first, turn, last}), (100 + 84 + 120) * token);

    // another conversation with the same beginning: its rows are copied once and then shared
    const auto second = go_on(last, 150, model, other_after(150));
    EXPECT_EQ(bytes_of({last, second}), (100 + 84 + 120 + 54 + 50) * token)
        << "54 tokens are copied: of the second part, a third would not be used";
    const auto third = go_on(second, 150, model, other_after(150));
    EXPECT_EQ(bytes_of({second, third}), second->bytes() + 50 * token);

    const std::string path = ::testing::TempDir() + "shared.kv";
    last->save(path, DType::f16);
    for (const auto& prefix : {last, second, KvPrefix::load(model, path)}) {
      const int64_t n = prefix == second ? 190 : 290;
      std::vector<int32_t> prompt = {prefix->tokens().begin(), prefix->tokens().begin() + n};
      prompt.insert(prompt.end(), 30, 77);
      Session whole(model, options), shared(model, options);
      whole.prefill(prompt);
      shared.prefill(prompt, {.prefix = prefix, .n_from_prefix = n});
      expect_same(whole, shared);
    }
    std::remove(path.c_str());
  }
}

TEST(KvPrefix, WhatItCannotServeIsRefused) {
  const auto model = load_model("tiny-f32");
  const SessionOptions options = options_of("snapkv");
  const auto prefix = read_prefix(model, options, ids(100, 1));
  const std::vector<int32_t> tokens = ids(120, 1);  // begins with the same tokens
  const auto refused = [&](const SessionOptions& given, const std::vector<int32_t>& prompt,
                           int64_t n, std::initializer_list<std::string_view> words) {
    Session session(model, given);
    expect_error(ErrorCode::kUsage, words,
                 [&] { session.prefill(prompt, {.prefix = prefix, .n_from_prefix = n}); });
    session.prefill(prompt);  // the session is unchanged
  };
  refused(options, tokens, 0, {"n_from_prefix"});
  refused(options, tokens, 101, {"n_from_prefix"});
  refused(options, ids(120, 2), 50, {"does not begin with the 50 tokens"});
  refused(options, std::vector<int32_t>(tokens.begin(), tokens.begin() + 110), 100,
          {"leaves 10 of 110", "16"});
  refused(options_of("h2o"), tokens, 50, {"h2o", "observes"});
  refused(options_of("snapkv", DType::f32), tokens, 50, {"f16", "f32"});
  Session session(model, options);
  expect_error(ErrorCode::kUsage, {"n_from_prefix"},
               [&] { session.prefill(tokens, {.n_from_prefix = 3}); });
  session.prefill(tokens);
  expect_error(ErrorCode::kUsage, {"read nothing"},
               [&] { session.prefill(tokens, {.prefix = prefix, .n_from_prefix = 50}); });
  PrefillPrompt again = prompt_of(session, ids(50, 4));
  again.makes_prefix = true;
  expect_error(ErrorCode::kUsage, {"makes_prefix"}, [&] { Prefill made(std::move(again)); });
}

TEST(KvPrefixFile, APromptThatBeginsWithItIsWhatItIsWithout) {
  const std::string path = ::testing::TempDir() + "prefix.kv",
                    copy = ::testing::TempDir() + "copy.kv";
  const std::vector<int32_t> first = ids(230, 1);
  std::vector<int32_t> tokens = first;
  tokens.insert(tokens.end(), 40, 9);
  for (const char* name : {"tiny-f32", "gemma3", "llama4-chunks"}) {
    const auto model = load_model(name);
    for (const DType type : {DType::f16, DType::f32, DType::q8_0}) {
      if (type == DType::q8_0 && model->info().head_dim % 32 != 0) continue;
      SCOPED_TRACE(std::string(name) + " " + std::string(snapkv::name(type)));
      const SessionOptions options = options_of("snapkv");
      read_prefix(model, options, first)->save(path, type, "notes");
      const SavedPrefix saved = describe_prefix(path);
      EXPECT_EQ(saved.notes, "notes");
      EXPECT_EQ(saved.type, type);
      EXPECT_EQ(saved.tokens, first);
      EXPECT_EQ(saved.fingerprint, model->fingerprint());
      const auto prefix = KvPrefix::load(model, path);
      Session whole(model, options), shared(model, options);
      whole.prefill(tokens);
      shared.prefill(tokens, {.prefix = prefix, .n_from_prefix = 230});
      prefix->save(copy, type);
      Session again(model, options);
      again.prefill(tokens, {.prefix = KvPrefix::load(model, copy), .n_from_prefix = 230});
      EXPECT_TRUE(
          std::equal(again.logits().begin(), again.logits().end(), shared.logits().begin()));
      if (type != DType::q8_0) {
        expect_same(whole, shared);
      } else {  // rows were rounded
        float difference = 0;
        for (size_t i = 0; i < whole.logits().size(); ++i) {
          difference = std::max(difference, std::abs(whole.logits()[i] - shared.logits()[i]));
        }
        EXPECT_LT(difference, 0.2f);
      }
    }
  }
}

TEST(KvPrefixFile, EveryDamageIsAnError) {
  const std::string path = ::testing::TempDir() + "damaged.kv";
  const auto model = load_model("tiny-f32");
  const SessionOptions options = options_of("snapkv");
  read_prefix(model, options, ids(100, 1))->save(path, DType::q8_0);
  EXPECT_TRUE(is_prefix_file(path));
  std::string whole;
  {
    std::ifstream in(path, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto use = [&] {
    Session session(model, options);
    session.prefill(ids(120, 1), {.prefix = KvPrefix::load(model, path), .n_from_prefix = 100});
  };
  use();
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    expect_error(ErrorCode::kBadModel, {path}, use);
  };
  for (size_t size = 1; size < whole.size(); size += whole.size() / 50) {
    refused(whole.substr(0, size));
  }
  refused(whole + "x");
  uint32_t random = 1;
  int n_found_whole = 0;
  for (int i = 0; i < 150; ++i) {
    random = random * 1664525 + 1013904223;
    const size_t at = i < 100 ? static_cast<size_t>(i) : random % whole.size();
    std::string bytes = whole;
    bytes[at] ^= static_cast<char>(1 << (random >> 29));
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      use();
      ++n_found_whole;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("damaged.kv"), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(n_found_whole, 0);
}

TEST(KvPrefixFile, IsOfItsModel) {
  const std::string path = ::testing::TempDir() + "other.kv";
  const auto model = load_model("tiny-f32");
  read_prefix(model, options_of("snapkv"), ids(100, 1))->save(path, DType::q8_0);
  const auto other = load_model("tiny-q8_0");
  expect_error(ErrorCode::kUsage, {"another model"}, [&] { KvPrefix::load(other, path); });
  expect_error(ErrorCode::kRuntime, {"missing.kv"},
               [&] { KvPrefix::load(model, ::testing::TempDir() + "missing.kv"); });
}

}  // namespace prefill_steps_tests
}  // namespace snapkv::test
