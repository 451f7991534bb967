// SPDX-License-Identifier: MIT
// snapkv pull when something goes wrong: connections that break, servers that fail or lie, a disk
// that is too small, a signal. What was fetched is continued, and nothing wrong is kept.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "pull_support.h"
#include "run_process.h"

namespace snapkv::test {
namespace pull_failure_tests {

namespace fs = std::filesystem;

constexpr const char* kRepo = "acme/needle-GGUF";
constexpr int64_t kMiB = 1 << 20;

struct Hub : FakeHub {
  Hub() { repos[kRepo]["needle-Q4_K_M.gguf"] = {.content = needle()}; }
};

std::string blob_of(const Environment& env) {
  return FakeHub::folder(env, kRepo) + "/blobs/" + sha256_of(needle());
}

/// The bytes that wait to be continued.
int64_t bytes_kept(const Environment& env) {
  const fs::path path = blob_of(env) + ".incomplete";
  return fs::exists(path) ? static_cast<int64_t>(fs::file_size(path)) : -1;
}

void expect_whole(const Environment& env) {
  EXPECT_EQ(read_file(blob_of(env)), needle());
  EXPECT_EQ(bytes_kept(env), -1);
}

TEST(PullFailure, GoesOnWhereAConnectionBroke) {
  Hub hub;
  hub.n_breaks = 3;
  hub.break_after = kMiB;
  const Environment env = hub.environment();
  const Result r = pull(env, kRepo, {"--retries", "1"});  // progress between breaks counts
  ASSERT_EQ(r.code, 0) << r.err;
  expect_whole(env);
  EXPECT_TRUE(says(r.err, "trying again in 1 s (1 of 1)")) << r.err;
  std::vector<std::string> ranges;
  for (const FakeHub::Request& request : hub.requests()) {
    if (!request.to_hub) ranges.push_back(request.range);
  }
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(ranges[0], "");
  EXPECT_EQ(ranges[1], "bytes=1048576-");
  EXPECT_EQ(ranges[3], "bytes=3145728-");
}

TEST(PullFailure, GivesUpAndTheNextRunGoesOn) {
  Hub hub;
  hub.n_breaks = 100;
  hub.break_after = 2 * kMiB;
  const Environment env = hub.environment();
  const Result r = pull(env, kRepo, {"--retries", "0"});
  EXPECT_EQ(r.code, 1);
  for (const char* part : {"2.0 MiB of 5.0 MiB are kept", "snapkv pull acme/needle-GGUF goes on"}) {
    EXPECT_TRUE(says(r.err, part)) << part << "\n" << r.err;
  }
  EXPECT_EQ(bytes_kept(env), 2 * kMiB);
  EXPECT_FALSE(fs::exists(FakeHub::folder(env, kRepo) + "/refs/main"));
  EXPECT_TRUE(fetched_models(env).empty());
  hub.break_after = 0;  // no progress at all
  EXPECT_EQ(pull(env, kRepo, {"--retries", "1"}).code, 1);
  hub.n_breaks = 0;
  hub.forget_requests();
  const Result next = pull(env, kRepo);
  ASSERT_EQ(next.code, 0) << next.err;
  EXPECT_TRUE(says(next.err, "2.0 MiB of it there")) << next.err;
  EXPECT_EQ(hub.requests().back().range, "bytes=2097152-");
  expect_whole(env);
}

TEST(PullFailure, BeginsAnewWhereAServerHasNoRanges) {
  Hub hub;
  hub.ignores_ranges = true;
  hub.n_breaks = 1;
  hub.break_after = kMiB;
  const Environment env = hub.environment();
  const Result r = pull(env, kRepo, {"--retries", "1"});
  ASSERT_EQ(r.code, 0) << r.err;
  expect_whole(env);
}

TEST(PullFailure, WaitsAsLongAsABusyServerAsks) {
  Hub hub;
  const Environment env = hub.environment();
  for (const int status : {429, 503}) {
    hub.failing_status = status;
    hub.n_failures = 2;
    const Result r = pull(env, kRepo, {"--retries", "2"});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_TRUE(says(r.err, "HTTP status " + std::to_string(status) + "; trying again in 0 s"))
        << r.err;
    fs::remove_all(FakeHub::folder(env, kRepo));
  }
  hub.n_failures = 1;
  hub.retry_after = "100000";
  const Result longer = pull(env, kRepo);
  EXPECT_EQ(longer.code, 1) << longer.err;
  hub.n_failures = 1;
  hub.failing_status = 418;
  const Result other = pull(env, kRepo);
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(says(other.err, "HTTP status 418")) << other.err;
}

TEST(PullFailure, DeletesWhatHasAWrongHash) {
  Hub hub;
  hub.repos[kRepo]["needle-Q4_K_M.gguf"].said_sha256 = std::string(64, '0');
  const Environment env = hub.environment();
  const Result r = pull(env, kRepo);
  EXPECT_EQ(r.code, 1);
  for (const std::string& part : {"expected SHA-256 " + std::string(64, '0'),
                                  "found " + sha256_of(needle()), std::string("is deleted")}) {
    EXPECT_TRUE(says(r.err, part)) << part << "\n" << r.err;
  }
  EXPECT_TRUE(files_below(FakeHub::folder(env, kRepo)).empty());
  EXPECT_TRUE(fetched_models(env).empty());
}

TEST(PullFailure, APartThatWasDamagedIsFoundAtTheEnd) {
  Hub hub;
  hub.n_breaks = 1;
  hub.break_after = kMiB;
  const Environment env = hub.environment();
  ASSERT_EQ(pull(env, kRepo, {"--retries", "0"}).code, 1);
  std::string part = read_file(blob_of(env) + ".incomplete");
  part[1000] = static_cast<char>(part[1000] + 1);
  std::filesystem::copy_file(make_file("part", part), blob_of(env) + ".incomplete",
                             fs::copy_options::overwrite_existing);
  EXPECT_TRUE(says(pull(env, kRepo).err, "expected SHA-256"));
  EXPECT_EQ(pull(env, kRepo).code, 0);
  expect_whole(env);
}

TEST(PullFailure, RefusesMoreThanWasAnnounced) {
  Hub hub;
  hub.repos[kRepo]["needle-Q4_K_M.gguf"].said_bytes = 2 * kMiB;
  const Environment env = hub.environment();
  const Result r = pull(env, kRepo);
  EXPECT_EQ(r.code, 1);
  EXPECT_TRUE(says(r.err, "expected 2097152 bytes, found more")) << r.err;
  EXPECT_EQ(bytes_kept(env), -1);
}

TEST(PullFailure, RefusesAPageInPlaceOfAModel) {
  Hub hub;
  hub.repos[kRepo]["needle-Q4_K_M.gguf"] = {.content = "<!DOCTYPE html><p>Please log in</p>"};
  hub.files["login.gguf"] = {.content = "<!DOCTYPE html><p>Please log in</p>"};
  const Environment env = hub.environment();
  for (const std::string& source : {std::string(kRepo), hub.url("login.gguf")}) {
    const Result r = pull(env, source);
    EXPECT_EQ(r.code, 1) << source;
    EXPECT_TRUE(says(r.err, "expected a GGUF file, found one that begins with '<!DOCTYPE"))
        << r.err;
  }
}

TEST(PullFailure, RefusesWhatDoesNotFitOnTheDisk) {
  Hub hub;
  hub.repos[kRepo]["needle-Q4_K_M.gguf"].said_bytes = uint64_t{1} << 50;
  const Environment env = hub.environment();
  const Result r = pull(env, kRepo);
  EXPECT_EQ(r.code, 1);
  EXPECT_TRUE(says(r.err, "needle-Q4_K_M.gguf needs 1.0 PiB on the disk of")) << r.err;
  EXPECT_TRUE(says(r.err, " free")) << r.err;
  EXPECT_EQ(hub.n_fetches(), 0);
  EXPECT_FALSE(fs::exists(FakeHub::folder(env, kRepo)));
}

TEST(PullFailure, SaysWhyAccessIsRefused) {
  Hub hub;
  hub.needs_token = "hf_right";
  Environment env = hub.environment();
  const auto refuses = [&](const std::string& source, const std::vector<std::string>& parts) {
    const Result r = pull(env, source);
    EXPECT_EQ(r.code, 1) << source;
    for (const std::string& part : parts) EXPECT_TRUE(says(r.err, part)) << part << "\n" << r.err;
    EXPECT_FALSE(says(r.err, "hf_")) << r.err;
  };
  refuses(kRepo, {"acme/needle-GGUF is gated", "set HF_TOKEN", hub.endpoint()});
  refuses("acme/nothing", {"has no repository acme/nothing, or it is private", "set HF_TOKEN"});
  env["HF_TOKEN"] = "hf_wrong";
  refuses(kRepo, {"is gated", "The account of HF_TOKEN has none"});
  hub.is_private = true;
  refuses(kRepo, {"has no repository", "HF_TOKEN gives no access"});
  refuses(hub.endpoint() + "/acme/needle-GGUF/resolve/main/x.gguf", {"HF_TOKEN gives no access"});
  env["HF_TOKEN"] = "hf_right";
  EXPECT_EQ(pull(env, kRepo).code, 0);
  refuses(hub.endpoint() + "/acme/needle-GGUF/tree/v7", {"has no revision 'v7'"});
}

TEST(PullFailure, SaysThatThereIsNoServer) {
  const Environment env = {{"HOME", make_folder()}, {"HF_ENDPOINT", "http://127.0.0.1:1"}};
  const Result r = pull(env, kRepo);
  EXPECT_EQ(r.code, 1);
  EXPECT_TRUE(says(r.err, "127.0.0.1")) << r.err;
  const Result endpoint = pull({{"HF_ENDPOINT", "huggingface.co"}}, kRepo);
  EXPECT_EQ(endpoint.code, 2);
  EXPECT_TRUE(says(endpoint.err, "HF_ENDPOINT: expected an https URL")) << endpoint.err;
  const Result url = pull(env, "http://127.0.0.1:2/a.gguf");
  EXPECT_EQ(url.code, 1);
  EXPECT_TRUE(says(url.err, "http://127.0.0.1:2/a.gguf")) << url.err;
  const Hub hub;
  const Result missing = pull(env, hub.url("none.gguf"));
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(says(missing.err, "none.gguf: expected a file, found HTTP status 404"))
      << missing.err;
}

TEST(PullFailure, IgnoresFilesThatWouldLeaveTheirFolder) {
  Hub hub;
  hub.repos["acme/hostile"] = {{"../../../evil.gguf", {.content = needle()}},
                               {"/etc/evil.gguf", {.content = needle()}},
                               {"a/../evil.gguf", {.content = needle()}},
                               {"no-hash.gguf", {.content = needle(), .is_large = false}},
                               {"bad-hash.gguf", {.content = needle(), .said_sha256 = "../x"}}};
  const Environment env = hub.environment();
  const Result r = pull(env, "acme/hostile");
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(says(r.err, "has no GGUF file")) << r.err;
  EXPECT_TRUE(files_below(env.at("HOME")).empty());
  hub.commit = "../../x";
  EXPECT_TRUE(says(pull(env, kRepo).err, "expected the commit of revision 'main'"));
}

TEST(PullFailure, CtrlCKeepsWhatIsThere) {
  Hub hub;
  hub.is_slow = true;
  const Environment env = hub.environment();
  Command command;
  command.args = {"pull", kRepo};
  command.env = env;
  command.interrupt_when = [&](const std::string&, const std::string&) {
    return bytes_kept(env) >= kMiB;
  };
  const Result r = run(command);
  EXPECT_EQ(r.code, 130) << r.err;
  EXPECT_TRUE(says(r.err, "stopped by Ctrl-C: 1.0 MiB of 5.0 MiB are kept")) << r.err;
  EXPECT_TRUE(says(r.err, "snapkv pull acme/needle-GGUF goes on from there")) << r.err;
  EXPECT_EQ(bytes_kept(env), kMiB);
  hub.is_slow = false;
  EXPECT_EQ(pull(env, kRepo).code, 0);
  expect_whole(env);
}

TEST(PullFailure, OneProcessAtATimeFetchesAFile) {
  Hub hub;
  hub.is_slow = true;
  const Environment env = hub.environment();
  std::atomic<bool> is_second_done = false;
  Command first;
  first.args = {"pull", kRepo};
  first.env = env;
  first.interrupt_when = [&](const std::string&, const std::string&) {
    return is_second_done.load();
  };
  auto result = std::async(std::launch::async, [&] { return run(first); });
  while (bytes_kept(env) < kMiB) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Result second = pull(env, kRepo);
  is_second_done = true;
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(says(second.err, "is fetching it")) << second.err;
  EXPECT_EQ(result.get().code, 130);
  EXPECT_EQ(bytes_kept(env), kMiB);
}

TEST(PullFailure, AUrlIsContinuedOnlyIfTheFileIsTheSame) {
  Hub hub;
  hub.files["a.gguf"] = {.content = needle()};
  hub.break_after = kMiB;
  const Environment env = hub.environment();
  const std::string folder = env.at("HOME") + "/.cache/snapkv/models";
  const auto break_once = [&] {
    // the first request only asks for the size
    hub.n_breaks = 2;
    EXPECT_EQ(pull(env, hub.url("a.gguf"), {"--retries", "0"}).code, 1);
    hub.n_breaks = 0;
  };
  break_once();
  hub.forget_requests();
  ASSERT_EQ(pull(env, hub.url("a.gguf")).code, 0);
  EXPECT_EQ(hub.requests().back().range, "bytes=1048576-");
  EXPECT_EQ(read_file(folder + "/a.gguf"), needle());
  fs::remove(folder + "/a.gguf");
  break_once();
  std::string other = needle();
  other[5000000] = static_cast<char>(other[5000000] + 1);
  hub.files["a.gguf"] = {.content = other};  // as long, but another ETag
  hub.forget_requests();
  ASSERT_EQ(pull(env, hub.url("a.gguf")).code, 0);
  EXPECT_EQ(hub.requests().back().range, "");
  EXPECT_EQ(read_file(folder + "/a.gguf"), other);
  for (const std::string& name : files_below(folder)) {
    EXPECT_FALSE(name.ends_with(".incomplete")) << name;
  }
}

}  // namespace pull_failure_tests
}  // namespace snapkv::test
