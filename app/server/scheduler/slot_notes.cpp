// SPDX-License-Identifier: MIT
#include "server/scheduler/slot_notes.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "server/json.h"

namespace snapkv::server {
namespace {

[[noreturn]] void fail_foreign(const std::string& path) {
  fail(ErrorCode::kBadModel, "{}: not saved by a server: its notes do not have the conversation",
       path);
}

std::vector<int32_t> tokens_in(const Json& notes, const char* name, int64_t n_vocab,
                               const std::string& path) {
  const auto found = notes.find(name);
  if (found == notes.end() || !found->is_array()) fail_foreign(path);
  std::vector<int32_t> tokens;
  for (const Json& id : *found) {
    if (!id.is_number_integer() || id < 0 || id >= n_vocab) {
      fail(ErrorCode::kBadModel, "{}: '{}' in its notes has what is not a token of the model", path,
           name);
    }
    tokens.push_back(id.get<int32_t>());
  }
  return tokens;
}

/// Reads which bytes of the text are input.
void read_input(const Json& notes, const std::string& path, KeptSession& kept) {
  if (!notes.contains("prompt_bytes") || !notes.contains("input")) fail_foreign(path);
  const auto number = [&](const Json& json, size_t most) {
    if (!json.is_number_unsigned() || json.get<size_t>() > most) fail_foreign(path);
    return json.get<size_t>();
  };
  kept.prompt_bytes = number(notes["prompt_bytes"], kept.text.size());
  if (!notes["input"].is_array()) fail_foreign(path);
  for (const Json& range : notes["input"]) {
    if (!range.is_array() || range.size() != 2) fail_foreign(path);
    const size_t end = number(range[1], kept.prompt_bytes);
    kept.input.push_back({number(range[0], end), end});
  }
}

}  // namespace

std::string slot_notes(const KeptSession& kept) {
  Json input = Json::array();
  for (const ByteRange& range : kept.input) input.push_back({range.begin, range.end});
  return to_text({{"text", kept.text},
                  {"prompt_bytes", kept.prompt_bytes},
                  {"input", input},
                  {"tokens", kept.tokens},
                  {"unread", kept.unread}});
}

void read_slot_notes(const std::string& text, int64_t n_vocab, const std::string& path,
                     KeptSession& kept) {
  const Json notes = parse_held(text);
  if (!notes.is_object() || !notes.contains("text") || !notes["text"].is_string()) {
    fail_foreign(path);
  }
  kept.text = notes["text"];
  read_input(notes, path, kept);
  kept.tokens = tokens_in(notes, "tokens", n_vocab, path);
  kept.unread = tokens_in(notes, "unread", n_vocab, path);
}

}  // namespace snapkv::server
