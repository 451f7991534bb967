// SPDX-License-Identifier: MIT
#include "server/http/body.h"

#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <optional>

#include "base/parse_number.h"
#include "server/http/connection.h"

namespace snapkv::server {
namespace {

/// What the client still sends is not read.
void give_up_connection() {
  if (Connection* connection = Connection::current()) connection->close_after_answer();
}

ApiError too_large(size_t most) {
  return ApiError(413,
                  fmt::format("the body is larger than {}", size_text(static_cast<int64_t>(most))),
                  "request_too_large");
}

/// Nothing without the header. Where it does not say how long the body is, where that ends would be
/// a guess.
std::optional<int64_t> stated_length(const httplib::Request& request) {
  const size_t n_headers = request.get_header_value_count("Content-Length");
  if (n_headers == 0) return std::nullopt;
  const std::string text = request.get_header_value("Content-Length");
  if (n_headers > 1 || text.empty() || text.find_first_not_of("0123456789") != text.npos) {
    give_up_connection();
    throw ApiError(400, "there must be one Content-Length, a whole number of bytes",
                   "invalid_length");
  }
  const std::string digits = text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
  return parse_whole(digits).value_or(INT64_MAX);
}

}  // namespace

std::string read_body(const httplib::Request& request, const httplib::ContentReader& reader,
                      size_t most) {
  const std::optional<int64_t> length = stated_length(request);
  if (length && *length > static_cast<int64_t>(most)) {
    give_up_connection();
    throw too_large(most);
  }
  // the library would read until the client closes the connection
  if (!length && !request.has_header("Transfer-Encoding")) return "";
  if (request.is_multipart_form_data()) {
    give_up_connection();
    throw ApiError(415, "the body must be JSON, not a form", "unsupported_media_type");
  }
  std::string body;
  bool is_too_large = false;
  const bool complete = reader([&](const char* data, size_t size) {
    is_too_large = size > most - body.size();
    if (!is_too_large) body.append(data, size);
    return !is_too_large;
  });
  if (!complete) {
    give_up_connection();
    if (is_too_large) throw too_large(most);
    const Connection* connection = Connection::current();
    if (connection != nullptr && connection->ending()) throw server_ends();
    throw ApiError(400, "the body broke off, or took too long to come", "incomplete_body");
  }
  return body;
}

void write_json(httplib::Response& response, const Json& json, int status) {
  response.status = status;
  response.set_content(to_text(json), "application/json");
}

Json error_json(const std::string& path, const ApiError& error) {
  return path.starts_with("/v1/messages") ? anthropic_error(error) : openai_error(error);
}

void write_error(const httplib::Request& request, httplib::Response& response,
                 const ApiError& error) {
  if (error.retry_after > 0) {
    response.set_header("Retry-After", std::to_string(error.retry_after));
  }
  write_json(response, error_json(request.path, error), error.status);
}

ApiError server_ends() { return ApiError(503, "the server is about to end", "draining"); }

void check_client(Connection& connection) {
  if (connection.ending()) throw server_ends();
  if (connection.awaits_answer()) return;
  connection.close_after_answer();
  throw ApiError(499, "the client closed the connection before its answer was there",
                 "client_closed_request");
}

ApiError current_error() {
  try {
    throw;
  } catch (const ApiError& e) {
    return e;
  } catch (const Refused& e) {
    return api_error(e);
  } catch (const Error& e) {
    return api_error(e);
  } catch (const std::bad_alloc&) {
    return ApiError(503, "out of memory", "does_not_fit");
  } catch (const std::exception& e) {
    return ApiError(500, e.what());
  }
}

}  // namespace snapkv::server
