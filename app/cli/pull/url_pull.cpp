// SPDX-License-Identifier: MIT
#include "cli/pull/url_pull.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/parse_number.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/models/gguf_name.h"
#include "cli/models/model_folders.h"
#include "cli/pull/download.h"
#include "cli/pull/partial_file.h"

namespace snapkv::cli {
namespace {

namespace fs = std::filesystem;

struct UrlFile {
  std::string url, name;
  uint64_t bytes = 0;
  uint64_t state = 0;  // a hash of what the server says of the file's version
};

[[noreturn]] void fail_for_url(const HttpReply& reply, const std::string& url) {
  if (!reply.problem.empty()) fail(ErrorCode::kRuntime, "{}: {}", url, reply.problem);
  fail(ErrorCode::kRuntime, "{}: expected a file, found HTTP status {}{}", url, reply.status,
       reply.status == 401 || reply.status == 403 ? ", no access" : "");
}

/// The length of a file: of "bytes 0-0/12345", or of the whole answer.
uint64_t length_of(const HttpReply& reply) {
  std::string text = reply.header("content-length");
  if (reply.status == 206) {
    const std::string range = reply.header("content-range");
    const size_t slash = range.rfind('/');
    text = slash == std::string::npos ? "" : range.substr(slash + 1);
  }
  const std::optional<int64_t> length = parse_whole(text);
  return length && *length > 0 ? static_cast<uint64_t>(*length) : 0;
}

/// Asks for the first byte only, and for no more of a server that sends all.
UrlFile ask_for(HttpClient& client, const std::string& url, const std::string& name) {
  UrlFile file = {.url = url, .name = name};
  const HttpReply reply = client.stream(
      url, 0, 1,
      [&](const HttpReply& begun) {
        file.bytes = length_of(begun);
        Hash64 state;
        state.add(url + "\n" + begun.header("etag") + "\n" + begun.header("last-modified"));
        state.add(file.bytes);
        file.state = state.value();
        return false;
      },
      [](std::string_view) { return false; });
  if (interrupted()) fail(ErrorCode::kCancelled, "stopped by {}", interruption());
  const bool is_file = reply.status == 200 || reply.status == 206;
  if (!is_file || !reply.problem.empty()) fail_for_url(reply, url);
  if (file.bytes == 0) {
    fail(ErrorCode::kRuntime, "{}: expected the file's size, found an answer without it", url);
  }
  return file;
}

/// "model-00002-of-00003.gguf"
std::string part_name(const std::string& name, int part, int count) {
  constexpr size_t kEnding = 5;  // ".gguf"
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.substr(0, name.size() - kEnding), part, count);
}

class UrlPull : public Pull {
 public:
  UrlPull(const UrlSource& source, const PullSettings& settings)
      : settings_(settings), client_("", ""), name_(split_name(source.file_name).name) {
    split_url(source.url, url_);
    (void)needed_folder(own_models_folder());
    const SplitName split = split_name(source.file_name);
    const std::string::size_type at = source.url.rfind(escape_path(source.file_name));
    if (split.count == 1 || at == std::string::npos) {
      files_ = {ask_for(client_, source.url, source.file_name)};
      return;
    }
    for (int part = 1; part <= split.count; ++part) {
      const std::string name = part_name(split.name, part, split.count);
      std::string url = source.url;
      url.replace(at, escape_path(source.file_name).size(), escape_path(name));
      files_.push_back(ask_for(client_, url, name));
    }
  }

  std::string name() const override { return name_; }
  std::string host() const override { return url_.host; }
  std::string folder() const override { return own_models_folder().string(); }

  uint64_t bytes() const override {
    uint64_t sum = 0;
    for (const UrlFile& file : files_) sum += file.bytes;
    return sum;
  }

  uint64_t bytes_to_fetch() const override {
    uint64_t sum = 0;
    for (const UrlFile& file : files_) {
      if (!has(file)) sum += file.bytes - std::min(file.bytes, bytes_there(incomplete(file)));
    }
    return sum;
  }

  std::string run(const CommonSettings& common) override {
    check_disk_space(own_models_folder(), bytes_to_fetch(), name_);
    std::error_code error;
    fs::create_directories(own_models_folder(), error);
    ProgressDisplay progress(!common.no_progress, common.verbose);
    uint64_t before = 0;
    for (const UrlFile& file : files_) {
      fetch(file, {.progress = progress,
                   .n_retries = static_cast<int>(settings_.n_retries),
                   .bytes_before = before,
                   .bytes_of_all = bytes()});
      before += file.bytes;
    }
    return target(files_.front()).string();
  }

 private:
  static fs::path target(const UrlFile& file) { return own_models_folder() / file.name; }
  /// Named by the file's version, so that only the same one is continued.
  static fs::path incomplete(const UrlFile& file) {
    return own_models_folder() / fmt::format("{}.{:016x}.incomplete", file.name, file.state);
  }
  /// Deletes what was fetched of versions that the server has no more.
  static void remove_old_parts(const UrlFile& file) {
    std::error_code error;
    for (fs::directory_iterator i(own_models_folder(), error), end; !error && i != end;
         i.increment(error)) {
      const std::string name = i->path().filename().string();
      const bool is_part = name.starts_with(file.name + ".") && name.ends_with(".incomplete");
      std::error_code ignored;
      if (is_part && i->path() != incomplete(file)) fs::remove(i->path(), ignored);
    }
  }
  /// Another file of this name is not overwritten: fetch() refuses.
  static bool has(const UrlFile& file) {
    std::error_code error;
    return fs::file_size(target(file), error) == file.bytes && !error;
  }

  void fetch(const UrlFile& file, const DownloadDisplay& display) {
    if (has(file)) return;
    const FetchLock lock(own_models_folder() / ".locks" / (file.name + ".lock"), file.name);
    if (has(file)) return;  // another process has fetched it meanwhile
    std::error_code error;
    if (fs::exists(target(file), error)) {
      fail(ErrorCode::kUsage, "{} is another file: it has {} bytes, that of {} has {}",
           target(file).string(), fs::file_size(target(file), error), url_.host, file.bytes);
    }
    remove_old_parts(file);
    const Download wanted = {
        .url = file.url,
        .name = file.name,
        .command = "snapkv pull " + settings_.source,
        .incomplete = incomplete(file),
        .target = target(file),
        .bytes = file.bytes,
        .sha256 = "",
        .fail_for = [&](const HttpReply& reply) { fail_for_url(reply, file.url); }};
    const std::string sha256 = download(client_, wanted, display);
    display.progress.clear();
    write_stderr(fmt::format(
        "snapkv: {} has SHA-256 {}, which the server has not said: compare it if you can\n",
        file.name, sha256));
  }

  PullSettings settings_;
  HttpClient client_;
  UrlParts url_;
  std::string name_;
  std::vector<UrlFile> files_;
};

}  // namespace

std::unique_ptr<Pull> plan_url_pull(const UrlSource& source, const PullSettings& settings) {
  return std::make_unique<UrlPull>(source, settings);
}

}  // namespace snapkv::cli
