// SPDX-License-Identifier: MIT
#include "cli/pull/download.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/timer.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/pull/partial_file.h"

namespace snapkv::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kProgressBytes = 1 << 20;  // that a try must bring to count as none in vain
constexpr double kLongestWait = 300;          // seconds that a server may ask for

/// The file's position at which the answer begins; -1 if it does not say so.
int64_t first_of(const HttpReply& reply) {
  if (reply.status == 200) return 0;
  constexpr std::string_view kUnit = "bytes ";
  const std::string range = reply.header("content-range");
  if (!range.starts_with(kUnit)) return -1;
  int64_t first = 0;
  size_t i = kUnit.size();
  for (; i < range.size() && range[i] >= '0' && range[i] <= '9' && i < 24; ++i) {
    first = first * 10 + (range[i] - '0');
  }
  return i > kUnit.size() ? first : -1;
}

class Fetch {
 public:
  Fetch(HttpClient& client, const Download& wanted, const DownloadDisplay& display)
      : client_(client), wanted_(wanted), display_(display), file_(wanted.incomplete) {
    if (file_.size() > wanted.bytes) file_.clear();
    begin_ = file_.size();
  }

  std::string run() {
    int n_tries = 0;
    while (file_.size() < wanted_.bytes) {
      const uint64_t before = file_.size();
      const HttpReply reply = try_once();
      if (file_.size() >= wanted_.bytes) break;
      if (file_.size() >= before + kProgressBytes) n_tries = 0;
      if (++n_tries > display_.n_retries) give_up(reply);
      wait(reply, n_tries);
    }
    const std::string found = file_.sha256();
    if (!wanted_.sha256.empty() && found != wanted_.sha256) {
      file_.remove();
      fail(ErrorCode::kRuntime,
           "{}: expected SHA-256 {}, found {}. What was fetched is deleted; {} fetches it anew",
           wanted_.name, wanted_.sha256, found, wanted_.command);
    }
    file_.finish(wanted_.target);
    return found;
  }

 private:
  HttpReply try_once() {
    const uint64_t first = file_.size();
    bool restart = false;
    const HttpReply reply = client_.stream(
        wanted_.url, first, 0,
        [&](const HttpReply& begun) {
          const int64_t at = first_of(begun);
          if (at == static_cast<int64_t>(first)) return true;
          restart = true;
          if (at == 0) file_.clear();  // a server without ranges sends all of it again
          return at == 0;
        },
        [&](std::string_view bytes) { return receive(bytes); });
    if (interrupted()) cancel();
    const bool is_beyond = reply.status == 416;  // the file has become shorter
    if ((restart && file_.size() == 0) || is_beyond) file_.clear();
    const bool is_file = reply.status == 200 || reply.status == 206;
    if (reply.problem.empty() && !is_file && !is_beyond && !reply.may_recover) {
      wanted_.fail_for(reply);
    }
    if (!reply.problem.empty() && !reply.may_recover) give_up(reply);
    return reply;
  }

  bool receive(std::string_view bytes) {
    constexpr std::string_view kMagic = "GGUF";
    if (file_.size() == 0 && bytes.size() >= kMagic.size() && !bytes.starts_with(kMagic)) {
      fail(ErrorCode::kRuntime, "{}: expected a GGUF file, found one that begins with '{}'",
           wanted_.name, terminal_text(bytes.substr(0, 40), 60));
    }
    if (bytes.size() > wanted_.bytes - file_.size()) {
      file_.remove();
      fail(ErrorCode::kRuntime, "{}: expected {} bytes, found more", wanted_.name, wanted_.bytes);
    }
    file_.append(bytes);
    const double seconds = timer_.seconds();
    display_.progress.show_fetch(display_.bytes_before + file_.size(), display_.bytes_of_all,
                                 file_.size() - begin_, seconds);
    return true;
  }

  std::string what_is_kept() const {
    return fmt::format("{} of {} are kept, and {} goes on from there",
                       format_bytes(display_.bytes_before + file_.size()),
                       format_bytes(display_.bytes_of_all), wanted_.command);
  }

  [[noreturn]] void cancel() const {
    display_.progress.clear();
    fail(ErrorCode::kCancelled, "stopped by {}: {}", interruption(), what_is_kept());
  }

  static std::string reason(const HttpReply& reply) {
    if (!reply.problem.empty()) return reply.problem;
    if (reply.status == 200 || reply.status == 206) return "the server ended the file too early";
    return fmt::format("the server answers with HTTP status {}", reply.status);
  }

  [[noreturn]] void give_up(const HttpReply& reply) const {
    display_.progress.clear();
    fail(ErrorCode::kRuntime, "{}: {}; {}", wanted_.name, reason(reply), what_is_kept());
  }

  void wait(const HttpReply& reply, int n_tries) const {
    const double asked = reply.retry_after();
    const double seconds = asked >= 0 ? asked : static_cast<double>(1 << std::min(n_tries - 1, 5));
    if (seconds > kLongestWait) give_up(reply);
    display_.progress.clear();
    write_stderr(fmt::format("snapkv: {}; trying again in {:g} s ({} of {})\n",
                             message_text(reason(reply)), seconds, n_tries, display_.n_retries));
    try {
      wait_before_retry(seconds);
    } catch (const Error&) {
      cancel();
    }
  }

  HttpClient& client_;
  const Download& wanted_;
  const DownloadDisplay& display_;
  PartialFile file_;
  uint64_t begin_ = 0;  // bytes that were there at the start
  Timer timer_;
};

}  // namespace

std::string download(HttpClient& client, const Download& wanted, const DownloadDisplay& display) {
  return Fetch(client, wanted, display).run();
}

uint64_t bytes_there(const fs::path& incomplete) {
  std::error_code error;
  const uintmax_t size = fs::file_size(incomplete, error);
  return error ? 0 : size;
}

void check_disk_space(const fs::path& folder, uint64_t bytes, const std::string& name) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  while (!there.empty() && !fs::exists(there, error) && there != there.parent_path()) {
    there = there.parent_path();
  }
  const fs::space_info space = fs::space(there, error);
  if (error || space.available >= bytes) return;
  fail(ErrorCode::kRuntime, "{} needs {} on the disk of {}, which has {} free", name,
       format_bytes(bytes), there.string(), format_bytes(space.available));
}

void wait_before_retry(double seconds) {
  const Timer timer;
  while (timer.seconds() < seconds) {
    if (interrupted()) fail(ErrorCode::kCancelled, "stopped by {}", interruption());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace snapkv::cli
