// SPDX-License-Identifier: MIT
// Exchange: a client's request and the object that writes its answer. The functions below read the
// bodies of the endpoints that generate.
#pragma once

#include <memory>

#include "server/api/answers.h"
#include "server/api/context.h"

namespace snapkv::server {

struct Exchange {
  Request request;
  std::unique_ptr<Answers> answers;
  /// For a completion with several prompts: the requests of the other prompts. The choices are
  /// those of `request`, then those of each of these, in order.
  std::vector<Request> others = {};
};

// These throw ApiError, and Error for what the library refuses.
Exchange read_chat_completion(const Json& body,
                              const ApiContext& context);                ///< chat_completions.cpp
Exchange read_completion(const Json& body, const ApiContext& context);   ///< completions.cpp
Exchange read_response(const Json& body, const ApiContext& context);     ///< responses.cpp
Exchange read_messages(const Json& body, const ApiContext& context);     ///< messages.cpp
Exchange read_ollama_chat(const Json& body, const ApiContext& context);  ///< ollama.cpp
Exchange read_ollama_generate(const Json& body, const ApiContext& context);  ///< ollama.cpp

/// Tokens of the prompt in a body of /v1/messages, including a document that it continues.
int64_t count_message_tokens(const Json& body, const ApiContext& context);
/// The same of /v1/responses.
int64_t count_response_tokens(const Json& body, const ApiContext& context);
/// The prompt in a body with messages: /apply-template, /v1/kv/snapshots.
RenderedChat read_chat_prompt(const Json& body, const ApiContext& context);

/// The properties of a request that its answer needs.
AnswerOptions answer_options(const Request& request, bool stream, const ApiContext& context);

}  // namespace snapkv::server
