// SPDX-License-Identifier: MIT
#include "huggingface/token_table.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/log.h"

namespace snapkv::huggingface {
namespace {

constexpr double kAddedScore = -1000;  // as llama.cpp's converter writes it

/// Whether models use this as a control token even if their files do not say so. As in llama.cpp.
bool looks_special(std::string_view text) {
  const auto between = [&](std::string_view first, std::string_view last) {
    return text.starts_with(first) && text.ends_with(last);
  };
  return text == "<pad>" || text == "<mask>" || text == "<2mass>" || text == "[@BOS@]" ||
         between("<|", "|>") || between("<｜", "｜>") || between("<unused", ">");
}

}  // namespace

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

bool is_byte_token(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && hex(text[3]) &&
         hex(text[4]);
}

void TokenTable::pad() {
  for (int64_t i = 0; i < n_vocab; ++i) {
    if (types[i] != 0) continue;
    tokens[i] = fmt::format("[PAD{}]", i);
    types[i] = kUnused;
  }
}

void TokenTable::set_added(int64_t id, const std::string& text, bool special) {
  const bool control = special || looks_special(text);
  tokens[id] = control ? text : replaced(text, kSpace, " ");
  if (types[id] != kUnknown) types[id] = control ? kControl : kUserDefined;
  if (!scores.empty()) scores[id] = kAddedScore;
}

void TokenTable::read_decoder_tokens(const JsonFields& tokenizer_config, Conflict conflict) {
  const auto all = tokenizer_config.object("added_tokens_decoder");
  if (!all) return;
  for (const auto& [key, item] : all->json().items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || !item.is_object()) {
      all->bad(key, "is {}, expected a token's id and an object", shown(item));
    }
    const JsonFields added(item, tokenizer_config.file(), "added_tokens_decoder." + key + ".");
    const std::string& text = added.text("content");
    const auto [at, inserted] = ids.emplace(text, id);
    if (!inserted && at->second != id) {
      added.bad("content", "is '{}', which has the id {} in {}", printable(text), at->second,
                source);
    }
    if (id >= n_vocab) continue;  // no row of the embeddings
    if (inserted && types[id] != kUnused) {
      if (conflict == Conflict::kError) {
        added.bad("content", "is '{}', but '{}' in {}", printable(text), printable(tokens[id]),
                  source);
      }
      replace(id, text, tokenizer_config.file());
    }
    const bool special = added.flag("special", false) || types[id] == kControl;
    if (inserted || special || conflict == Conflict::kReplace) set_added(id, text, special);
  }
}

void TokenTable::replace(int64_t id, const std::string& text, const std::string& file) {
  log_info("'{}': token {} is '{}', not '{}' as in {}", file, id, printable(text),
           printable(tokens[id]), source);
  const auto old = ids.find(tokens[id]);
  if (old != ids.end() && old->second == id) ids.erase(old);
  types[id] = kNormal;
}

void TokenTable::log_beyond(const std::string& file) const {
  if (n_beyond == 0) return;
  log_info("'{}': {} tokens have ids beyond the model's vocabulary of {}, they are left out", file,
           n_beyond, n_vocab);
}

}  // namespace snapkv::huggingface
