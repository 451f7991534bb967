// SPDX-License-Identifier: MIT
// PendingDocuments: the documents that the next message of a chat begins with.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/documents.h"
#include "long_documents/pages.h"

namespace snapkv::cli {

class PendingDocuments {
 public:
  void add(std::string name, documents::PagedText document) {
    all_.push_back({std::move(name), std::move(document)});
  }
  void clear() {
    all_.clear();
    files_.clear();
  }
  /// The files that they come from, which need not be added again.
  const std::set<FileId>& files() const { return files_; }
  void add_file(const FileId& file) { files_.insert(file); }
  bool empty() const { return all_.empty(); }

  /// What stands before the message. Several documents get their names.
  std::string text() const { return joined().first; }
  /// The same with one document more.
  std::string text_with(const std::string& name, const std::string& text) const {
    PendingDocuments more = *this;
    more.add(name, {text});
    return more.text();
  }
  /// The pages of text().
  long_documents::PageMarks pages() const { return joined().second; }

 private:
  std::pair<std::string, long_documents::PageMarks> joined() const {
    std::string before;
    long_documents::PageMarks pages;
    for (const NamedDocument& each : all_) {
      const std::string& text = each.paged.text;
      const bool ends_line = text.ends_with('\n');
      if (all_.size() > 1) before += document_opening(each.name);
      long_documents::add_pages(pages, each.paged.pages, before.size());
      before += ends_line ? text.substr(0, text.size() - 1) : text;
      if (all_.size() > 1) before += kDocumentClosing;
      before += "\n\n";
    }
    return {before, pages};
  }

  std::vector<NamedDocument> all_;
  std::set<FileId> files_;
};

}  // namespace snapkv::cli
