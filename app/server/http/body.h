// SPDX-License-Identifier: MIT
// Bodies of requests and answers.
#pragma once

#include <httplib.h>

#include <string>
#include <vector>

#include "server/api/api_error.h"
#include "server/http/body_memory.h"
#include "server/http/connection.h"

namespace snapkv::server {

/// Checks all requests before they are routed: what the client sent as a body must never be read as
/// a request. Throws ApiError if the header does not say for certain where the body ends or which
/// host is asked, or says that the body is larger than `most` bytes (413); the connection is closed
/// after that answer.
void check_framing(const httplib::Request& request, size_t most);

/// A received body, and its share of the memory for bodies.
struct ReceivedBody {
  std::string text;
  BodyMemory::Share share = {};
};

/// Reads the whole body of a request whose framing has been checked, whatever its type, when there
/// is memory for it. Throws ApiError: 413 beyond `most` bytes, 415 for forms with files, 400 for a
/// body that breaks off or takes too long, 503 if there is no memory for it.
ReceivedBody read_body(const httplib::Request& request, const httplib::ContentReader& reader,
                       size_t most, BodyMemory& memory);

/// Parses JSON when there is memory for it, and frees its text. Throws ApiError: 400 if it is no
/// object or an unreasonable one, 413 or 503 if there is no memory for it.
Json parse_body(ReceivedBody& body, BodyMemory& memory);

/// Throws ApiError if the client of this thread's connection has gone or the server is ending.
void check_current_client();

/// 404: there is no such route.
ApiError no_such_route(const httplib::Request& request);

/// Sets what is answered. Large texts are sent as they are, whatever encoding the client accepts:
/// cpp-httplib compresses with Brotli at its highest quality, which takes seconds for each MB.
void write_text(httplib::Response& response, std::string text, const char* type);

void write_json(httplib::Response& response, const Json& json, int status = 200);

/// Returns the error in the format that clients of this path expect.
Json error_json(const std::string& path, const ApiError& error);
void write_error(const httplib::Request& request, httplib::Response& response,
                 const ApiError& error);
/// The message of the error that this thread has written last, once; for the log, where the
/// answer's text may be compressed.
std::string take_written_error();

/// The header that says what is done otherwise than a client asked for; no warnings: none.
void write_warnings(httplib::Response& response, const std::vector<std::string>& warnings);

/// 503: the server is ending, so the request is not answered.
ApiError server_ends();

/// Throws ApiError if a plain answer that is being computed is no longer needed: the client has
/// gone, or the server is ending. An abandoned answer must never look like a complete one.
void check_client(Connection& connection);

/// Turns the exception that is being handled into an ApiError.
ApiError current_error();

}  // namespace snapkv::server
