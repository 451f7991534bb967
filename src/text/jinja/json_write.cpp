// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/jinja/json.h"
#include "text/jinja/operators.h"

namespace snapkv::jinja {
namespace {

class Writer {
 public:
  Writer(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style), out_(budget) {}

  TextPtr run(const Value& value) {
    write(value);
    return out_.finish();
  }

 private:
  void write(const Value& value) {
    const Nesting nesting(budget_);
    budget_.charge(1);
    if (value.is_text()) {
      write_text(value.text());
    } else if (value.is_none()) {
      out_.append("null");
    } else if (value.is<bool>()) {
      out_.append(truth(value) ? "true" : "false");
    } else if (value.is<int64_t>()) {
      out_.append(std::to_string(value.integer()));
    } else if (value.is<double>()) {
      out_.append(real(value.number()));
    } else if (const Items* items = value.items()) {
      write_items(items->values);
    } else if (value.is<DictPtr>()) {
      write_dict(value.dict());
    } else if (const auto* generator = value.object<Generator>()) {
      write_items(generator->values());
    } else if (const auto* view = value.object<DictView>()) {
      write_items(view->values());
    } else {
      if (value.is_undefined()) fail_undefined(value);
      fail(ErrorCode::kUsage, "a {} has no JSON", value.type_name());
    }
  }

  static std::string real(double number) {
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return number_repr(number);
  }

  void write_text(const Text& text) {
    const std::string& bytes = text.bytes();
    out_.append("\"");
    size_t begin = 0;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = char_bytes(bytes[at]);
      const std::string escape = escape_of(bytes, at);
      if (!escape.empty()) {
        out_.append(text, begin, at);
        out_.append_as(escape, text.has_input(at, at + n));
        begin = at + n;
      }
      at += n;
    }
    out_.append(text, begin, bytes.size());
    out_.append("\"");
  }

  /// The escape of a character; empty if it needs none.
  std::string escape_of(const std::string& bytes, size_t at) const {
    const auto byte = static_cast<unsigned char>(bytes[at]);
    switch (byte) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\f':
        return "\\f";
      case '\b':
        return "\\b";
      default:
        break;
    }
    if (byte < 0x20) return fmt::format("\\u{:04x}", byte);
    if (byte < 0x7f || !style_.ascii) return "";
    if (byte == 0x7f) return "";
    const int32_t c = decode_char(bytes, at);
    if (c < 0x10000) return fmt::format("\\u{:04x}", c);
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((c - 0x10000) >> 10),
                       0xdc00 + ((c - 0x10000) & 0x3ff));
  }

  void new_line() {
    if (!style_.indent) return;
    out_.append("\n");
    for (int i = 0; i < level_; ++i) out_.append(*style_.indent);
  }

  /// Writes what stands between two items, or before the first.
  void separate(bool is_first) {
    if (!is_first) out_.append(style_.item_separator);
    new_line();
  }

  void write_items(const std::vector<Value>& values) {
    out_.append("[");
    ++level_;
    for (size_t i = 0; i < values.size(); ++i) {
      separate(i == 0);
      write(values[i]);
    }
    --level_;
    if (!values.empty()) new_line();
    out_.append("]");
  }

  void write_dict(const Dict& dict) {
    std::vector<const Dict::Entry*> entries;
    budget_.charge(dict.size());
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return compare(budget_, a->first, b->first, "<") < 0;
      });
    }
    out_.append("{");
    ++level_;
    bool is_first = true;
    for (const Dict::Entry* entry : entries) {
      separate(std::exchange(is_first, false));
      write_key(entry->first);
      out_.append(style_.key_separator);
      write(entry->second);
    }
    --level_;
    if (!is_first) new_line();
    out_.append("}");
  }

  void write_key(const Value& key) {
    if (key.is_text()) return write_text(key.text());
    if (!key.is_number() && !key.is_none()) {
      fail(ErrorCode::kUsage, "a {} can't be a key in JSON", key.type_name());
    }
    out_.append("\"");
    write(key);
    out_.append("\"");
  }

  Budget& budget_;
  const JsonStyle& style_;
  TextBuilder out_;
  int level_ = 0;
};

}  // namespace

TextPtr write_json(Budget& budget, const Value& value, const JsonStyle& style) {
  return Writer(budget, style).run(value);
}

}  // namespace snapkv::jinja
