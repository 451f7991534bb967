// SPDX-License-Identifier: MIT
#include "documents/archive_documents.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "documents/archive.h"
#include "documents/html.h"
#include "documents/word.h"

namespace snapkv::documents {
namespace {

using Type = XmlEvent::Type;

/// A path in an archive as `href` of a file in `folder` means it: %20 is a blank, ../ goes up.
std::string resolve(const std::string& folder, const std::string& href) {
  std::string path = folder;
  for (size_t i = 0; i < href.size() && href[i] != '#'; ++i) {
    const auto digit = [&](size_t at) {
      const size_t found =
          at < href.size() ? std::string_view("0123456789abcdefABCDEF").find(href[at]) : 99;
      return found >= 22 ? -1 : static_cast<int>(found < 16 ? found : found - 6);
    };
    if (href[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0) {
      path += static_cast<char>(digit(i + 1) * 16 + digit(i + 2));
      i += 2;
    } else {
      path += href[i];
    }
  }
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (part != ".." && part != "." && !part.empty()) parts.push_back(part);
    at = end + 1;
  }
  std::string resolved;
  for (const std::string& part : parts) resolved += (resolved.empty() ? "" : "/") + part;
  return resolved;
}

/// The book's list of files, which META-INF/container.xml names.
std::string package_path(Archive& archive) {
  std::string path;
  read_xml_part(archive, "META-INF/container.xml", [&](const XmlEvent& event) {
    if (event.type != Type::begin || event.name != "rootfile" || !path.empty()) return;
    path = event.attribute("full-path").value_or("");
  });
  if (path.empty()) {
    fail(ErrorCode::kUsage, "{}: a damaged EPUB: META-INF/container.xml names no book",
         archive.name());
  }
  return path;
}

/// The files of the chapters, in the order of reading.
std::vector<std::string> chapters(Archive& archive) {
  const std::string package = package_path(archive);
  const std::string folder = package.substr(0, package.find_last_of('/') + 1);
  std::map<std::string, std::string> files;  // by their ids
  std::vector<std::string> order;
  read_xml_part(archive, package, [&](const XmlEvent& event) {
    if (event.type != Type::begin) return;
    if (event.name == "item") {
      files[event.attribute("id").value_or("")] =
          resolve(folder, event.attribute("href").value_or(""));
    } else if (event.name == "itemref" && event.attribute("linear").value_or("yes") != "no") {
      order.push_back(event.attribute("idref").value_or(""));
    }
  });
  std::vector<std::string> all;
  std::set<std::string> known;
  for (const std::string& id : order) {
    const auto found = files.find(id);
    if (found == files.end()) {
      fail(ErrorCode::kUsage, "{}: a damaged EPUB: its chapter '{}' has no file", archive.name(),
           id);
    }
    if (known.insert(found->second).second) all.push_back(found->second);
  }
  return all;
}

/// The files that the book's seller has locked.
std::set<std::string> locked_files(Archive& archive) {
  std::set<std::string> locked;
  if (!archive.has("META-INF/encryption.xml")) return locked;
  read_xml_part(archive, "META-INF/encryption.xml", [&](const XmlEvent& event) {
    if (event.type != Type::begin || event.name != "CipherReference") return;
    locked.insert(resolve("", event.attribute("URI").value_or("")));
  });
  return locked;
}

std::string epub_text(Archive& archive, const ReadLimits& limits) {
  const std::set<std::string> locked = locked_files(archive);
  std::string text;
  for (const std::string& chapter : chapters(archive)) {
    if (locked.count(chapter) > 0) {
      fail(ErrorCode::kUsage, "{}: an EPUB locked by its seller (DRM)", archive.name());
    }
    if (chapter.ends_with(".svg")) continue;  // a picture of the cover
    const std::string part = html_text(archive.read(chapter), archive.name(), limits);
    if (!text.empty() && !part.empty()) text += '\n';
    text += part;
  }
  return text;
}

}  // namespace

std::string archive_text(std::string_view bytes, const std::string& name,
                         const ReadLimits& limits) {
  Archive archive(bytes, name, limits);
  if (archive.has("META-INF/container.xml")) return epub_text(archive, limits);
  const char* what = "a zip archive";
  for (const std::string& file : archive.files()) {
    if (file.starts_with("word/document") && file.ends_with(".xml")) {
      return word_text(archive, file, limits);
    }
    if (file == "xl/workbook.xml") what = "an Excel workbook (save the sheet as CSV)";
    if (file == "ppt/presentation.xml") what = "a PowerPoint presentation (save it as PDF)";
    if (file == "content.xml") what = "an OpenDocument file (save it as .docx or PDF)";
    if (file == "AndroidManifest.xml") what = "an Android app";
    if (file == "META-INF/MANIFEST.MF") what = "a Java archive";
  }
  fail(ErrorCode::kUsage, "{}: {}, not a document snapkv can read", name, what);
}

}  // namespace snapkv::documents
