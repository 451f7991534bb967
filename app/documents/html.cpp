// SPDX-License-Identifier: MIT
#include "documents/html.h"

#include <fmt/core.h>
#include <libxml/HTMLparser.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/parse_number.h"
#include "documents/encoding.h"
#include "documents/text_builder.h"

namespace snapkv::documents {
namespace {

constexpr std::array kSkipped = {"script", "style",  "noscript", "template", "title", "svg",
                                 "iframe", "object", "audio",    "video",    "canvas"};
constexpr std::array kParagraphs = {
    "p",       "div",      "h1",         "h2",    "h3",     "h4",     "h5",
    "h6",      "section",  "article",    "aside", "header", "footer", "main",
    "nav",     "figure",   "ul",         "ol",    "dl",     "table",  "form",
    "address", "fieldset", "blockquote", "pre",   "hr",     "body",   "details"};
constexpr std::array kLines = {"br",    "li",    "dt",      "dd",         "tr",     "caption",
                               "thead", "tbody", "summary", "figcaption", "option", "legend"};

template <typename Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The parser's events, put together as text.
class PageText {
 public:
  explicit PageText(const ReadLimits& limits) : limits_(limits) {}

  void begin(std::string_view name, const xmlChar** attributes) {
    if (n_skipped_ > 0 || is_one_of(name, kSkipped) || is_hidden(attributes)) {
      ++n_skipped_;
      return;
    }
    separate(name);
    if (name == "ul") lists_.push_back(kNoNumbers);
    if (name == "ol") lists_.push_back(number_in(attributes, "start").value_or(1));
    if (name == "li") text_.add(item_mark(attributes));
    if (name == "pre") ++n_pre_;
    if (name == "td" || name == "th") text_.begin_cell();
  }
  void end(std::string_view name) {
    if (n_skipped_ > 0) {
      --n_skipped_;
      return;
    }
    if (name == "pre" && n_pre_ > 0) --n_pre_;
    if ((name == "ul" || name == "ol") && !lists_.empty()) lists_.pop_back();
    if (name == "td" || name == "th") text_.end_cell();
    separate(name);
  }
  void characters(std::string_view text) {
    if (n_skipped_ > 0) return;
    if (n_pre_ > 0) {
      text_.add_as_is(text);
    } else {
      text_.add(text);
    }
  }
  bool goes_on() const {
    return text_.size() <= limits_.most_text_bytes && (!limits_.keep_going || limits_.keep_going());
  }
  bool is_too_long() const { return text_.size() > limits_.most_text_bytes; }
  std::string take() { return text_.take(); }

 private:
  void separate(std::string_view name) {
    if (is_one_of(name, kParagraphs)) text_.end_line(2);
    if (is_one_of(name, kLines)) text_.end_line(1);
  }
  static std::optional<int64_t> number_in(const xmlChar** attributes, std::string_view key) {
    for (; attributes != nullptr && attributes[0] != nullptr; attributes += 2) {
      if (reinterpret_cast<const char*>(attributes[0]) != key || attributes[1] == nullptr) continue;
      const auto number = parse_whole(reinterpret_cast<const char*>(attributes[1]));
      if (number && std::abs(*number) < kMostNumber) return number;
    }
    return std::nullopt;
  }
  /// "- ", or an item's number: "3. ".
  std::string item_mark(const xmlChar** attributes) {
    if (lists_.empty() || lists_.back() == kNoNumbers) return "- ";
    int64_t& next = lists_.back();
    next = number_in(attributes, "value").value_or(next);
    return fmt::format("{}. ", next++);
  }
  static bool is_hidden(const xmlChar** attributes) {
    for (; attributes != nullptr && attributes[0] != nullptr; attributes += 2) {
      const std::string_view key = reinterpret_cast<const char*>(attributes[0]);
      if (key == "hidden") return true;
      if (key != "style" || attributes[1] == nullptr) continue;
      std::string style = reinterpret_cast<const char*>(attributes[1]);
      style.erase(std::remove(style.begin(), style.end(), ' '), style.end());
      if (style.find("display:none") != std::string::npos) return true;
    }
    return false;
  }

  static constexpr int64_t kNoNumbers = INT64_MIN, kMostNumber = int64_t{1} << 40;

  const ReadLimits& limits_;
  TextBuilder text_;
  std::vector<int64_t> lists_;  // the number of the next item in each list around; kNoNumbers: ul
  int n_skipped_ = 0;           // elements around that are left out
  int n_pre_ = 0;
};

std::string_view to_view(const xmlChar* text) { return reinterpret_cast<const char*>(text); }

void add_characters(void* page, const xmlChar* text, int n) {
  static_cast<PageText*>(page)->characters(to_view(text).substr(0, static_cast<size_t>(n)));
}

htmlSAXHandler make_handler() {
  htmlSAXHandler handler = {};
  handler.startElement = [](void* page, const xmlChar* name, const xmlChar** attributes) {
    static_cast<PageText*>(page)->begin(to_view(name), attributes);
  };
  handler.endElement = [](void* page, const xmlChar* name) {
    static_cast<PageText*>(page)->end(to_view(name));
  };
  handler.characters = add_characters;
  handler.cdataBlock = add_characters;
  handler.ignorableWhitespace = add_characters;
  return handler;
}

/// The encoding that a page's <meta> or XML declaration names, as iconv knows it; else empty.
std::string declared_charset(std::string_view bytes) {
  constexpr size_t kLook = 2048;
  std::string head(bytes.substr(0, kLook));
  for (char& c : head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view key : {"charset=", "encoding="}) {
    size_t at = head.find(key);
    if (at == std::string::npos) continue;
    at += key.size();
    if (at < head.size() && (head[at] == '"' || head[at] == '\'')) ++at;
    const size_t end = head.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_:.", at);
    std::string charset = head.substr(at, end == std::string::npos ? end : end - at);
    // what browsers take these for
    if (charset == "iso-8859-1" || charset == "latin1" || charset == "us-ascii") return "";
    return charset.starts_with("utf") ? "" : charset;
  }
  return "";
}

struct FreeContext {
  void operator()(htmlParserCtxt* context) const {
    if (context->myDoc != nullptr) xmlFreeDoc(context->myDoc);
    htmlFreeParserCtxt(context);
  }
};

}  // namespace

std::string html_text(std::string bytes, const std::string& name, const ReadLimits& limits) {
  const std::string charset = declared_charset(bytes);
  const std::string text = to_utf8(std::move(bytes), charset, name, limits);
  PageText page(limits);
  htmlSAXHandler handler = make_handler();
  const std::unique_ptr<htmlParserCtxt, FreeContext> context(
      htmlCreatePushParserCtxt(&handler, &page, nullptr, 0, nullptr, XML_CHAR_ENCODING_UTF8));
  if (context == nullptr) fail(ErrorCode::kDoesNotFit, "{}: out of memory", name);
  htmlCtxtUseOptions(context.get(), HTML_PARSE_IGNORE_ENC | HTML_PARSE_NOERROR |
                                        HTML_PARSE_NOWARNING | HTML_PARSE_NONET);
  constexpr size_t kBlock = 65536;
  for (size_t at = 0; at < text.size() && page.goes_on(); at += kBlock) {
    const size_t n = std::min(kBlock, text.size() - at);
    htmlParseChunk(context.get(), text.data() + at, static_cast<int>(n), 0);
  }
  if (page.goes_on()) htmlParseChunk(context.get(), nullptr, 0, 1);
  if (page.is_too_long()) {
    fail(ErrorCode::kUsage, "{}: more than {} bytes of text", name, limits.most_text_bytes);
  }
  if (!page.goes_on()) fail(ErrorCode::kCancelled, "cancelled while reading {}", name);
  return page.take();
}

}  // namespace snapkv::documents
