// SPDX-License-Identifier: MIT
#include "cli/pull/hub_pull.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/models/model_folders.h"
#include "cli/pull/download.h"
#include "cli/pull/hub_cache.h"
#include "cli/pull/partial_file.h"

namespace snapkv::cli {
namespace {

class HubPull : public Pull {
 public:
  HubPull(HubSource source, const PullSettings& settings)
      : source_(std::move(source)),
        settings_(settings),
        client_(hub_endpoint(), variable_or_empty("HF_TOKEN")),
        cache_(needed_folder(hugging_face_folder()), source_.repo) {
    if (const std::string offline = variable_or_empty("HF_HUB_OFFLINE");
        !offline.empty() && offline != "0") {
      fail(ErrorCode::kRuntime, "HF_HUB_OFFLINE is set, which forbids asking {}", hub_endpoint());
    }
    UrlParts url;
    if (!split_url(hub_endpoint(), url)) {
      fail(ErrorCode::kUsage, "HF_ENDPOINT: expected an https URL, found '{}'", hub_endpoint());
    }
    host_ = url.host;
    const HubListing listing = list_hub_files(client_, source_);
    commit_ = listing.commit;
    model_ = choose_model(listing, source_);
  }

  std::string name() const override { return model_.name; }
  std::string host() const override { return host_; }
  std::string folder() const override { return cache_.folder().string(); }
  uint64_t bytes() const override { return model_.bytes(); }

  uint64_t bytes_to_fetch() const override {
    uint64_t sum = 0;
    for (const HubFile& file : model_.parts) {
      if (cache_.has(file)) continue;
      sum += file.bytes - std::min(file.bytes, bytes_there(cache_.incomplete(file)));
    }
    return sum;
  }

  std::string run(const CommonSettings& common) override {
    check_disk_space(cache_.folder(), bytes_to_fetch(), model_.name);
    cache_.make_folders();
    ProgressDisplay progress(!common.no_progress, common.verbose);
    uint64_t before = 0;
    for (const HubFile& file : model_.parts) {
      fetch(file, {.progress = progress,
                   .n_retries = static_cast<int>(settings_.n_retries),
                   .bytes_before = before,
                   .bytes_of_all = model_.bytes()});
      before += file.bytes;
    }
    for (const HubFile& file : model_.parts) cache_.link(commit_, file);
    cache_.set_ref(source_.revision, commit_);
    return cache_.snapshot(commit_, model_.parts.front()).string();
  }

 private:
  void fetch(const HubFile& file, const DownloadDisplay& display) {
    if (cache_.has(file)) return;
    const FetchLock lock(cache_.lock(file), file.path);
    if (cache_.has(file)) return;  // another process has fetched it meanwhile
    const Download wanted = {.url = content_url(source_, commit_, file.path),
                             .name = file.path,
                             .command = "snapkv pull " + settings_.source,
                             .incomplete = cache_.incomplete(file),
                             .target = cache_.blob(file),
                             .bytes = file.bytes,
                             .sha256 = file.sha256,
                             .fail_for = [this](const HttpReply& reply) {
                               fail_for_reply(reply, source_, client_.has_token());
                             }};
    download(client_, wanted, display);
  }

  HubSource source_;
  PullSettings settings_;
  HttpClient client_;
  HubCache cache_;
  std::string host_, commit_;
  HubModel model_;
};

}  // namespace

std::unique_ptr<Pull> plan_hub_pull(const HubSource& source, const PullSettings& settings) {
  return std::make_unique<HubPull>(source, settings);
}

}  // namespace snapkv::cli
