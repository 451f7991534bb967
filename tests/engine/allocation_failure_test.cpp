// SPDX-License-Identifier: MIT
// Every allocation in a session's calls fails once, one after another: the call throws, the session
// is unchanged, and repeating the call gives the same as in a session that never failed. A file
// that could not be saved does not exist. This program replaces operator new, aligned_alloc and
// mmap. Prompts are too short for packing (model/packing.h) and there is one thread, because oneDNN
// and libgomp do not survive a refusal (docs/reliability.md).
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <new>

#include "snapkv/engine.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/refused_allocations.h"
#include "tests/support/test_models.h"

namespace snapkv::test {
namespace {

constexpr int64_t kVocab = 512;

std::vector<int32_t> ids(int64_t n, uint32_t seed) { return generated_ids(n, kVocab, seed); }

std::shared_ptr<const Model> model() { return load_model("tiny-f32", Compute::f32, 1); }

std::vector<float> logits_of(const Session& s) { return {s.logits().begin(), s.logits().end()}; }

SessionOptions options_of(const std::string& kind) {
  SessionOptions o;
  o.kv.budget = 24;
  o.kv.window_size = 8;
  o.chunk = 16;
  o.decode_reserve = 2;
  if (kind == "full") o.kv.name = "full";
  if (kind == "h2o") o.kv.name = "h2o";
  if (kind == "ada-snapkv") o.kv.name = "ada-snapkv";
  if (kind == "q8_0") o.kv_type = DType::q8_0;
  if (kind == "refresh") o.kv_refresh = true;
  if (kind == "decode limit") o.kv_decode_limit = 28;
  return o;
}

/// Calls `call` with its first allocation refused, then its second, ... until it gets all of them,
/// and `check` after each call that failed.
void refuse_each(const std::function<void()>& call, const std::function<void()>& check) {
  for (int64_t n = 0;; ++n) {
    bool threw = false;
    refuse_allocation(n);
    try {
      call();
    } catch (const Error& e) {
      threw = true;
      EXPECT_EQ(e.code(), ErrorCode::kDoesNotFit) << e.what();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    const bool refused_one = refuse_no_allocation();
    if (!refused_one) {
      EXPECT_FALSE(threw);
      return;
    }
    if (threw) check();
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "allocation " << n << " was refused";
      return;
    }
  }
}

class AllocationFailureTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
#if defined(SNAPKV_SANITIZED)
    GTEST_SKIP() << "a sanitizer replaces the same functions";
#endif
  }
  const SessionOptions options_ = options_of(GetParam());
};

// A prompt, steps beyond the reserve and a further turn, each repeated until it gets its memory.
void expect_same_as_undisturbed(const SessionOptions& options) {
  const std::vector<int32_t> prompt = ids(40, 1), turn = ids(20, 2), steps = ids(6, 3);
  Session reference(model(), options), session(model(), options);
  const auto expect_same = [&](const char* when) {
    ASSERT_EQ(session.n_past(), reference.n_past()) << when;
    ASSERT_EQ(logits_of(session), logits_of(reference)) << when;
    for (int il = 0; il < 4; ++il) {
      ASSERT_EQ(session.cached_positions(il, 1), reference.cached_positions(il, 1)) << when;
    }
  };
  reference.prefill(prompt);
  bool read = false;
  refuse_each(
      [&] {
        if (!read) session.prefill(prompt);
        read = true;
      },
      [&] {
        ASSERT_EQ(session.n_past(), 0);
        ASSERT_TRUE(session.logits().empty());
      });
  ASSERT_TRUE(read);
  expect_same("after the prompt");
  for (const int32_t id : steps) {
    const std::vector<float> before = logits_of(session);
    const int64_t n_past = session.n_past();
    bool done = false;
    refuse_each(
        [&] {
          if (!done) session.decode(id);
          done = true;
        },
        [&] {
          ASSERT_EQ(session.n_past(), n_past);
          ASSERT_EQ(logits_of(session), before);
        });
    ASSERT_TRUE(done);
    reference.decode(id);
    expect_same("after a step");
  }
  bool done = false;
  const std::vector<float> before = logits_of(session);
  refuse_each(
      [&] {
        if (!done) session.prefill(turn);
        done = true;
      },
      [&] { ASSERT_EQ(logits_of(session), before); });
  ASSERT_TRUE(done);
  reference.prefill(turn);
  expect_same("after a further turn");
}

TEST_P(AllocationFailureTest, LeavesTheSessionAsItWas) { expect_same_as_undisturbed(options_); }

TEST_P(AllocationFailureTest, LeavesNoHalfOfAFile) {
  if (options_.kv_refresh) GTEST_SKIP() << "is not saved";
  const TempDir folder;
  const std::string path = folder / "saved";
  Session session(model(), options_);
  session.prefill(ids(40, 1));
  bool saved = false;
  refuse_each(
      [&] {
        if (!saved) session.save(path, "notes");
        saved = true;
      },
      [&] { ASSERT_FALSE(std::filesystem::exists(path)); });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / ""), {}), 1)
      << "no temporary file is left";
  Session loaded(model(), options_);
  bool done = false;
  refuse_each(
      [&] {
        if (!done) loaded.load(path);
        done = true;
      },
      [&] { ASSERT_EQ(loaded.n_past(), 0); });
  EXPECT_EQ(logits_of(loaded), logits_of(session));
  loaded.decode(7);
  session.decode(7);
  EXPECT_EQ(logits_of(loaded), logits_of(session));
}

INSTANTIATE_TEST_SUITE_P(Options, AllocationFailureTest,
                         testing::Values("snapkv", "full", "h2o", "ada-snapkv", "q8_0", "refresh",
                                         "decode limit"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name) c = c == ' ' || c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace snapkv::test
