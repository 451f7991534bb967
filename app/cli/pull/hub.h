// SPDX-License-Identifier: MIT
// The interface of Hugging Face's hub: what a repository holds, and which of its files is the model
// that was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/pull/http_client.h"
#include "cli/pull/model_source.h"

namespace snapkv::cli {

struct HubFile {
  std::string path;  ///< in the repository, checked: relative, without ".."
  uint64_t bytes = 0;
  std::string sha256;
};

/// A repository at a revision.
struct HubListing {
  std::string commit;          ///< 40 hexadecimal digits
  std::vector<HubFile> files;  ///< GGUF files that have a SHA-256
};

/// A model of a repository: one file, or the parts of a split one, in order.
struct HubModel {
  std::string name;  ///< the file's path; of a split one without -00001-of-00003
  std::vector<HubFile> parts;

  uint64_t bytes() const;
};

/// Asks the hub for the files. Throws Error{kRuntime} saying what is wrong: no such repository, or
/// one that needs HF_TOKEN.
HubListing list_hub_files(HttpClient& client, const HubSource& source);
/// The model that `source` names: its file, else that of its quantization, else the first there is
/// of the usual ones. Throws Error{kUsage} listing the files for none and for several.
HubModel choose_model(const HubListing& listing, const HubSource& source);
/// The URL of a file's content.
std::string content_url(const HubSource& source, const std::string& commit,
                        const std::string& path);

/// Throws what an answer other than 200 or 206 means for `source`.
[[noreturn]] void fail_for_reply(const HttpReply& reply, const HubSource& source, bool had_token);

}  // namespace snapkv::cli
