// SPDX-License-Identifier: MIT
// Exchange: a request of a client, read, with the object that writes its answer. The functions that
// make one read the bodies of the endpoints that generate.
#pragma once

#include <memory>

#include "server/api/answers.h"
#include "server/api/context.h"

namespace snapkv::server {

struct Exchange {
  Request request;
  std::unique_ptr<Answers> answers;
  /// Of a completion with several prompts: those of the others. The answers' choices are those of
  /// `request`, then those of each of these.
  std::vector<Request> others = {};
};

// Each throws ApiError, and Error for what the library refuses.
Exchange read_chat_completion(const Json& body,
                              const ApiContext& context);               ///< chat_completions.cpp
Exchange read_completion(const Json& body, const ApiContext& context);  ///< completions.cpp
Exchange read_response(const Json& body, const ApiContext& context);    ///< responses.cpp
Exchange read_messages(const Json& body, const ApiContext& context);    ///< messages.cpp
Exchange read_ollama_chat(const Json& body, const ApiContext& context);      ///< ollama.cpp
Exchange read_ollama_generate(const Json& body, const ApiContext& context);  ///< ollama.cpp

/// Tokens of the prompt that a body of /v1/messages makes, a document that it continues included.
int64_t count_message_tokens(const Json& body, const ApiContext& context);
/// The same of /v1/responses.
int64_t count_response_tokens(const Json& body, const ApiContext& context);
/// The prompt that a body with messages makes: /apply-template, /v1/kv/snapshots.
RenderedChat read_chat_prompt(const Json& body, const ApiContext& context);

/// What the answer needs of a request that has been read.
AnswerOptions answer_options(const Request& request, bool stream, const ApiContext& context);

}  // namespace snapkv::server
