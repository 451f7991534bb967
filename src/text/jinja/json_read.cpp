// SPDX-License-Identifier: MIT
#include <limits>
#include <nlohmann/json.hpp>

#include "text/jinja/json.h"

namespace snapkv::jinja {
namespace {

using Json = nlohmann::json;

/// Takes the events of nlohmann's parser and builds the value without recursion.
class Reader final : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(Budget& budget) : budget_(budget) {}

  DictPtr result() {
    const auto* dict = result_.get_if<DictPtr>();
    if (dict == nullptr) {
      fail(ErrorCode::kUsage, "the JSON text must be an object with 'messages', not {}",
           result_.type_name());
    }
    return *dict;
  }

  bool null() override { return add(Value(None())); }
  bool boolean(bool value) override { return add(Value(value)); }
  bool number_integer(number_integer_t value) override { return add(Value(int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail(ErrorCode::kUsage, "the JSON text has the integer {}, which needs more than 64 bits",
           value);
    }
    return add(Value(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(Value(value)); }
  bool string(string_t& value) override {
    // The role of messages[i].
    const bool is_role =
        levels_.size() == 3 && levels_[0].key == "messages" && levels_.back().key == "role";
    return add(text(std::move(value), marked() && !is_role));
  }
  bool binary(binary_t&) override { return false; }  // JSON text has no binary values

  bool start_object(std::size_t) override { return open(true); }
  bool key(string_t& name) override {
    levels_.back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    auto dict = std::make_shared<const Dict>(std::move(levels_.back().dict));
    levels_.pop_back();
    return add(Value(std::move(dict)));
  }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override {
    Value list = Value::list(std::move(levels_.back().items));
    levels_.pop_back();
    return add(std::move(list));
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& e) override {
    std::string_view what = e.what();
    if (const size_t end = what.find("] "); what.starts_with("[json.") && end != what.npos) {
      what.remove_prefix(end + 2);
    }
    fail(ErrorCode::kUsage, "not JSON: {}", what);
  }

 private:
  struct Level {
    bool is_object;
    Dict dict = {};
    std::string key = {};
    std::vector<Value> items = {};
  };

  /// Whether the text that is being read comes from the conversation.
  bool marked() const {
    if (levels_.empty()) return false;
    const std::string& name = levels_[0].key;
    return levels_[0].is_object && (name == "messages" || name == "tools" || name == "documents");
  }

  Value text(std::string bytes, bool input) {
    std::vector<ByteRange> marks;
    if (input && !bytes.empty()) marks.push_back({0, bytes.size()});
    return Value(std::make_shared<const Text>(std::move(bytes), std::move(marks)));
  }

  bool open(bool is_object) {
    if (std::ssize(levels_) >= kMaxValueDepth) {
      fail(ErrorCode::kUsage, "the JSON text is nested more than {} levels deep", kMaxValueDepth);
    }
    levels_.push_back({is_object});
    return true;
  }

  bool add(Value value) {
    if (levels_.empty()) {
      result_ = std::move(value);
    } else if (levels_.back().is_object) {
      const bool input = marked() && levels_.size() > 1;
      levels_.back().dict.set(budget_, text(levels_.back().key, input), std::move(value));
    } else {
      levels_.back().items.push_back(std::move(value));
    }
    return true;
  }

  Budget& budget_;
  std::vector<Level> levels_;
  Value result_;
};

}  // namespace

DictPtr read_variables(Budget& budget, std::string_view json) {
  Reader reader(budget);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return reader.result();
}

}  // namespace snapkv::jinja
