// SPDX-License-Identifier: MIT
// The handles of the C API's second part, and how texts, tokens and callbacks cross it.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "bindings/c_api_support.h"
#include "snapkv/engine.h"
#include "snapkv/grammar.h"
#include "snapkv/options.h"
#include "snapkv/prefill.h"

struct snapkv_options {
  snapkv::EngineOptions options;
};

struct snapkv_model {
  std::shared_ptr<const snapkv::Model> model;
  /// Made once, with the first grammar.
  struct Vocabulary {
    std::once_flag made;
    std::shared_ptr<const snapkv::GrammarVocabulary> tokens;
  };
  std::shared_ptr<Vocabulary> vocabulary = std::make_shared<Vocabulary>();
};

struct snapkv_prefix {
  std::shared_ptr<const snapkv::Model> model;
  std::shared_ptr<const snapkv::KvPrefix> prefix;
};

struct snapkv_session {
  snapkv_model model;
  std::shared_ptr<snapkv::Session> session;
};

namespace snapkv {

using OrderedJson = nlohmann::ordered_json;

inline snapkv_text* new_text(std::string_view text) {
  auto result = std::make_unique<snapkv_text>();
  result->data = static_cast<char*>(std::malloc(text.size() + 1));
  if (result->data == nullptr) throw std::bad_alloc();
  std::memcpy(result->data, text.data(), text.size());
  result->data[text.size()] = '\0';
  result->n = text.size();
  return result.release();
}

/// JSON with U+FFFD for what is not UTF-8.
inline snapkv_text* new_json(const OrderedJson& json) {
  return new_text(json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

inline snapkv_tokens* new_tokens(std::span<const int32_t> ids) {
  auto result = std::make_unique<snapkv_tokens>();
  result->ids = static_cast<int32_t*>(std::malloc(std::max<size_t>(1, ids.size_bytes())));
  if (result->ids == nullptr) throw std::bad_alloc();
  std::copy(ids.begin(), ids.end(), result->ids);
  result->n = ids.size();
  return result.release();
}

inline std::span<const int32_t> tokens_of(const int32_t* ids, size_t n) {
  if (n > 0) given(ids, "ids");
  return {ids, n};
}

inline std::string_view text_of(const char* text, const char* what) { return &given(text, what); }

inline ProgressFn progress_of(snapkv_progress_fn progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](const Progress& p) {
    return progress(user, p.phase == Phase::load ? "load" : "prefill", p.fraction) == 0;
  };
}

}  // namespace snapkv
