// SPDX-License-Identifier: MIT
// ApiError: an error that answers a request, and its JSON in the forms that OpenAI's and
// Anthropic's clients expect. The code that reads requests throws it.
#pragma once

#include <stdexcept>
#include <string>

#include "server/json.h"
#include "server/request_engine.h"
#include "snapkv/error.h"

namespace snapkv::server {

class ApiError : public std::runtime_error {
 public:
  /// `message` and `param_name` are shortened if they are long, as where they repeat a part of the
  /// request.
  ApiError(int status_code, const std::string& message, std::string code_text = "",
           const std::string& param_name = "", int retry_seconds = 0);

  int status;                          ///< HTTP status
  std::string code;                    ///< "context_length_exceeded"; empty: null
  std::string param;                   ///< the request's field; empty: null
  int retry_after;                     ///< seconds; 0: none
  std::string anthropic_message = {};  ///< where Anthropic's clients look for other words
};

/// 400: a field of the request is wrong.
ApiError bad_request(const std::string& param, const std::string& message);

/// Errors of the scheduler and the library as answers.
ApiError api_error(const Refused& refused);
ApiError api_error(const Failure& failure);
ApiError api_error(const Error& error);

/// {"error": {"message", "type", "param", "code"}}
Json openai_error(const ApiError& error);
/// {"type": "error", "error": {"type", "message"}}
Json anthropic_error(const ApiError& error);
/// {"error": message}
Json ollama_error(const ApiError& error);

}  // namespace snapkv::server
