// SPDX-License-Identifier: MIT
// Archive: the files of a zip archive in memory, and the elements of the XML in them.
#pragma once

#include <zip.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "documents/document_reader.h"

namespace snapkv::documents {

class Archive {
 public:
  /// `bytes` must outlive it. `name`: of the document, for messages. Throws Error{kUsage}.
  Archive(std::string_view bytes, const std::string& name, const ReadLimits& limits);

  bool has(const std::string& file) const;
  /// All files, in the archive's order.
  std::vector<std::string> files() const;
  /// A file's bytes. Everything that is read of an archive together may expand to
  /// ReadLimits::most_text_bytes, however small the archive is. Throws Error{kUsage}.
  std::string read(const std::string& file);

  const std::string& name() const { return name_; }

 private:
  struct Discard {
    void operator()(zip_t* zip) const { zip_discard(zip); }
  };

  std::string name_;
  const ReadLimits& limits_;
  size_t n_read_ = 0;
  std::unique_ptr<zip_t, Discard> zip_;
};

/// What an XML file consists of, in its order.
struct XmlEvent {
  enum class Type { begin, end, text };
  Type type = Type::text;
  std::string_view name;  ///< of the element, without its prefix
  std::string_view text;
  /// The value of an attribute (its name without a prefix) of an element that begins.
  std::function<std::optional<std::string>(const char* key)> attribute;
};

/// Calls `visit` with everything in `xml`; an element without content begins and ends. No entities
/// but XML's own are expanded, and nothing else is opened. Throws Error{kUsage} naming `where`
/// unless the file is well-formed.
void read_xml(const std::string& xml, const std::string& where,
              const std::function<void(const XmlEvent&)>& visit);

/// The same for a file of an archive.
void read_xml_part(Archive& archive, const std::string& file,
                   const std::function<void(const XmlEvent&)>& visit);

}  // namespace snapkv::documents
