// SPDX-License-Identifier: MIT
#include "text/json_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace snapkv {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFileBytes = size_t{1} << 29;
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxValues = 4'000'000;  // not counting the tables
constexpr size_t kMaxEntries = 64'000'000;

/// The part of the file that the parser is in.
enum class Place { json, vocab_object, vocab_array, vocab_entry, merges, merge_entry };

/// Takes the parser's events and puts the tables into vectors and the rest into a JSON value.
class Handler : public nlohmann::json_sax<Json> {
 public:
  explicit Handler(TokenizerFile& file) : file_(file) {}

  bool null() override { return scalar(Json(), "null"); }
  bool boolean(bool value) override { return scalar(Json(value), "a boolean"); }
  bool number_integer(number_integer_t value) override { return number(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return number(Json(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has no binary values
  bool string(string_t& value) override;
  bool key(string_t& name) override;
  bool start_object(size_t) override;
  bool end_object() override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string&, const Json::exception& e) override;

 private:
  [[noreturn]] void fail_found(std::string_view found) const;
  bool number(Json value);
  bool scalar(Json value, std::string_view what);
  /// Adds a value to the innermost open object or array, and returns the place of the value.
  Json& add(Json value);
  /// Whether the value that begins here is this member of "model".
  bool begins(std::string_view member) const {
    return place_ == Place::json && open_.size() == 2 && in_model_ && key_ == member;
  }
  void count() {
    if (++n_values_ > kMaxValues) {
      fail(ErrorCode::kBadModel, "{}: more than {} values beside the vocabulary", file_.origin,
           kMaxValues);
    }
  }
  void count_entry(size_t n) const {
    if (n > kMaxEntries) {
      fail(ErrorCode::kBadModel, "{}: more than {} entries in model.{}", file_.origin, kMaxEntries,
           place_ == Place::merges || place_ == Place::merge_entry ? "merges" : "vocab");
    }
  }

  TokenizerFile& file_;
  Place place_ = Place::json;
  std::vector<Json*> open_;  // objects and arrays that are not yet closed
  bool in_model_ = false;
  std::string key_;    // of the next value
  std::string entry_;  // text of a vocabulary entry, or the first part of a merge
  int n_in_entry_ = 0;
  size_t n_values_ = 0;
};

void Handler::fail_found(std::string_view found) const {
  switch (place_) {
    case Place::vocab_object:
      fail(ErrorCode::kBadModel, "{}: model.vocab: '{}' is {}, expected an id", file_.origin,
           key_.substr(0, 64), found);
    case Place::vocab_array:
    case Place::vocab_entry:
      fail(ErrorCode::kBadModel, "{}: model.vocab[{}]: {}, expected [text, score]", file_.origin,
           file_.scored_vocab.size(), found);
    case Place::merges:
    case Place::merge_entry:
      fail(ErrorCode::kBadModel, "{}: model.merges[{}]: {}, expected \"a b\" or [\"a\", \"b\"]",
           file_.origin, file_.merges.size(), found);
    case Place::json:
      break;
  }
  fail(ErrorCode::kBadModel, "{}: {}, expected a JSON object", file_.origin, found);
}

Json& Handler::add(Json value) {
  count();
  if (open_.empty()) return file_.json = std::move(value);
  Json& parent = *open_.back();
  if (parent.is_object()) return parent[key_] = std::move(value);
  parent.push_back(std::move(value));
  return parent.back();
}

bool Handler::scalar(Json value, std::string_view what) {
  if (place_ != Place::json) fail_found(what);
  add(std::move(value));
  return true;
}

bool Handler::number(Json value) {
  if (place_ == Place::vocab_object && value.is_number_integer()) {
    count_entry(file_.vocab.size());
    if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) {
      fail_found("a number above 2^63");
    }
    file_.vocab.emplace_back(std::move(key_), value.get<int64_t>());
    return true;
  }
  if (place_ == Place::vocab_entry && n_in_entry_ == 1) {
    ++n_in_entry_;
    file_.scored_vocab.emplace_back(std::move(entry_), value.get<double>());
    return true;
  }
  return scalar(std::move(value), "a number");
}

bool Handler::string(string_t& value) {
  if ((place_ == Place::vocab_entry || place_ == Place::merge_entry) && n_in_entry_ == 0) {
    ++n_in_entry_;
    entry_ = std::move(value);
    return true;
  }
  if (place_ == Place::merge_entry && n_in_entry_ == 1) {
    ++n_in_entry_;
    file_.merges.emplace_back(std::move(entry_), std::move(value));
    return true;
  }
  if (place_ == Place::merges) {
    count_entry(file_.merges.size());
    const size_t space = value.find(' ');
    if (space == std::string::npos || space == 0 || space + 1 == value.size()) {
      fail_found("'" + value.substr(0, 64) + "'");
    }
    file_.merges.emplace_back(value.substr(0, space), value.substr(space + 1));
    return true;
  }
  return scalar(Json(std::move(value)), "a string");
}

bool Handler::key(string_t& name) {
  if (place_ == Place::json && open_.size() == 1) in_model_ = name == "model";
  key_ = std::move(name);
  return true;
}

bool Handler::start_object(size_t) {
  if (begins("vocab")) {
    if (file_.has_vocab) fail(ErrorCode::kBadModel, "{}: two model.vocab", file_.origin);
    file_.has_vocab = true;
    place_ = Place::vocab_object;
    return true;
  }
  if (place_ != Place::json) fail_found("an object");
  if (open_.size() == kMaxDepth) {
    fail(ErrorCode::kBadModel, "{}: nested deeper than {}", file_.origin, kMaxDepth);
  }
  open_.push_back(&add(Json::object()));
  return true;
}

bool Handler::end_object() {
  if (place_ == Place::vocab_object) {
    place_ = Place::json;
  } else {
    open_.pop_back();
  }
  return true;
}

bool Handler::start_array(size_t) {
  if (begins("vocab") || begins("merges")) {
    bool& has = key_ == "vocab" ? file_.has_vocab : file_.has_merges;
    if (has) fail(ErrorCode::kBadModel, "{}: two model.{}", file_.origin, key_);
    has = true;
    place_ = key_ == "vocab" ? Place::vocab_array : Place::merges;
    return true;
  }
  if (place_ == Place::vocab_array || place_ == Place::merges) {
    count_entry(file_.scored_vocab.size() + file_.merges.size());
    place_ = place_ == Place::merges ? Place::merge_entry : Place::vocab_entry;
    n_in_entry_ = 0;
    return true;
  }
  if (place_ != Place::json) fail_found("an array");
  if (open_.empty()) fail_found("an array");
  if (open_.size() == kMaxDepth) {
    fail(ErrorCode::kBadModel, "{}: nested deeper than {}", file_.origin, kMaxDepth);
  }
  open_.push_back(&add(Json::array()));
  return true;
}

bool Handler::end_array() {
  switch (place_) {
    case Place::vocab_entry:
    case Place::merge_entry:
      if (n_in_entry_ != 2) fail_found(n_in_entry_ == 0 ? "an empty array" : "an array of one");
      place_ = place_ == Place::merge_entry ? Place::merges : Place::vocab_array;
      break;
    case Place::vocab_array:
    case Place::merges:
      place_ = Place::json;
      break;
    default:
      open_.pop_back();
  }
  return true;
}

bool Handler::parse_error(size_t position, const std::string&, const Json::exception& e) {
  std::string what = e.what();
  if (const size_t at = what.find("parse error"); at != std::string::npos) what.erase(0, at);
  fail(ErrorCode::kBadModel, "{}: no valid JSON at byte {}: {}", file_.origin, position, what);
}

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& path) {
  TokenizerFile file;
  file.origin = fmt::format("'{}'", path);
  if (text.size() > kMaxFileBytes) {
    fail(ErrorCode::kBadModel, "{}: {} bytes, more than {}", file.origin, text.size(),
         kMaxFileBytes);
  }
  Handler handler(file);
  Json::sax_parse(text, &handler);
  if (!file.json.is_object()) {
    fail(ErrorCode::kBadModel, "{}: expected a JSON object", file.origin);
  }
  return file;
}

JsonField JsonField::operator[](const char* key) const {
  static const Json kNull;
  if (!value_->is_object()) fail_expected("an object");
  const auto at = value_->find(key);
  return {at == value_->end() ? kNull : *at, place_ + (place_.ends_with("'") ? ": " : ".") + key};
}

std::vector<JsonField> JsonField::elements() const {
  if (!value_->is_array()) fail_expected("an array");
  std::vector<JsonField> fields;
  for (size_t i = 0; i < value_->size(); ++i) {
    fields.emplace_back((*value_)[i], fmt::format("{}[{}]", place_, i));
  }
  return fields;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  if (!value_->is_object()) fail_expected("an object");
  std::vector<std::pair<std::string, JsonField>> fields;
  for (auto at = value_->begin(); at != value_->end(); ++at) {
    fields.emplace_back(at.key(), (*this)[at.key().c_str()]);
  }
  return fields;
}

const std::string& JsonField::string() const {
  if (!value_->is_string()) fail_expected("a string");
  return value_->get_ref<const std::string&>();
}

std::string JsonField::string(std::string_view otherwise) const {
  return is_null() ? std::string(otherwise) : string();
}

bool JsonField::boolean(bool otherwise) const {
  if (is_null()) return otherwise;
  if (!value_->is_boolean()) fail_expected("true or false");
  return value_->get<bool>();
}

int64_t JsonField::integer() const {
  if (!value_->is_number_integer() ||
      (value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t{INT64_MAX})) {
    fail_expected("an integer");
  }
  return value_->get<int64_t>();
}

int64_t JsonField::integer(int64_t otherwise) const { return is_null() ? otherwise : integer(); }

void JsonField::fail_unsupported(std::string_view what, std::string_view supported) const {
  fail(ErrorCode::kBadModel, "{}: {} is not supported; supported: {}", place_, what, supported);
}

void JsonField::fail_expected(std::string_view expected) const {
  std::string found = value_->type_name();
  if (!value_->is_structured())
    found = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > 64) found = found.substr(0, 61) + "...";
  fail(ErrorCode::kBadModel, "{}: {}, expected {}", place_, is_null() ? "nothing" : found,
       expected);
}

}  // namespace snapkv
