// SPDX-License-Identifier: MIT
#include "text/normalizers.h"

#include <optional>
#include <vector>

#include "base/utf8.h"
#include "text/json_pattern.h"
#include "text/unicode.h"

namespace snapkv {
namespace {

class FormNormalizer final : public Normalizer {
 public:
  explicit FormNormalizer(unicode::Form form) : form_(form) {}
  std::string apply(std::string_view text) const override {
    return unicode::normalized(text, form_);
  }

 private:
  unicode::Form form_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string apply(std::string_view text) const override {
    return text.empty() ? std::string() : prefix_ + std::string(text);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(JsonPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string apply(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    JsonPattern::Scanner scanner(pattern_, text);
    size_t done = 0;
    while (const auto match = scanner.next()) {
      out.append(text.substr(done, match->begin - done)).append(content_);
      done = match->end;
    }
    return out.append(text.substr(done));
  }

 private:
  JsonPattern pattern_;
  std::string content_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string apply(std::string_view text) const override {
    const auto space_at = [&](size_t at) {
      const size_t n = utf8::length_by_lead(text[at]);
      return unicode::is_white_space(utf8::code_point(text.data() + at, n)) ? n : size_t{0};
    };
    while (left_ && !text.empty() && space_at(0) > 0) {
      text.remove_prefix(space_at(0));
    }
    while (right_ && !text.empty()) {
      size_t last = text.size() - 1;
      while (last > 0 && (text[last] & 0xc0) == 0x80) --last;
      if (space_at(last) == 0) break;
      text = text.substr(0, last);
    }
    return std::string(text);
  }

 private:
  bool left_, right_;
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  std::string apply(std::string_view text) const override {
    std::string out(text);
    for (const auto& part : parts_) out = part->apply(out);
    return out;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

std::unique_ptr<Normalizer> Normalizer::from_json(const JsonField& field) {
  if (field.is_null()) return nullptr;
  const std::string& type = field["type"].string();
  if (type == "NFC") return std::make_unique<FormNormalizer>(unicode::Form::nfc);
  if (type == "NFD") return std::make_unique<FormNormalizer>(unicode::Form::nfd);
  if (type == "NFKC") return std::make_unique<FormNormalizer>(unicode::Form::nfkc);
  if (type == "NFKD") return std::make_unique<FormNormalizer>(unicode::Form::nfkd);
  if (type == "Prepend") return std::make_unique<Prepend>(field["prepend"].string());
  if (type == "Replace") {
    return std::make_unique<Replace>(JsonPattern(field["pattern"]), field["content"].string());
  }
  if (type == "Strip") {
    return std::make_unique<Strip>(field["strip_left"].boolean(true),
                                   field["strip_right"].boolean(true));
  }
  if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> parts;
    for (const JsonField& part : field["normalizers"].elements()) {
      if (auto made = from_json(part)) parts.push_back(std::move(made));
    }
    return std::make_unique<Sequence>(std::move(parts));
  }
  field["type"].fail_unsupported("'" + type + "'",
                                 "NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, Sequence");
}

}  // namespace snapkv
