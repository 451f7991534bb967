// SPDX-License-Identifier: MIT
#include "documents/archive.h"

#include <libxml/xmlreader.h>

#include "base/error.h"

namespace snapkv::documents {
namespace {

struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
struct FreeReader {
  void operator()(xmlTextReader* reader) const { xmlFreeTextReader(reader); }
};

std::string_view view(const xmlChar* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

/// An attribute of the reader's element, by its name without a prefix.
std::optional<std::string> find_attribute(xmlTextReader* reader, std::string_view key) {
  std::optional<std::string> value;
  while (!value && xmlTextReaderMoveToNextAttribute(reader) == 1) {
    if (view(xmlTextReaderConstLocalName(reader)) == key) {
      value = view(xmlTextReaderConstValue(reader));
    }
  }
  xmlTextReaderMoveToElement(reader);
  return value;
}

}  // namespace

Archive::Archive(std::string_view bytes, const std::string& name, const ReadLimits& limits)
    : name_(name), limits_(limits) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (source != nullptr) zip_.reset(zip_open_from_source(source, ZIP_RDONLY, &error));
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (source != nullptr && zip_ == nullptr) zip_source_free(source);
  if (zip_ == nullptr) fail(ErrorCode::kUsage, "{}: a damaged archive: {}", name_, reason);
}

bool Archive::has(const std::string& file) const {
  return zip_name_locate(zip_.get(), file.c_str(), 0) >= 0;
}

std::vector<std::string> Archive::files() const {
  std::vector<std::string> all;
  const zip_int64_t n = zip_get_num_entries(zip_.get(), 0);
  for (zip_int64_t i = 0; i < n; ++i) {
    const char* const file = zip_get_name(zip_.get(), static_cast<zip_uint64_t>(i), 0);
    if (file != nullptr) all.emplace_back(file);
  }
  return all;
}

std::string Archive::read(const std::string& file) {
  const std::unique_ptr<zip_file_t, CloseFile> opened(zip_fopen(zip_.get(), file.c_str(), 0));
  if (opened == nullptr) {
    fail(ErrorCode::kUsage, "{}: can't read {} in it: {}", name_, file, zip_strerror(zip_.get()));
  }
  std::string content;
  std::string block(65536, '\0');  // not on the stack, which may be small
  while (true) {
    const zip_int64_t n = zip_fread(opened.get(), block.data(), block.size());
    if (n < 0) fail(ErrorCode::kUsage, "{}: {} in it is damaged", name_, file);
    if (n == 0) return content;
    n_read_ += static_cast<size_t>(n);
    if (n_read_ > limits_.most_text_bytes) {
      fail(ErrorCode::kUsage, "{}: expands to more than {} bytes", name_, limits_.most_text_bytes);
    }
    if (limits_.keep_going && !limits_.keep_going()) {
      fail(ErrorCode::kCancelled, "cancelled while reading {}", name_);
    }
    content.append(block.data(), static_cast<size_t>(n));
  }
}

void read_xml(const std::string& xml, const std::string& where,
              const std::function<void(const XmlEvent&)>& visit) {
  const std::unique_ptr<xmlTextReader, FreeReader> reader(
      xmlReaderForMemory(xml.data(), static_cast<int>(xml.size()), nullptr, nullptr,
                         XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING));
  if (reader == nullptr) fail(ErrorCode::kUsage, "{}: damaged XML", where);
  XmlEvent event;
  event.attribute = [&](const char* key) { return find_attribute(reader.get(), key); };
  int state = 0;
  while ((state = xmlTextReaderRead(reader.get())) == 1) {
    event.name = view(xmlTextReaderConstLocalName(reader.get()));
    event.text = {};
    switch (xmlTextReaderNodeType(reader.get())) {
      case XML_READER_TYPE_ELEMENT: {
        const bool is_empty = xmlTextReaderIsEmptyElement(reader.get()) == 1;
        event.type = XmlEvent::Type::begin;
        visit(event);
        if (!is_empty) break;
        event.type = XmlEvent::Type::end;
        visit(event);
        break;
      }
      case XML_READER_TYPE_END_ELEMENT:
        event.type = XmlEvent::Type::end;
        visit(event);
        break;
      case XML_READER_TYPE_TEXT:
      case XML_READER_TYPE_CDATA:
      case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
        event.type = XmlEvent::Type::text;
        event.text = view(xmlTextReaderConstValue(reader.get()));
        visit(event);
        break;
      default:
        break;
    }
  }
  if (state != 0) fail(ErrorCode::kUsage, "{}: damaged XML", where);
}

void read_xml_part(Archive& archive, const std::string& file,
                   const std::function<void(const XmlEvent&)>& visit) {
  const std::string where = archive.name() + ": " + file + " in it";
  read_xml(archive.read(file), where, visit);
}

}  // namespace snapkv::documents
