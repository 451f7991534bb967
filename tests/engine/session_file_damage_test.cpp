// SPDX-License-Identifier: MIT
// Damaged and hostile files of sessions and prefixes: every one ends in an error that names it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <random>
#include <span>

#include "engine/files/cache_file.h"
#include "tests/engine/session_file_support.h"
#include "tests/fuzz/fuzz_session.h"
#include "tests/support/expect_error.h"

namespace snapkv {
namespace session_file_damage_tests {

using test::expect_error;

TEST(SessionFile, DamageIsFound) {
  const auto model = test::load_model("needle");
  const std::string path = temporary("whole.session"), damaged = temporary("damaged.session");
  Session session(model, small("snapkv", DType::f16, 0));
  session.prefill(tokens(64));
  const auto expect_damage = [&](const std::vector<std::byte>& bytes) {
    write_bytes(damaged, bytes);
    expect_error(ErrorCode::kBadModel, {"damaged.session"}, [&] { describe_session(damaged); });
  };
  session.save(path, "notes");
  const std::vector<std::byte> whole = bytes_of(path);
  for (size_t at = 0; at < whole.size(); at += at < 400 ? 1 : 997) {
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

/// The blocks of a file, to be changed and put together again.
struct Blocks {
  explicit Blocks(const std::vector<std::byte>& bytes)
      : start(bytes.begin(), bytes.begin() + sizeof(CacheStart)) {
    const CacheFile file(bytes, "whole", CacheContents::session);
    size_t at = sizeof(CacheStart);
    for (size_t i = 0; i < file.n_blocks(); ++i) {
      at = aligned_block(at);
      table.push_back(file.block(i));
      contents.emplace_back(bytes.begin() + at, bytes.begin() + at + file.block(i).bytes);
      at += file.block(i).bytes;
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
    for (const auto& block : contents) {
      out.resize(aligned_block(out.size()));
      out.insert(out.end(), block.begin(), block.end());
    }
    out.resize(aligned_block(out.size()));
    for (size_t i = 0; i < table.size(); ++i) {
      CacheBlock block = table[i];
      block.bytes = contents[i].size();
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
  std::vector<std::vector<std::byte>> contents;
};

/// The file of a session whose heads have these numbers of rows in every layer, for the last
/// tokens.
std::vector<std::byte> with_rows(const std::vector<std::byte>& bytes, const ModelInfo& info,
                                 DType type, int64_t n_past, const std::vector<int64_t>& n_rows) {
  Blocks blocks(bytes);
  const size_t counts_at = 24;  // after type, head_dim, n_head_kv
  const size_t rows_at = aligned_block(counts_at + n_rows.size() * sizeof(int64_t));
  const size_t row = info.head_dim * block_bytes(type);
  for (int il = 0; il < info.n_layer; ++il) {
    std::vector<std::byte>& block = blocks.contents[blocks.find("rows", il)];
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
  session.save(path, "notes");
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

// As in a fuzzer, with a fixed seed: changed bytes, sizes near limits, parts cut out or repeated.
TEST(SessionFile, HostileFilesEndInErrors) {
  const auto model = test::load_model("tiny-f32");
  std::vector<std::vector<std::byte>> seeds;
  for (const int64_t limit : {0, 60}) {
    Session session(model, small("snapkv", DType::f16, limit));
    session.prefill(tokens(12));
    const std::string path = temporary("seed.session");
    session.save(path, "notes");
    seeds.push_back(bytes_of(path));
    EXPECT_TRUE(test::read_hostile_session(seeds.back(), model));
  }
  {  // a file of uncompressed rows
    Session session(model, small("snapkv", DType::f16, 0));
    const auto prefix = read_with_rows(session, 12);
    const std::string path = temporary("seed.prefix");
    prefix->save(path, DType::f16, "notes");
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

}  // namespace session_file_damage_tests
}  // namespace snapkv
