// SPDX-License-Identifier: MIT
// The memory and processors that control groups leave. The tests make the system's files in a
// folder of their own, as they are in containers, services and plain machines.
// tests/engine/control_group_test.cpp uses a real control group.
#include "base/control_group.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "base/available_memory.h"

namespace snapkv {
namespace {

constexpr size_t kMib = size_t{1} << 20;
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

/// The mounts of a machine with only version 2, and of one with both versions, where version 1 has
/// the memory controller.
const std::string kMounts2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
const std::string kMounts1 =
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

std::string mib_text(size_t mib) { return std::to_string(mib * kMib) + "\n"; }

/// The available bytes for a group's limit and the part of it that is left, both in MiB: some must
/// stay free.
constexpr size_t left(size_t limit, size_t leaves) {
  return leaves * kMib - 2 * kMib - limit * kMib / 64;
}

/// Makes the folder of a machine that has 1000 MiB available and these files.
std::string machine(const std::map<std::string, std::string>& files) {
  const auto root = std::filesystem::path(::testing::TempDir()) / "control_group_test";
  std::filesystem::remove_all(root);
  std::map<std::string, std::string> all = {
      {"proc/meminfo", "MemTotal:       9000000 kB\nMemFree: 5 kB\nMemAvailable:   1024000 kB\n"}};
  all.insert(files.begin(), files.end());
  for (const auto& [name, text] : all) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name, std::ios::binary) << text;
  }
  return root.string();
}
size_t available(const std::map<std::string, std::string>& files) {
  return available_memory(machine(files));
}
std::optional<int> quota(const std::map<std::string, std::string>& files) {
  return processor_quota(machine(files));
}

TEST(AvailableMemoryTest, IsTheMachinesWhereNoGroupHasALimit) {
  EXPECT_EQ(available({}), 1000 * kMib);
  EXPECT_EQ(available({{"proc/self/cgroup", "0::/\n"}, {"proc/self/mountinfo", kMounts2}}),
            1000 * kMib);
  EXPECT_EQ(available({{"proc/self/cgroup", "0::/user.slice\n"},
                       {"proc/self/mountinfo", kMounts2},
                       {"sys/fs/cgroup/user.slice/memory.max", "max\n"},
                       {"sys/fs/cgroup/user.slice/memory.current", mib_text(700)}}),
            1000 * kMib);
  // The value in version 1 if there is no limit.
  EXPECT_EQ(available({{"proc/self/cgroup", "4:memory:/a\n0::/\n"},
                       {"proc/self/mountinfo", kMounts1},
                       {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"},
                       {"sys/fs/cgroup/memory/a/memory.usage_in_bytes", mib_text(700)}}),
            1000 * kMib);
  EXPECT_EQ(available_memory("/nowhere"), kUnlimited);
}

TEST(AvailableMemoryTest, TakesTheLeastOfAllGroupsAroundTheProcess) {
  std::map<std::string, std::string> files = {
      {"proc/self/cgroup", "0::/system.slice/snapkv.service\n"},
      {"proc/self/mountinfo", kMounts2},
      {"sys/fs/cgroup/system.slice/memory.max", mib_text(600)},
      {"sys/fs/cgroup/system.slice/memory.current", mib_text(500)},
      {"sys/fs/cgroup/system.slice/snapkv.service/memory.max", mib_text(400)},
      {"sys/fs/cgroup/system.slice/snapkv.service/memory.current", mib_text(100)},
      {"sys/fs/cgroup/other.slice/memory.max", mib_text(1)},
  };
  EXPECT_EQ(available(files), left(600, 100));
  files["sys/fs/cgroup/system.slice/memory.current"] = mib_text(200);
  EXPECT_EQ(available(files), left(400, 300));
  files["sys/fs/cgroup/system.slice/memory.max"] = "max\n";
  EXPECT_EQ(available(files), left(400, 300));
  files["sys/fs/cgroup/system.slice/snapkv.service/memory.current"] = mib_text(401);
  EXPECT_EQ(available(files), 0);
}

TEST(AvailableMemoryTest, CachedPagesOfFilesAreNotUsed) {
  EXPECT_EQ(available({{"proc/self/cgroup", "0::/a\n"},
                       {"proc/self/mountinfo", kMounts2},
                       {"sys/fs/cgroup/a/memory.max", mib_text(400)},
                       {"sys/fs/cgroup/a/memory.current", mib_text(390)},
                       {"sys/fs/cgroup/a/memory.stat",
                        "anon 5\nfile 9\ninactive_anon 1\nactive_file " + mib_text(200) +
                            "inactive_file " + mib_text(40) + "unevictable 0\n"}}),
            left(400, 250));
  // Version 1 counts the groups below in separate lines.
  EXPECT_EQ(available({{"proc/self/cgroup", "7:cpu:/c\n4:memory,x:/a/b\n0::/z\n"},
                       {"proc/self/mountinfo", kMounts1},
                       {"sys/fs/cgroup/memory/a/memory.limit_in_bytes", mib_text(400)},
                       {"sys/fs/cgroup/memory/a/memory.usage_in_bytes", mib_text(390)},
                       {"sys/fs/cgroup/memory/a/memory.stat",
                        "active_file 1\ninactive_file 2\ntotal_inactive_file " + mib_text(30) +
                            "total_active_file " + mib_text(7)},
                       {"sys/fs/cgroup/memory/c/memory.limit_in_bytes", mib_text(1)}}),
            left(400, 47));
}

TEST(AvailableMemoryTest, FindsAContainersOwnGroup) {
  // Version 1: the container's group is mounted, and /proc names it as on the host.
  const std::string mounted =
      "35 31 0:32 /docker/123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
  std::map<std::string, std::string> files = {
      {"proc/self/cgroup", "4:memory:/docker/123/inner\n"},
      {"proc/self/mountinfo", mounted},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", mib_text(300)},
      {"sys/fs/cgroup/memory/memory.usage_in_bytes", mib_text(100)},
      {"sys/fs/cgroup/memory/inner/memory.limit_in_bytes", mib_text(50)},
      {"sys/fs/cgroup/memory/inner/memory.usage_in_bytes", mib_text(20)},
  };
  EXPECT_EQ(available(files), left(50, 30));
  files["proc/self/cgroup"] = "4:memory:/docker/123\n";
  EXPECT_EQ(available(files), left(300, 200));
  files["proc/self/cgroup"] = "4:memory:/docker/1234\n";  // not below the mounted group
  EXPECT_EQ(available(files), left(300, 200));
  // Version 2 with its own namespace; a process that was moved out of it is at "/..".
  for (const std::string group : {"0::/\n", "0::/../other\n", "0::/gone\n", ""}) {
    EXPECT_EQ(available({{"proc/self/cgroup", group},
                         {"proc/self/mountinfo", kMounts2},
                         {"sys/fs/cgroup/memory.max", mib_text(64)},
                         {"sys/fs/cgroup/memory.current", mib_text(60)}}),
              left(64, 4))
        << group;
  }
}

TEST(AvailableMemoryTest, DamagedFilesAreNoLimit) {
  for (const std::string mounts :
       {"", "35", "- cgroup2 cgroup2 rw\n", "1 2 3 / /x rw - cgroup2\n", "\n \n-\n- - -\n"}) {
    EXPECT_EQ(available({{"proc/self/cgroup", "0\n0:\n:::\n"}, {"proc/self/mountinfo", mounts}}),
              1000 * kMib)
        << mounts;
  }
  EXPECT_EQ(available({{"proc/self/cgroup", "0::/\n"},
                       {"proc/self/mountinfo", kMounts2},
                       {"sys/fs/cgroup/memory.max", "-5\n"}}),
            1000 * kMib);
}

TEST(ProcessorQuotaTest, IsTheLeastOfAllGroupsRoundedUp) {
  std::map<std::string, std::string> files = {
      {"proc/self/cgroup", "0::/pod/container\n"},
      {"proc/self/mountinfo", kMounts2},
      {"sys/fs/cgroup/pod/cpu.max", "400000 100000\n"},
      {"sys/fs/cgroup/pod/container/cpu.max", "150000 100000\n"},
  };
  EXPECT_EQ(quota(files), 2);
  files["sys/fs/cgroup/pod/container/cpu.max"] = "10000 100000\n";
  EXPECT_EQ(quota(files), 1);
  files["sys/fs/cgroup/pod/container/cpu.max"] = "max 100000\n";
  EXPECT_EQ(quota(files), 4);
  files["sys/fs/cgroup/pod/cpu.max"] = "9223372036854775807 1\n";
  EXPECT_EQ(quota(files), 1 << 20);
  for (const char* damaged : {"", "max", "5", "0 0", "-5 100000", "100000 0", "x y"}) {
    files["sys/fs/cgroup/pod/cpu.max"] = damaged;
    EXPECT_EQ(quota(files), std::nullopt) << damaged;
  }
  EXPECT_EQ(quota({}), std::nullopt);
  EXPECT_EQ(quota({{"proc/self/cgroup", "7:cpu:/c\n4:memory:/a\n0::/z\n"},
                   {"proc/self/mountinfo", kMounts1},
                   {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                   {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"},
                   {"sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "300000\n"},
                   {"sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n"},
                   {"sys/fs/cgroup/memory/a/cpu.cfs_quota_us", "100000\n"},
                   {"sys/fs/cgroup/memory/a/cpu.cfs_period_us", "100000\n"}}),
            3);
}

}  // namespace
}  // namespace snapkv
