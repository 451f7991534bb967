// SPDX-License-Identifier: MIT
#include "server/document_store.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "chat/document.h"
#include "server/read_prompt.h"
#include "snapkv/prefill.h"

namespace snapkv::server {

DocumentStore::Identity DocumentStore::identity_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};  // opening the file reports why
  return {info.st_dev, info.st_ino, info.st_size,
          int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

std::shared_ptr<const Document> DocumentStore::find(const std::string& path) {
  const Identity identity = identity_of(path);
  const std::lock_guard lock(mutex_);
  const auto known = find_entry(path, identity);
  return known == entries_.end() ? nullptr : known->document;
}

std::list<DocumentStore::Entry>::iterator DocumentStore::find_entry(const std::string& path,
                                                                    const Identity& identity) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.path == path && entry.identity == identity;
  });
}

std::shared_ptr<const Document> DocumentStore::open(const std::string& path) {
  const Identity identity = identity_of(path);  // before reading: a change is noticed next time
  {
    const std::lock_guard lock(mutex_);
    const auto known = find_entry(path, identity);
    if (known != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, known);
      return known->document;
    }
  }
  auto document = std::make_shared<const Document>(chat::open_document(path, model_));
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.path == path; });
  drop_changed();
  entries_.push_front({path, identity, document});
  if (entries_.size() > kMostFiles) entries_.pop_back();
  return document;
}

void DocumentStore::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  entries_.remove_if([&](const Entry& entry) { return entry.path == path; });
}

size_t DocumentStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void DocumentStore::lend(const std::string& name, const LentFile& file) {
  Lent lent;
  if (!is_prefix_file(file)) {
    auto session = std::make_shared<const SavedSessionFile>(file);
    if (is_prompt_notes(session->saved().notes)) lent.prompt = std::move(session);
  }
  if (lent.prompt == nullptr) {
    lent.document = std::make_shared<const Document>(chat::open_document(file, model_));
  } else if (lent.prompt->saved().fingerprint != model_->fingerprint()) {
    fail(ErrorCode::kUsage, "'{}': it was read by another model, {}", file.name,
         lent.prompt->saved().model);
  }
  const std::lock_guard lock(mutex_);
  std::swap(lent_[name], lent);  // the old one is given back after the lock
}

bool DocumentStore::withdraw(const std::string& name) {
  Lent lent;
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find(name);
  if (found == lent_.end()) return false;
  lent = std::move(found->second);
  lent_.erase(found);
  return true;
}

DocumentStore::Lent DocumentStore::find_lent(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find(name);
  return found == lent_.end() ? Lent() : found->second;
}

std::shared_ptr<const Document> DocumentStore::lent_document(const std::string& name) const {
  return find_lent(name).document;
}

std::shared_ptr<const SavedSessionFile> DocumentStore::lent_prompt(const std::string& name) const {
  return find_lent(name).prompt;
}

void DocumentStore::drop_changed() {
  entries_.remove_if([](const Entry& entry) { return identity_of(entry.path) != entry.identity; });
}

}  // namespace snapkv::server
