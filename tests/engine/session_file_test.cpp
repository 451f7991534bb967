// SPDX-License-Identifier: MIT
// Session::save() and load(): a loaded session continues like the saved one; files of other models,
// policies and versions are refused, and the message names the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "base/stop_check.h"
#include "engine/files/cache_file.h"
#include "tests/engine/session_file_support.h"
#include "tests/support/expect_error.h"

namespace snapkv {
namespace session_file_tests {

using test::expect_error;

/// Expects the same rows, and the same logits after a further turn and 30 steps, bit for bit.
void expect_same_future(Session& a, Session& b) {
  const ModelInfo& info = a.model().info();
  const auto expect_same = [&](const char* when) {
    ASSERT_EQ(a.n_past(), b.n_past()) << when;
    ASSERT_TRUE(
        std::equal(a.logits().begin(), a.logits().end(), b.logits().begin(), b.logits().end()))
        << when;
    for (int il = 0; il < info.n_layer; ++il) {
      for (int h = 0; h < info.n_head_kv; ++h) {
        ASSERT_EQ(a.cached_positions(il, h), b.cached_positions(il, h)) << when << il;
      }
    }
  };
  expect_same("after loading");
  for (const int32_t id : tokens(30, 5)) {
    a.decode(id);
    b.decode(id);
  }
  expect_same("after decoding");
  a.prefill(tokens(40, 6));
  b.prefill(tokens(40, 6));
  expect_same("after a further turn");
  EXPECT_EQ(a.stats().kv_bytes_used, b.stats().kv_bytes_used);
  EXPECT_EQ(a.stats().kv_bytes_full, b.stats().kv_bytes_full);
}

TEST(SessionFile, ALoadedSessionGoesOnAsTheSavedOne) {
  const auto model = test::load_model("needle");
  for (const char* policy : {"snapkv", "full", "ada-snapkv", "pyramidkv", "streaming-llm"}) {
    for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
      for (const int64_t limit : {0, 60}) {
        if (limit > 0 && policy == std::string("full")) continue;
        SCOPED_TRACE(std::string(policy) + " " + std::string(name(type)) + " " +
                     std::to_string(limit));
        const SessionOptions options = small(policy, type, limit);
        const std::string path = temporary("a.session");
        Session saved(model, options);
        saved.prefill(tokens(150));
        for (const int32_t id : tokens(5, 2)) saved.decode(id);
        saved.save(path, "notes\0and more");
        Session loaded(model, options);
        loaded.prefill(tokens(20, 9));  // load() replaces what it has seen
        EXPECT_EQ(loaded.load(path), std::string("notes"));
        expect_same_future(saved, loaded);
      }
    }
  }
}

TEST(SessionFile, LayersWithSlidingWindowsAreSavedToo) {
  const auto model = test::load_model("gemma3");
  const SessionOptions options = small("snapkv", DType::f16, 0);
  const std::string path = temporary("window.session");
  Session saved(model, options), loaded(model, options);
  saved.prefill(test::generated_ids(90, model->info().n_vocab, 1));
  for (const int32_t id : test::generated_ids(20, model->info().n_vocab, 2)) saved.decode(id);
  saved.save(path);
  loaded.load(path);
  for (const int32_t id : test::generated_ids(20, model->info().n_vocab, 3)) {
    saved.decode(id);
    loaded.decode(id);
    ASSERT_TRUE(std::equal(saved.logits().begin(), saved.logits().end(), loaded.logits().begin()));
  }
}

// Before, at and after the end of a chunk.
TEST(SessionFile, LayersWithChunksAreSavedToo) {
  const auto model = test::load_model("llama4-chunks");
  const SessionOptions options = small("snapkv", DType::f16, 0);
  const std::string path = temporary("chunk.session");
  for (const int64_t n : {47, 48, 49}) {
    SCOPED_TRACE(n);
    Session saved(model, options), loaded(model, options);
    saved.prefill(test::generated_ids(n, model->info().n_vocab, 1));
    saved.save(path);
    loaded.load(path);
    for (const int32_t id : test::generated_ids(20, model->info().n_vocab, 3)) {
      saved.decode(id);
      loaded.decode(id);
      ASSERT_TRUE(
          std::equal(saved.logits().begin(), saved.logits().end(), loaded.logits().begin()));
    }
  }
}

TEST(SessionFile, OneThatIsOpenServesManySessions) {
  const auto model = test::load_model("needle");
  const SessionOptions options = small("snapkv", DType::f16, 0);
  const std::string path = temporary("open.session");
  Session saved(model, options);
  saved.prefill(tokens(150));
  saved.save(path, "notes");
  const SavedSessionFile file(path);
  EXPECT_EQ(file.saved().n_past, 150);
  EXPECT_EQ(file.bytes(), std::filesystem::file_size(path));
  saved.save(path, "another");  // replaces the name; the open file stays as it was
  for (int i = 0; i < 2; ++i) {
    Session loaded(model, options), expected(model, options);
    expected.load(path);
    EXPECT_EQ(loaded.load(file), "notes");
    expect_same_future(expected, loaded);
  }
  const SavedSessionFile written_to(path);
  std::ofstream(path, std::ios::app) << "x";
  Session loaded(model, options);
  expect_error(ErrorCode::kBadModel, {"open.session", "when it was opened"},
               [&] { loaded.load(written_to); });
  EXPECT_EQ(loaded.n_past(), 0);
}

TEST(SessionFile, SaysWhatItHolds) {
  const auto model = test::load_model("needle");
  SessionOptions options = small("ada-snapkv", DType::q8_0, 70);
  options.kv.params["head_floor"] = 0.25;
  const std::string path = temporary("described.session");
  Session session(model, options);
  session.prefill(tokens(100));
  const std::string notes("a\0b\xff", 4);
  session.save(path, notes);
  const SavedSession saved = describe_session(path);
  EXPECT_EQ(saved.fingerprint, model->fingerprint());
  EXPECT_EQ(saved.model, model->info().name);
  EXPECT_EQ(saved.n_past, 100);
  EXPECT_EQ(saved.notes, notes);
  EXPECT_EQ(saved.options.kv_type, DType::q8_0);
  EXPECT_EQ(saved.options.kv_decode_limit, 70);
  EXPECT_EQ(saved.options.kv.name, "ada-snapkv");
  EXPECT_EQ(saved.options.kv.budget, 48);
  EXPECT_EQ(policy_value(saved.options.kv, "head_floor"), PolicyValue(0.25));
  Session(model, saved.options).load(path);  // the file's own options suffice to load it
}

TEST(SessionFile, IsRefusedWhereItDoesNotBelong) {
  const auto model = test::load_model("needle");
  const SessionOptions options = small("snapkv", DType::f16, 0);
  const std::string path = temporary("refused.session");
  Session session(model, options);
  expect_error(ErrorCode::kUsage, {"no prompt"}, [&] { session.save(path); });
  session.prefill(tokens(100));
  session.save(path);
  const auto expect_refused = [&](ErrorCode code, std::initializer_list<std::string_view> parts,
                                  const SessionOptions& other) {
    Session s(model, other);
    s.prefill(tokens(30, 4));
    const std::vector<float> before(s.logits().begin(), s.logits().end());
    expect_error(code, parts, [&] { s.load(path); });
    EXPECT_EQ(s.n_past(), 30);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), s.logits().begin()));
    s.decode(7);  // the session is unchanged
  };
  expect_refused(ErrorCode::kUsage, {"policy = snapkv", "full"}, small("full", DType::f16, 0));
  expect_refused(ErrorCode::kUsage, {"kv_type = f16", "f32"}, small("snapkv", DType::f32, 0));
  expect_refused(ErrorCode::kUsage, {"kv_decode_limit = 0", "60"}, small("snapkv", DType::f16, 60));
  SessionOptions other = options;
  other.kv.budget = 49;
  expect_refused(ErrorCode::kUsage, {"budget = 48", "49"}, other);
  other = options;
  other.kv.params["kernel_size"] = 15;
  expect_refused(ErrorCode::kUsage, {"kernel_size = 7", "15"}, other);
  other = options;
  other.n_ctx = 99;
  expect_refused(ErrorCode::kContextExceeded, {"100 tokens", "99"}, other);
  other = options;
  other.kv_refresh = true;
  expect_refused(ErrorCode::kUsage, {"kv_refresh"}, other);
  Session refreshing(model, other);
  refreshing.prefill(tokens(60));
  expect_error(ErrorCode::kUsage, {"kv_refresh"}, [&] { refreshing.save(path); });

  const auto another = test::load_model("tiny-f32");
  Session elsewhere(another, options);
  expect_error(ErrorCode::kUsage, {"another model", std::string_view(model->info().name)},
               [&] { elsewhere.load(path); });
  expect_error(ErrorCode::kRuntime, {"nowhere"}, [&] { elsewhere.load("/nowhere/a.session"); });
  expect_error(ErrorCode::kRuntime, {"not a regular file"}, [&] { elsewhere.load("/dev/zero"); });
  expect_error(ErrorCode::kRuntime, {"/nowhere"}, [&] { session.save("/nowhere/a.session"); });
  const std::string book = temporary("book.txt");
  std::ofstream(book) << "what must not be lost";
  expect_error(ErrorCode::kUsage, {"book.txt", "not a saved cache"}, [&] { session.save(book); });
  EXPECT_EQ(bytes_of(book).size(), 21u);
  expect_error(ErrorCode::kBadModel, {"not a saved cache"},
               [&] { describe_session(test::model_path("needle")); });
}

TEST(SessionFile, SavingAndReadingStopWhereTheProgramSaysSo) {
  const auto model = test::load_model("tiny-f32");
  const std::string path = temporary("stopped.session"), rows = temporary("stopped.rows");
  Session session(model, small("full", DType::f16, 0));
  const auto prefix = read_with_rows(session, 64);
  static int n_left = 0;  // how often it asks before it is told to stop
  const auto stop_after = [](int n, const std::function<void()>& work) {
    n_left = n;
    const StopCheck stop([] { return n_left-- <= 0; });
    expect_error(ErrorCode::kCancelled, {"was cancelled"}, work);
  };
  stop_after(1, [&] { session.save(path); });
  stop_after(1, [&] { prefix->save(rows, DType::f16); });
  EXPECT_FALSE(std::filesystem::exists(path) || std::filesystem::exists(rows));
  session.save(path);
  prefix->save(rows, DType::f16);
  stop_after(0, [&] { describe_session(path); });
  Session other(model, small("full", DType::f16, 0));
  stop_after(2, [&] { other.load(path); });
  EXPECT_EQ(other.n_past(), 0);
  stop_after(0, [&] {
    other.prefill(tokens(64), {.prefix = KvPrefix::load(model, rows), .n_from_prefix = 16});
  });
  other.load(path);
}

// Files of versions before the container, which began otherwise, and one of a later version.
TEST(SessionFile, OtherVersionsAreRefusedAndMayBeReplaced) {
  const auto model = test::load_model("needle");
  const std::string path = temporary("old.session");
  Session session(model, small("snapkv", DType::f16, 0));
  session.prefill(tokens(64));
  for (const std::string magic : {"SNAPKVS\n", "SNAPKVP\n"}) {
    std::ofstream(path) << magic << std::string("\1\0\0\0", 4) << std::string(500, 'x');
    const std::initializer_list<std::string_view> why = {"old.session", "older version",
                                                         "make it again"};
    expect_error(ErrorCode::kBadModel, why, [&] { session.load(path); });
    expect_error(ErrorCode::kBadModel, why, [&] { is_prefix_file(path); });
    expect_error(ErrorCode::kBadModel, why, [&] { KvPrefix::load(model, path); });
    session.save(path);
    session.load(path);
  }
  std::vector<std::byte> earlier = bytes_of(path);
  earlier[sizeof(kCacheMagic)] = std::byte{1};
  write_bytes(path, earlier);
  expect_error(ErrorCode::kBadModel, {"old.session", "older version"},
               [&] { session.load(path); });
  earlier[sizeof(kCacheMagic)] = std::byte{2};
  write_bytes(path, earlier);
  std::vector<std::byte> later = bytes_of(path);
  later[sizeof(kCacheMagic)] = std::byte{9};
  write_bytes(path, later);
  expect_error(ErrorCode::kBadModel, {"version 9", "only 2"}, [&] { session.load(path); });
  EXPECT_EQ(session.n_past(), 64);
}

TEST(SessionFile, ASessionAndRowsOfADocumentAreNotTakenForEachOther) {
  const auto model = test::load_model("needle");
  const std::string path = temporary("one.kv");
  Session session(model, small("full", DType::f16, 0));
  const auto prefix = read_with_rows(session, 64);
  session.save(path);
  EXPECT_FALSE(is_prefix_file(path));
  expect_error(ErrorCode::kBadModel, {"one.kv", "a compressed session", "every row"},
               [&] { KvPrefix::load(model, path); });
  prefix->save(path, DType::f16);
  EXPECT_TRUE(is_prefix_file(path));
  expect_error(ErrorCode::kBadModel, {"one.kv", "every row", "a compressed session"},
               [&] { session.load(path); });
}

}  // namespace session_file_tests
}  // namespace snapkv
