// SPDX-License-Identifier: MIT
#include "server/api/api_error.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace snapkv::server {
namespace {

constexpr const char* kContextCode = "context_length_exceeded";

const char* openai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

const char* anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
    case 529:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

/// Leaves out the middle of a text of more than `most` bytes: its end may say what is wrong.
std::string without_middle(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t head = most * 2 / 3, tail = text.size() - most / 3;
  while (head > 0 && !begins_character(text[head])) --head;
  while (tail < text.size() && !begins_character(text[tail])) ++tail;
  return text.substr(0, head) + " ... " + text.substr(tail);
}

constexpr size_t kMostMessage = 1200, kMostParam = 200;  // bytes

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

ApiError::ApiError(int status_code, const std::string& message, std::string code_text,
                   const std::string& param_name, int retry_seconds)
    : std::runtime_error(without_middle(message, kMostMessage)),
      status(status_code),
      code(std::move(code_text)),
      param(without_middle(param_name, kMostParam)),
      retry_after(retry_seconds) {}

ApiError bad_request(const std::string& param, const std::string& message) {
  return ApiError(400, message, "", param);
}

ApiError api_error(const Refused& refused) {
  switch (refused.kind) {
    case Refused::Kind::queue_full:
      return ApiError(429, refused.what(), "queue_full", "", std::max(refused.retry_after, 1));
    case Refused::Kind::draining:
      return ApiError(503, refused.what(), "draining", "", refused.retry_after);
    case Refused::Kind::never_fits:
      return ApiError(400, refused.what(), "does_not_fit");
    case Refused::Kind::context_exceeded: {
      ApiError error(400, refused.what(), kContextCode);
      if (refused.n_ctx > 0) {
        error.anthropic_message =
            fmt::format("prompt is too long: {} tokens > {} maximum", refused.n_prompt,
                        std::min(refused.n_ctx, refused.n_prompt - 1));
      }
      return error;
    }
    case Refused::Kind::bad_request:
      break;
  }
  return ApiError(400, refused.what());
}

ApiError api_error(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::bad_request:
      return ApiError(400, failure.message);
    case Failure::Kind::context_exceeded:
      return ApiError(400, failure.message, kContextCode);
    case Failure::Kind::does_not_fit:
      return ApiError(503, failure.message, "does_not_fit");
    case Failure::Kind::cancelled:
      return ApiError(503, failure.message, "cancelled");
    case Failure::Kind::timeout:
      return ApiError(504, failure.message, "timeout");
    case Failure::Kind::internal:
      break;
  }
  return ApiError(500, failure.message);
}

ApiError api_error(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUsage:
      return ApiError(400, error.what());
    case ErrorCode::kContextExceeded:
      return ApiError(400, error.what(), kContextCode);
    case ErrorCode::kDoesNotFit:
      return ApiError(503, error.what(), "does_not_fit");
    default:
      return ApiError(500, error.what());
  }
}

Json openai_error(const ApiError& error) {
  return {{"error",
           {{"message", error.what()},
            {"type", openai_type(error.status)},
            {"param", text_or_null(error.param)},
            {"code", text_or_null(error.code)}}}};
}

Json anthropic_error(const ApiError& error) {
  const std::string& words = error.anthropic_message;
  return {{"type", "error"},
          {"error",
           {{"type", anthropic_type(error.status)},
            {"message", words.empty() ? error.what() : words}}}};
}

Json ollama_error(const ApiError& error) { return {{"error", error.what()}}; }

}  // namespace snapkv::server
