// SPDX-License-Identifier: MIT
#include "cli/pull/hub.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "cli/common/plain_text.h"
#include "cli/common/signals.h"
#include "eval/common/json_field.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostPages = 1000;  // of a listing

bool is_hex(std::string_view text, size_t digits) {
  return text.size() == digits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// A path that stays in its folder; file names become names on this machine.
bool is_safe_path(const std::string& path) {
  if (path.empty() || path.size() > 1000 || path.front() == '/' || path.back() == '/') return false;
  size_t begin = 0;
  while (begin <= path.size()) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    begin = end + 1;
  }
  return std::all_of(path.begin(), path.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 32 && c != '\\'; });
}

bool is_model_file(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.ends_with(".gguf") && !name.starts_with("mmproj") && !name.starts_with("imatrix");
}

/// The URL of the next page: Link: <URL>; rel="next".
std::string next_page(const HttpReply& reply) {
  const std::string link = reply.header("link");
  const size_t rel = link.find("rel=\"next\"");
  if (rel == std::string::npos) return "";
  const size_t begin = link.rfind('<', rel), end = link.rfind('>', rel);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  return link.substr(begin + 1, end - begin - 1);
}

Json ask_hub(HttpClient& client, const std::string& url, const HubSource& source,
             std::string* next = nullptr) {
  const HttpReply reply = client.get(url);
  if (interrupted()) fail(ErrorCode::kCancelled, "stopped by {}", interruption());
  if (!reply.problem.empty() || reply.status != 200) {
    fail_for_reply(reply, source, client.has_token());
  }
  if (next != nullptr) *next = next_page(reply);
  Json answer = eval::parse_json(reply.text);
  if (answer.is_discarded()) {
    fail(ErrorCode::kRuntime, "{}: expected a list of files (JSON), found '{}'", url,
         terminal_text(reply.text, 80));
  }
  return answer;
}

/// A member of an object; an empty text where there is none, or something else.
std::string text_in(const Json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

/// The file that an entry of the listing describes, if it is a model's.
std::optional<HubFile> file_of(const Json& entry) {
  if (text_in(entry, "type") != "file" || !entry.contains("lfs")) return std::nullopt;
  HubFile file;
  file.path = text_in(entry, "path");
  if (!is_model_file(file.path) || !is_safe_path(file.path)) return std::nullopt;
  const Json& lfs = entry["lfs"];
  file.sha256 = text_in(lfs, "oid");
  if (file.sha256.empty() || !lfs.contains("size")) return std::nullopt;
  if (lfs["size"].is_number_unsigned()) file.bytes = lfs["size"].get<uint64_t>();
  if (!is_hex(file.sha256, 64) || file.bytes == 0) return std::nullopt;
  return file;
}

std::string host_of(const std::string& url) {
  UrlParts parts;
  return split_url(url, parts) ? parts.host : url;
}

}  // namespace

void fail_for_reply(const HttpReply& reply, const HubSource& source, bool had_token) {
  const std::string endpoint = hub_endpoint(), host = host_of(endpoint);
  if (!reply.problem.empty()) fail(ErrorCode::kRuntime, "{}: {}", host, reply.problem);
  const std::string code = reply.header("x-error-code");
  if (code == "GatedRepo") {
    fail(ErrorCode::kRuntime, "{0} is gated: its owners grant access at {1}/{0}. {2}", source.repo,
         endpoint,
         had_token
             ? "The account of HF_TOKEN has none yet, or its token may not read the repository"
             : fmt::format("Then set HF_TOKEN to a token of that account ({}/settings/tokens)",
                           endpoint));
  }
  if (reply.status == 401) {  // the hub's answer for a name that is not there, too
    fail(ErrorCode::kRuntime, "{} has no repository {}, or it is private: {}", host, source.repo,
         had_token ? "HF_TOKEN gives no access to it"
                   : "for one of those set HF_TOKEN to a token that may read it");
  }
  if (reply.status == 404 && code == "RevisionNotFound") {
    fail(ErrorCode::kRuntime, "{} has no revision '{}'", source.repo, source.revision);
  }
  if (reply.status == 404 && code == "EntryNotFound") {
    fail(ErrorCode::kRuntime, "{} has no file '{}'", source.repo, source.file);
  }
  if (reply.status == 404) {
    fail(ErrorCode::kRuntime, "{} has no repository {}", host, source.repo);
  }
  fail(ErrorCode::kRuntime, "{}: expected an answer about {}, found HTTP status {}{}", host,
       source.repo, reply.status, reply.status == 429 ? " (too many requests): wait a little" : "");
}

uint64_t HubModel::bytes() const {
  uint64_t sum = 0;
  for (const HubFile& part : parts) sum += part.bytes;
  return sum;
}

HubListing list_hub_files(HttpClient& client, const HubSource& source) {
  const std::string api = hub_endpoint() + "/api/models/" + source.repo;
  HubListing listing;
  const Json info = ask_hub(client, api + "/revision/" + escape_path(source.revision), source);
  listing.commit = text_in(info, "sha");
  if (!is_hex(listing.commit, 40)) {
    fail(ErrorCode::kRuntime, "{}: expected the commit of revision '{}', found '{}'", api,
         source.revision, terminal_text(listing.commit, 80));
  }
  std::string url = api + "/tree/" + listing.commit + "?recursive=true";
  for (int page = 0; !url.empty(); ++page) {
    if (page == kMostPages) fail(ErrorCode::kRuntime, "{}: more than {} pages", api, kMostPages);
    const Json entries = ask_hub(client, url, source, &url);
    if (!entries.is_array()) fail(ErrorCode::kRuntime, "{}: expected a list of files", api);
    for (const Json& entry : entries) {
      if (std::optional<HubFile> file = file_of(entry)) listing.files.push_back(std::move(*file));
    }
  }
  return listing;
}

std::string content_url(const HubSource& source, const std::string& commit,
                        const std::string& path) {
  return hub_endpoint() + "/" + source.repo + "/resolve/" + commit + "/" + escape_path(path);
}

}  // namespace snapkv::cli
