// SPDX-License-Identifier: MIT
#include "server/http/body.h"

#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/parse_number.h"
#include "server/http/chunks.h"
#include "server/http/connection.h"

namespace snapkv::server {
namespace {

thread_local std::string written_error;

/// Closes the connection after the answer; what the client is still sending is not read.
void give_up_connection() {
  if (Connection* connection = Connection::current()) connection->close_after_answer();
}

ApiError too_large(size_t most) {
  return ApiError(413,
                  fmt::format("the body is larger than {}", size_text(static_cast<int64_t>(most))),
                  "request_too_large");
}

/// Returns the stated length; nothing without the header. Throws if the header is not a valid
/// length, since the end of the body would then be a guess.
std::optional<int64_t> stated_length(const httplib::Request& request) {
  const size_t n_headers = request.get_header_value_count("Content-Length");
  if (n_headers == 0) return std::nullopt;
  const std::string text = request.get_header_value("Content-Length");
  if (n_headers > 1 || text.empty() || text.find_first_not_of("0123456789") != text.npos) {
    throw ApiError(400, "there must be one Content-Length, a whole number of bytes",
                   "invalid_length");
  }
  const std::string digits = text.substr(std::min(text.find_first_not_of('0'), text.size() - 1));
  return parse_whole(digits).value_or(INT64_MAX);
}

/// Throws for invalid names of headers: another server in front may have read such a line
/// differently.
void check_header_names(const httplib::Request& request) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";  // allowed besides letters and digits
  const auto is_allowed = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kOthers.find(c) != kOthers.npos;
  };
  for (const auto& [name, value] : request.headers) {
    if (!name.empty() && std::all_of(name.begin(), name.end(), is_allowed)) continue;
    throw ApiError(400, "'" + name.substr(0, 100) + "' is not the name of a header",
                   "invalid_header");
  }
}

void check_transfer_encoding(const httplib::Request& request) {
  const size_t n_headers = request.get_header_value_count("Transfer-Encoding");
  if (n_headers == 0) return;
  const std::string coding = request.get_header_value("Transfer-Encoding");
  if (n_headers > 1 || strcasecmp(coding.c_str(), "chunked") != 0) {
    throw ApiError(501,
                   "the only Transfer-Encoding is 'chunked', not '" + coding.substr(0, 100) + "'",
                   "unsupported_transfer_encoding");
  }
  if (request.has_header("Content-Length")) {
    throw ApiError(400, "a body has a Content-Length or a Transfer-Encoding, not both",
                   "invalid_length");
  }
  if (request.version == "HTTP/1.0") {
    throw ApiError(400, "a body of HTTP/1.0 needs a Content-Length", "invalid_length");
  }
  if (request.method != "POST") {  // the library would read it without a limit
    throw ApiError(400, "a body of " + request.method + " needs a Content-Length",
                   "invalid_length");
  }
}

/// HTTP/1.1 asks for the name of the host, once: servers in front may have chosen this one by it.
void check_host(const httplib::Request& request) {
  const size_t n = request.get_header_value_count("Host");
  if (n == 1 || (n == 0 && request.version == "HTTP/1.0")) return;
  throw ApiError(400, fmt::format("there must be one header 'Host', this request has {}", n),
                 "invalid_host");
}

/// Memory that is asked for at a time while a body of unknown length is received.
constexpr size_t kReceivingStep = size_t{64} << 10;

/// Reads a body in chunks; returns false if it breaks off or is not in chunks.
bool read_chunks_of(const httplib::Request& request, const httplib::ContentReceiver& receive) {
  const std::string coding = request.get_header_value("Content-Encoding");
  if (!coding.empty() && coding != "identity") {
    throw ApiError(
        415, "a body in chunks can't have the Content-Encoding '" + coding.substr(0, 100) + "' too",
        "unsupported_media_type");
  }
  Connection* connection = Connection::current();
  if (connection == nullptr) return false;
  return read_chunks([&](char* data, size_t size) { return connection->read(data, size); },
                     receive);
}

}  // namespace

void check_framing(const httplib::Request& request, size_t most) {
  try {
    check_header_names(request);
    check_host(request);
    check_transfer_encoding(request);
    const std::optional<int64_t> length = stated_length(request);
    if (length && *length > static_cast<int64_t>(most)) throw too_large(most);
  } catch (const ApiError&) {
    give_up_connection();
    throw;
  }
}

ReceivedBody read_body(const httplib::Request& request, const httplib::ContentReader& reader,
                       size_t most, BodyMemory& memory) {
  const bool is_chunked = request.has_header("Transfer-Encoding");
  // the library would read until the client closes the connection
  if (!is_chunked && !request.has_header("Content-Length")) return {};
  ReceivedBody body;
  size_t paid = 0;  // bytes
  const auto pay = [&](size_t bytes) {
    memory.receive(body.share, bytes, check_current_client);
    paid += bytes;
  };
  bool is_too_large = false;
  std::optional<ApiError> refusal;  // exceptions may not pass through the library
  const httplib::ContentReceiver receive = [&](const char* data, size_t size) {
    is_too_large = size > most - body.text.size();
    if (is_too_large) return false;
    try {
      while (paid < body.text.size() + size) pay(std::max(kReceivingStep, paid / 2));
    } catch (const ApiError& e) {
      refusal = e;
      return false;
    }
    body.text.append(data, size);
    return true;
  };
  try {
    if (request.is_multipart_form_data()) {
      throw ApiError(415, "the body must be JSON, not a form", "unsupported_media_type");
    }
    if (!is_chunked) {
      const auto length = static_cast<size_t>(stated_length(request).value_or(0));
      pay(length);
      body.text.reserve(length);
      if (Connection* connection = Connection::current()) connection->restart_body();
    }
    if (is_chunked ? read_chunks_of(request, receive) : reader(receive)) return body;
    if (refusal) throw ApiError(*refusal);
    if (is_too_large) throw too_large(most);
    const Connection* connection = Connection::current();
    if (connection != nullptr && connection->ending()) throw server_ends();
    throw ApiError(400, "the body broke off, or took too long to come", "incomplete_body");
  } catch (const ApiError&) {
    give_up_connection();
    throw;
  }
}

Json parse_body(ReceivedBody& body, BodyMemory& memory) {
  if (body.text.empty()) return parse_body("{}");
  memory.parse(body.share, parsing_bytes(body.text), check_current_client);
  Json json = parse_body(body.text);
  body.text = std::string();
  return json;
}

void check_current_client() {
  if (Connection* connection = Connection::current()) check_client(*connection);
}

ApiError no_such_route(const httplib::Request& request) {
  return ApiError(404, "there is no " + request.method + " " + request.path.substr(0, 200),
                  "not_found");
}

void write_text(httplib::Response& response, std::string text, const char* type) {
  constexpr size_t kMostCompressed = 64 << 10;
  if (text.size() <= kMostCompressed) {
    response.set_content(std::move(text), type);
    return;
  }
  const auto shared = std::make_shared<const std::string>(std::move(text));
  response.set_content_provider(shared->size(), type,
                                [shared](size_t offset, size_t length, httplib::DataSink& sink) {
                                  return sink.write(shared->data() + offset, length);
                                });
}

void write_json(httplib::Response& response, const Json& json, int status) {
  response.status = status;
  write_text(response, to_text(json), "application/json");
}

Json error_json(const std::string& path, const ApiError& error) {
  if (path.starts_with("/v1/messages")) return anthropic_error(error);
  return path.starts_with("/api/") ? ollama_error(error) : openai_error(error);
}

void write_error(const httplib::Request& request, httplib::Response& response,
                 const ApiError& error) {
  if (error.retry_after > 0) {
    response.set_header("Retry-After", std::to_string(error.retry_after));
  }
  written_error = error.what();
  write_json(response, error_json(request.path, error), error.status);
}

std::string take_written_error() { return std::exchange(written_error, {}); }

void write_warnings(httplib::Response& response, const std::vector<std::string>& warnings) {
  constexpr size_t kMostBytes = 2000;
  std::string text;
  for (const std::string& warning : warnings) text += (text.empty() ? "" : "; ") + warning;
  // a header is ASCII, in one line, and short
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (text.size() > kMostBytes) text.replace(kMostBytes, std::string::npos, "...");
  if (!text.empty()) response.set_header("x-snapkv-warning", text);
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
