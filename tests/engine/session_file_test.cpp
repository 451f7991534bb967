// SPDX-License-Identifier: MIT
// Session::save() and load(): a loaded session continues like the saved one; files of other models,
// policies and versions, and damaged ones, are refused, and the message names the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>

#include "base/stop_check.h"
#include "engine/cache_file.h"
#include "engine/zstd_frame.h"
#include "snapkv/engine.h"
#include "snapkv/prefill.h"
#include "tests/fuzz/fuzz_session.h"
#include "tests/support/expect_error.h"
#include "tests/support/test_models.h"

namespace snapkv {
namespace {

using test::expect_error;

std::string temporary(const std::string& name) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "session_file_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  const auto* const data = reinterpret_cast<const std::byte*>(chars.data());
  return {data, data + chars.size()};
}

void write_bytes(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

SessionOptions small(const std::string& policy, DType kv_type, int64_t decode_limit) {
  SessionOptions options;
  options.kv.name = policy;
  options.kv.budget = 48;
  options.kv.window_size = 8;
  options.kv_type = kv_type;
  options.kv_decode_limit = decode_limit;
  options.chunk = 32;
  return options;
}

std::vector<int32_t> tokens(int n, uint32_t seed = 1) { return test::generated_ids(n, 512, seed); }

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

TEST(SessionFile, FramesOfZstdHoldTheSameRows) {
  const auto model = test::load_model("needle");
  for (const DType type : {DType::f16, DType::q8_0}) {
    for (const int64_t limit : {0, 60}) {
      SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(limit));
      const SessionOptions options = small("ada-snapkv", type, limit);
      const std::string plain = temporary("plain.session"), framed = temporary("zstd.session");
      Session session(model, options), from_plain(model, options), from_framed(model, options);
      session.prefill(tokens(150));
      session.save(plain, "notes");
      session.save(framed, "notes", 3);
      EXPECT_LT(std::filesystem::file_size(framed), std::filesystem::file_size(plain));
      EXPECT_EQ(describe_session(framed).n_past, 150);
      from_plain.load(plain);
      EXPECT_EQ(from_framed.load(framed), "notes");
      expect_same_future(from_plain, from_framed);
    }
  }
  Session session(model, small("snapkv", DType::f16, 0));
  session.prefill(tokens(20));
  expect_error(ErrorCode::kUsage, {"zstd_level", "20", "19"},
               [&] { session.save(temporary("none.session"), "", 20); });
}

TEST(SessionFile, OneThatIsOpenServesManySessions) {
  const auto model = test::load_model("needle");
  const SessionOptions options = small("snapkv", DType::f16, 0);
  for (const int level : {0, 3}) {
    const std::string path = temporary("open.session");
    Session saved(model, options);
    saved.prefill(tokens(150));
    saved.save(path, "notes", level);
    const SavedSessionFile file(path);
    EXPECT_EQ(file.saved().n_past, 150);
    EXPECT_EQ(file.bytes(), std::filesystem::file_size(path));
    saved.save(path, "another", level);  // replaces the name; the open file stays as it was
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
  expect_error(ErrorCode::kUsage, {"book.txt", "no saved cache"}, [&] { session.save(book); });
  EXPECT_EQ(bytes_of(book).size(), 21u);
  expect_error(ErrorCode::kBadModel, {"no saved cache"},
               [&] { describe_session(test::model_path("needle")); });
}

TEST(SessionFile, SavingAndReadingStopWhereTheProgramSaysSo) {
  const auto model = test::load_model("tiny-f32");
  const std::string path = temporary("stopped.session"), rows = temporary("stopped.rows");
  Session session(model, small("full", DType::f16, 0));
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = tokens(64);
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  const auto prefix = prefill.take_prefix();
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
  std::vector<std::byte> later = bytes_of(path);
  later[sizeof(kCacheMagic)] = std::byte{9};
  write_bytes(path, later);
  expect_error(ErrorCode::kBadModel, {"version 9", "only 1"}, [&] { session.load(path); });
  EXPECT_EQ(session.n_past(), 64);
}

TEST(SessionFile, ASessionAndRowsOfADocumentAreNotTakenForEachOther) {
  const auto model = test::load_model("needle");
  const std::string path = temporary("one.kv");
  Session session(model, small("full", DType::f16, 0));
  PrefillPrompt prompt;
  prompt.sessions = {&session};
  prompt.tokens = tokens(64);
  prompt.makes_prefix = true;
  Prefill prefill(std::move(prompt));
  while (!prefill.step()) {
  }
  session.save(path);
  EXPECT_FALSE(is_prefix_file(path));
  expect_error(ErrorCode::kBadModel, {"one.kv", "a compressed session", "every row"},
               [&] { KvPrefix::load(model, path); });
  prefill.take_prefix()->save(path, DType::f16);
  EXPECT_TRUE(is_prefix_file(path));
  expect_error(ErrorCode::kBadModel, {"one.kv", "every row", "a compressed session"},
               [&] { session.load(path); });
}

TEST(SessionFile, DamageIsFound) {
  const auto model = test::load_model("needle");
  const std::string path = temporary("whole.session"), damaged = temporary("damaged.session");
  Session session(model, small("snapkv", DType::f16, 0));
  session.prefill(tokens(64));
  const auto expect_damage = [&](const std::vector<std::byte>& bytes) {
    write_bytes(damaged, bytes);
    expect_error(ErrorCode::kBadModel, {"damaged.session"}, [&] { describe_session(damaged); });
  };
  for (const int level : {0, 3}) {
    session.save(path, "notes", level);
    const std::vector<std::byte> whole = bytes_of(path);
    const size_t near = level == 0 ? 1 : 7, far = level == 0 ? 997 : 3989;
    for (size_t at = 0; at < whole.size(); at += at < 400 ? near : far) {
      std::vector<std::byte> bytes = whole;
      bytes[at] ^= std::byte{1};
      expect_damage(bytes);
      bytes = whole;
      bytes.resize(at);
      expect_damage(bytes);
    }
    std::vector<std::byte> longer = whole;
    longer.push_back({});
    expect_damage(longer);
    // The existing file stays complete if another cannot be written over it.
    EXPECT_EQ(bytes_of(path), whole);
  }
}

/// The blocks of a file, to be changed and put together again.
struct Blocks {
  explicit Blocks(const std::vector<std::byte>& bytes)
      : start(bytes.begin(), bytes.begin() + sizeof(CacheStart)) {
    const CacheFile file(bytes, "whole", CacheContents::session);
    size_t at = sizeof(CacheStart);
    for (size_t i = 0; i < file.n_blocks(); ++i) {
      at = aligned_block(at);
      table.push_back(file.block(i));
      stored.emplace_back(bytes.begin() + at, bytes.begin() + at + file.block(i).stored);
      at += file.block(i).stored;
    }
  }
  /// The first block of this kind, of layer `il` or later.
  size_t find(std::string_view kind, int il) const {
    for (size_t i = 0; i < table.size(); ++i) {
      if (table[i].il >= il && std::string_view(table[i].kind) == kind) return i;
    }
    return table.size();
  }
  std::vector<std::byte> file() const {
    std::vector<std::byte> out = start;
    for (const auto& block : stored) {
      out.resize(aligned_block(out.size()));
      out.insert(out.end(), block.begin(), block.end());
    }
    out.resize(aligned_block(out.size()));
    for (size_t i = 0; i < table.size(); ++i) {
      CacheBlock block = table[i];
      block.stored = stored[i].size();
      if (block.is_frame == 0) block.bytes = block.stored;
      const auto bytes = std::as_bytes(std::span(&block, 1));
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
    const CacheEnd end = {table.size(), 0};
    const auto bytes = std::as_bytes(std::span(&end, 1));
    out.insert(out.end(), bytes.begin(), bytes.end());
    return test::sealed(out);
  }

  std::vector<std::byte> start;
  std::vector<CacheBlock> table;
  std::vector<std::vector<std::byte>> stored;
};

/// The file with another frame in layer 0.
std::vector<std::byte> with_frame(const std::vector<std::byte>& bytes,
                                  const std::vector<std::byte>& frame) {
  Blocks blocks(bytes);
  blocks.stored[blocks.find("rows", 0)] = frame;
  return blocks.file();
}

/// The file of a session whose heads have these numbers of rows in every layer, for the last
/// tokens.
std::vector<std::byte> with_rows(const std::vector<std::byte>& bytes, const ModelInfo& info,
                                 DType type, int64_t n_past, const std::vector<int64_t>& n_rows) {
  Blocks blocks(bytes);
  const size_t counts_at = 24;  // after type, head_dim, n_head_kv
  const size_t rows_at = aligned_block(counts_at + n_rows.size() * sizeof(int64_t));
  const size_t row = info.head_dim * block_bytes(type);
  for (int il = 0; il < info.n_layer; ++il) {
    std::vector<std::byte>& block = blocks.stored[blocks.find("rows", il)];
    const std::vector<std::byte> old = block;
    block.resize(rows_at);
    std::memcpy(block.data() + counts_at, n_rows.data(), n_rows.size() * sizeof(int64_t));
    const auto add = [&](const void* data, size_t n) {
      const auto* const begin = static_cast<const std::byte*>(data);
      block.insert(block.end(), begin, begin + n);
    };
    for (int part = 0; part < 2; ++part) {  // keys, values: any
      for (const int64_t n : n_rows) {
        for (int64_t i = 0; i < n; ++i) add(old.data() + rows_at + i % 40 * row, row);
      }
    }
    for (const int64_t n : n_rows) {
      for (int64_t i = 0; i < n; ++i) {
        const auto pos = static_cast<int32_t>(n_past - n + i);
        add(&pos, sizeof(pos));
      }
    }
  }
  return blocks.file();
}

TEST(SessionFile, StatesOfAnotherKindAreRefused) {
  const auto model = test::load_model("gemma3");
  const SessionOptions options = small("snapkv", DType::f16, 0);
  const std::string path = temporary("kinds.session");
  Session session(model, options);
  session.prefill(test::generated_ids(90, model->info().n_vocab, 1));
  session.save(path);
  Blocks blocks(bytes_of(path));
  const size_t rows = blocks.find("rows", 0), window = blocks.find("window", 0);
  ASSERT_LT(std::max(rows, window), blocks.table.size()) << "the model has layers of both kinds";
  for (const auto& [block, kind] : {std::pair{rows, "window"}, {window, "rows"}, {rows, "later"}}) {
    Blocks other = blocks;
    std::memset(other.table[block].kind, 0, sizeof(other.table[block].kind));
    std::memcpy(other.table[block].kind, kind, std::strlen(kind));
    write_bytes(path, other.file());
    Session loaded(model, options);
    expect_error(ErrorCode::kBadModel, {"kinds.session", kind, "expected block"},
                 [&] { loaded.load(path); });
  }
}

// If a head has a single row, there is nothing to choose from besides the window, which has at
// least one.
TEST(SessionFile, ACacheThatCannotBeCompressedAgainSaysSo) {
  const auto model = test::load_model("tiny-f32");
  SessionOptions options = small("snapkv", DType::f16, 60);
  const std::string path = temporary("limit.session");
  Session session(model, options);
  session.prefill(tokens(150));
  session.save(path, "notes", 0);
  const std::vector<std::byte> whole = bytes_of(path);
  const int64_t n_head_kv = model->info().n_head_kv;
  std::vector<int64_t> n_rows(n_head_kv, 60);
  const auto write_rows = [&] {
    write_bytes(path, with_rows(whole, model->info(), options.kv_type, 150, n_rows));
  };
  write_rows();
  Session possible(model, options);
  possible.load(path);
  possible.decode(7);
  EXPECT_EQ(possible.stats().n_recompressed, 1);
  n_rows.assign(n_head_kv, 120);
  n_rows[0] = 1;
  write_rows();
  Session loaded(model, options);
  loaded.load(path);
  for (int i = 0; i < 2; ++i) {  // and the session is unchanged
    expect_error(ErrorCode::kRuntime, {"layer 0", "compressed again", "1 rows"},
                 [&] { loaded.decode(7); });
    EXPECT_EQ(loaded.n_past(), 150);
  }
}

// The checksum does not protect against files that were made to do harm.
TEST(SessionFile, FramesThatLieAreFound) {
  const auto model = test::load_model("tiny-f32");
  const SessionOptions options = small("full", DType::f16, 0);
  const std::string path = temporary("frames.session");
  Session session(model, options);
  session.prefill(tokens(64));
  session.save(path, "notes", 3);
  const std::vector<std::byte> whole = bytes_of(path);
  const Blocks blocks(whole);
  const size_t block = blocks.find("rows", 0), n = blocks.table[block].bytes;
  const std::vector<std::byte> frame = blocks.stored[block];
  const auto expect_refused = [&](const std::vector<std::byte>& other, std::string_view why) {
    SCOPED_TRACE(why);
    write_bytes(path, with_frame(whole, other));
    Session loaded(model, options);
    expect_error(ErrorCode::kBadModel, {"frames.session", why}, [&] { loaded.load(path); });
    EXPECT_EQ(loaded.n_past(), 0);
  };
  write_bytes(path, with_frame(whole, frame));
  Session(model, options).load(path);

  const auto zeros = [](size_t bytes) { return make_zstd_frame(std::vector<std::byte>(bytes), 1); };
  const std::vector<std::byte> bomb = zeros(size_t{64} << 20);
  EXPECT_LT(bomb.size(), 100'000u);
  expect_refused(bomb, "its zstd frame 67108864");
  expect_refused(zeros(n - 1), "its zstd frame");
  expect_refused(zeros(n), "head 0 has 0 rows");
  expect_refused(std::vector<std::byte>(20), "no zstd frame");
  expect_refused({frame.begin(), frame.begin() + 5}, "no zstd frame");
  expect_refused({frame.begin(), frame.end() - 1}, "zstd frame of block");
  std::vector<std::byte> other = frame;
  other.push_back({});
  expect_refused(other, "does not take");
  other = frame;
  other.insert(other.end(), frame.begin(), frame.end());
  expect_refused(other, "does not take");
  // The frame states the right size but contains more: both sizes are stored in the same bytes.
  other = zeros(n + 4000);
  std::vector<std::byte> right = zeros(n);
  ASSERT_GT(n, 256u);
  ASSERT_LT(n + 4000, 65536u);
  std::copy(right.begin(), right.begin() + 8, other.begin());
  expect_refused(other, "zstd frame of block");
  uint32_t random = 1;
  for (int i = 0; i < 300; ++i) {  // damage that is not found only changes values of rows
    random = random * 1664525 + 1013904223;
    other = frame;
    other[random % other.size()] ^= static_cast<std::byte>(1 << (random >> 29));
    write_bytes(path, with_frame(whole, other));
    try {
      Session(model, options).load(path);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kBadModel) << e.what();
    }
  }
}

// As in a fuzzer, with a fixed seed: changed bytes, sizes near limits, parts cut out or repeated.
TEST(SessionFile, HostileFilesEndInErrors) {
  const auto model = test::load_model("tiny-f32");
  std::vector<std::vector<std::byte>> seeds;
  for (const int i : {0, 1, 2, 3}) {
    Session session(model, small("snapkv", DType::f16, i % 2 == 0 ? 0 : 60));
    session.prefill(tokens(12));
    const std::string path = temporary("seed.session");
    session.save(path, "notes", i / 2 * 5);
    seeds.push_back(bytes_of(path));
    EXPECT_TRUE(test::read_hostile_session(seeds.back(), model));
  }
  for (const int zstd_level : {0, 3}) {  // files of uncompressed rows
    Session session(model, small("snapkv", DType::f16, 0));
    PrefillPrompt prompt;
    prompt.sessions = {&session};
    prompt.tokens = tokens(12);
    prompt.makes_prefix = true;
    Prefill prefill(std::move(prompt));
    while (!prefill.step()) {
    }
    const std::string path = temporary("seed.prefix");
    prefill.take_prefix()->save(path, DType::f16, "notes", zstd_level);
    seeds.push_back(bytes_of(path));
    EXPECT_TRUE(test::read_hostile_session(seeds.back(), model));
  }
  constexpr uint64_t kSizes[] = {0, 1, 0x7fffffff, 0xffffffff, ~0ull, ~0ull >> 1, 1ull << 60};
  std::mt19937 random(20240414);
  int n_whole = 0;
  for (int i = 0; i < 6000; ++i) {
    std::vector<std::byte> bytes = seeds[i % seeds.size()];
    for (auto n = 1 + random() % 3; n > 0; --n) {
      // Mostly in the header, which has the sizes.
      const size_t at = random() % (random() % 2 == 0 ? 500 : bytes.size());
      if (at + sizeof(uint64_t) > bytes.size()) continue;
      const uint64_t value = kSizes[random() % std::size(kSizes)];
      switch (random() % 5) {
        case 0:
          bytes[at] = static_cast<std::byte>(random());
          break;
        case 1:
          std::memcpy(bytes.data() + at, &value, sizeof(value));
          break;
        case 2:  // the fields that follow move
          std::rotate(bytes.begin() + at, bytes.begin() + at + 1 + random() % 7,
                      bytes.begin() + std::min(at + 64, bytes.size()));
          break;
        case 3:
          bytes.erase(bytes.begin() + at, bytes.begin() + at + 1 + random() % 8);
          break;
        default:
          bytes.insert(bytes.begin() + at, static_cast<std::byte>(random()));
      }
    }
    n_whole += test::read_hostile_session(std::vector<std::byte>(bytes), model) ? 1 : 0;
  }
  EXPECT_GT(n_whole, 20) << "no changes that leave a session: notes, for example";
  EXPECT_LT(n_whole, 5000);
}

}  // namespace
}  // namespace snapkv
