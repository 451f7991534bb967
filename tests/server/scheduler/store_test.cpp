// SPDX-License-Identifier: MIT
// The store: what requests reserve comes first, and what is kept goes, the least valuable first.
#include "server/scheduler/store.h"

#include <gtest/gtest.h>

#include "tests/server/scheduler/parts.h"
#include "tests/support/expect_error.h"

namespace snapkv::server {
namespace {

KeptSession kept_of(int64_t id, size_t bytes) {
  KeptSession kept;
  kept.id = id;
  kept.session = std::make_unique<Session>(model(), SessionOptions{});
  kept.bytes = bytes;
  return kept;
}

std::vector<int64_t> ids_in(const Store& store) {
  std::vector<SlotInfo> slots;
  store.list(slots);
  std::vector<int64_t> ids;
  for (const SlotInfo& slot : slots) ids.push_back(slot.id);
  return ids;
}

SchedulerStats stats_of(const Store& store) {
  SchedulerStats stats;
  store.count(stats);
  return stats;
}

TEST(Store, DropsWhatIsWorthLeastAndNoMoreThanItMust) {
  const auto prefix = prefix_of(long_text(20));
  const size_t bytes = prefix->bytes();
  Store store(bytes + 600, bytes);
  store.add_prefix(prefix_of(long_text(20)), 0);
  store.keep(kept_of(1, 300));
  store.keep(kept_of(2, 300));
  EXPECT_EQ(store.free_for_requests(), bytes + 600) << "all that is kept can be dropped";
  Reservation first, second, third;
  ASSERT_TRUE(store.reserve(first, {.running = 1}));
  EXPECT_EQ(ids_in(store), (std::vector<int64_t>{2})) << "the one that was used last stays";
  ASSERT_TRUE(store.reserve(second, {.running = 200, .reading = 99}));
  EXPECT_EQ(ids_in(store), (std::vector<int64_t>{2})) << "that much was free";
  ASSERT_TRUE(store.reserve(third, {.running = 1}));
  EXPECT_TRUE(ids_in(store).empty());
  EXPECT_EQ(stats_of(store).n_prefixes, 1);
  ASSERT_TRUE(store.reserve(third, {.running = 300}));
  EXPECT_EQ(stats_of(store).n_prefixes, 0);
  EXPECT_EQ(stats_of(store).bytes_prefixes, 0u);
  EXPECT_EQ(stats_of(store).bytes_running, 601u);
}

TEST(Store, CountsSharedRowsOnce) {
  const std::string text = long_text(20);
  const auto first = prefix_of(text);
  const auto longer = prefix_of(text + long_text(8, 50), first);
  const auto other = prefix_of(text + long_text(10, 90), first);
  const KvPrefix* const both[] = {longer.get(), other.get()};
  const size_t bytes = KvPrefix::bytes(both);
  ASSERT_LT(bytes, longer->bytes() + other->bytes());
  Store store(bytes, bytes);
  store.add_prefix(first, 0);
  store.add_prefix(longer, 0);
  EXPECT_EQ(stats_of(store).n_prefixes, 1) << "it goes on from the first one";
  EXPECT_EQ(stats_of(store).bytes_prefixes, longer->bytes());
  store.add_prefix(other, 0);
  EXPECT_EQ(stats_of(store).n_prefixes, 2);
  EXPECT_EQ(stats_of(store).bytes_prefixes, bytes);
}

TEST(Store, NeverTakesWhatIsInUse) {
  const std::string text = long_text(20);
  const auto prefix = prefix_of(text);
  const size_t bytes = prefix->bytes();
  Store store(bytes, bytes);
  store.add_prefix(prefix_of(text), 0);
  Reservation request;
  {
    const PrefixStore::Match match = store.find_prefix(prefix->tokens(), 0);
    ASSERT_TRUE(match.prefix);
    EXPECT_FALSE(store.reserve(request, {.running = 1}));
    EXPECT_EQ(stats_of(store).bytes_running, 0u) << "nothing was reserved";
    EXPECT_EQ(stats_of(store).n_prefixes, 1);
  }
  EXPECT_TRUE(store.reserve(request, {.running = bytes}));
  Reservation other;
  EXPECT_FALSE(store.reserve(other, {.running = 1}));
  store.keep(kept_of(1, 1));
  EXPECT_TRUE(ids_in(store).empty()) << "a finished conversation takes nothing from a request";
}

TEST(Store, ReservedBytesComeBack) {
  Store store(100, 0);
  {
    Reservation request;
    ASSERT_TRUE(store.reserve(request, {.running = 50, .reading = 30, .prefix = 20}));
    EXPECT_EQ(store.free_for_requests(), 0u);
    request.end_reading();
    EXPECT_EQ(store.free_for_requests(), 50u);
    store.hold(request, {.reading = 60});
    EXPECT_EQ(store.free_for_requests(), 0u) << "held though it does not fit";
    EXPECT_EQ(stats_of(store).bytes_running, 110u);
  }
  EXPECT_EQ(store.free_for_requests(), 100u);
}

TEST(Store, LentSessionsStayCounted) {
  Store store(100, 0);
  store.keep(kept_of(7, 60));
  test::expect_error(ErrorCode::kUsage, {"slot 8", "saved"}, [&] { store.lend(8); });
  EXPECT_FALSE(store.has_lent());
  KeptSession lent = store.lend(7);
  EXPECT_TRUE(store.has_lent());
  EXPECT_EQ(ids_in(store), (std::vector<int64_t>{7}));
  test::expect_error(ErrorCode::kUsage, {"slot 7", "erased"}, [&] { store.erase(7); });
  Reservation request;
  EXPECT_EQ(store.free_for_requests(), 40u);
  EXPECT_FALSE(store.reserve(request, {.running = 41}));
  store.take_back(std::move(lent));
  EXPECT_FALSE(store.has_lent());
  EXPECT_TRUE(store.reserve(request, {.running = 41}));
  EXPECT_TRUE(ids_in(store).empty());
}

TEST(Store, RestoredSessionsTakeThePlaceOfTheirFiles) {
  Store store(100, 0);
  Reservation request;
  ASSERT_TRUE(store.reserve(request, {.running = 20}));
  test::expect_error(ErrorCode::kDoesNotFit, {"a.kv: 3 MiB; 0 MiB are free"},
                     [&] { store.reserve_file(size_t{3} << 20, "a.kv"); });
  EXPECT_EQ(stats_of(store).bytes_kept, 0u);
  store.reserve_file(80, "a.kv");
  EXPECT_TRUE(store.has_lent());
  EXPECT_EQ(store.free_for_requests(), 0u);
  store.add_restored(kept_of(3, 70), 80, "a.kv");
  EXPECT_FALSE(store.has_lent());
  EXPECT_EQ(stats_of(store).bytes_kept, 70u);
  store.erase(3);
  EXPECT_EQ(stats_of(store).bytes_kept, 0u);
  store.reserve_file(80, "b.kv");
  store.release_file(80);
  EXPECT_EQ(store.free_for_requests(), 80u);
}

}  // namespace
}  // namespace snapkv::server
