// SPDX-License-Identifier: MIT
// Answers of Ollama's API: JSON, or a line of JSON for each part (NDJSON).
#pragma once

#include <memory>

#include "server/api/answers.h"

namespace snapkv::server {

enum class OllamaApi { chat, generate };

/// `options.model` is what the client calls the model.
std::unique_ptr<Answers> make_ollama_answers(AnswerOptions options, OllamaApi api);

/// The answer to a request that has nothing to answer, by which clients load and unload models.
Json ollama_empty_answer(const std::string& model, int64_t created, OllamaApi api, bool unloads);

}  // namespace snapkv::server
