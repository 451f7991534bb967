// SPDX-License-Identifier: MIT
// Snapshots: another thread writes their files, and their clients hear of it in the scheduler's.
#include "server/scheduler/snapshot_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "chat/document.h"
#include "snapkv/prefill.h"
#include "tests/server/scheduler/parts.h"

namespace snapkv::server {

using namespace chat;

namespace {

class Snapshots : public ::testing::Test {
 protected:
  std::unique_ptr<Job> read_job(const std::string& path, bool keeps_all) {
    Request request = request_of(long_text(60));
    request.keeps_all = keeps_all;
    parts_.add(request);
    Jobs read = parts_.read();
    read.front()->snapshot_path = path;
    read.front()->snapshot_notes = document_notes({}, "", "");
    client_ = read.front()->client;
    return std::move(read.front());
  }
  void wait_for_files() {
    while (!snapshots_.jobs().empty()) {
      queue_.wait(false);
      queue_.run_tasks();
    }
  }

  Parts parts_;
  DocumentStore documents_{model()};
  RequestQueue queue_{{.n_parallel = 1, .max_queue = 1}, 0};
  SnapshotWriter snapshots_{model(), documents_, parts_.store, queue_, parts_.counts};
  std::shared_ptr<RequestUpdates> client_;
};

TEST_F(Snapshots, AreWrittenWithTheirRows) {
  const std::string path = ::testing::TempDir() + "part.kv";
  for (const bool keeps_all : {false, true}) {
    std::unique_ptr<Job> job = read_job(path, keeps_all);
    snapshots_.write(std::move(job));
    ASSERT_EQ(snapshots_.jobs().size(), 1u);
    EXPECT_EQ(snapshots_.jobs().front()->memory.bytes().reading > 0, keeps_all)
        << "the document's rows are held until they are written";
    EXPECT_GT(parts_.stored().bytes_running, 0u);
    wait_for_files();
    EXPECT_EQ(parts_.stored().bytes_running, 0u);
    EXPECT_FALSE(wait_for(*client_).failure);
    EXPECT_EQ(is_prefix_file(path), keeps_all);
    EXPECT_EQ(documents_.open(path)->file.keeps_all, keeps_all);
  }
}

TEST_F(Snapshots, ThatCannotBeWrittenFailAlone) {
  snapshots_.write(read_job(::testing::TempDir() + "none/such.kv", false));
  wait_for_files();
  EXPECT_TRUE(wait_for(*client_).failure);
  EXPECT_EQ(parts_.counts.n_failed, 1);
  const std::string path = ::testing::TempDir() + "cancelled.kv";
  std::unique_ptr<Job> job = read_job(path, false);
  job->client->cancel();
  snapshots_.write(std::move(job));
  wait_for_files();
  EXPECT_EQ(wait_for(*client_).failure->kind, Failure::Kind::cancelled);
  EXPECT_EQ(parts_.counts.n_cancelled, 1);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace snapkv::server
