// SPDX-License-Identifier: MIT
// POST /v1/documents/text?name=FILE: the text of a document, whose bytes are the body.
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <utility>

#include "base/error.h"
#include "documents/document_reader.h"
#include "server/http/body.h"
#include "server/service.h"

namespace snapkv::server {
namespace {

constexpr int kMostReaders = 2;  // at a time: a PDF may take pdf_memory
constexpr int kPdfSeconds = 60;
constexpr size_t kPdfMemory = size_t{1} << 30;
constexpr size_t kCopies = 5;  // of the text: while it is read and written as JSON
constexpr size_t kLongestName = 300;

/// A place among those that read documents; given back at the end.
class ReaderPlace {
 public:
  explicit ReaderPlace(std::counting_semaphore<>& places) : places_(places) {
    if (places_.try_acquire()) return;
    throw ApiError(429, fmt::format("{} documents are being read already", kMostReaders),
                   "queue_full", "", 1);
  }
  ~ReaderPlace() { places_.release(); }
  ReaderPlace(const ReaderPlace&) = delete;
  ReaderPlace& operator=(const ReaderPlace&) = delete;

 private:
  std::counting_semaphore<>& places_;
};

/// Ends with the client's connection, and with the server.
documents::ReadLimits limits_for(size_t most_bytes, std::optional<ApiError>& given_up) {
  documents::ReadLimits limits;
  limits.most_bytes = most_bytes;
  limits.most_text_bytes = most_bytes;  // as the body of a request with this text
  limits.pdf_seconds = kPdfSeconds;
  limits.pdf_memory = kPdfMemory;
  limits.keep_going = [connection = Connection::current(), &given_up] {
    if (connection == nullptr) return true;
    try {
      check_client(*connection);
      return true;
    } catch (const ApiError& e) {
      given_up = e;
      return false;
    }
  };
  return limits;
}

}  // namespace

void Service::add_document_routes() {
  auto places = std::make_shared<std::counting_semaphore<>>(kMostReaders);
  const char* const path = "/v1/documents/text";
  routes_.push_back({"POST", std::regex(path)});
  http_.Post(path, [this, places](const httplib::Request& request, httplib::Response& response,
                                  const httplib::ContentReader& reader) {
    ++n_active_;
    try {
      const size_t most = http_.most_body();
      ReceivedBody body = read_body(request, reader, most, http_.bodies());
      const std::string given = request.get_param_value("name");
      const std::string name = given.empty() ? "the document" : given.substr(0, kLongestName);
      const ReaderPlace place(*places);
      http_.bodies().parse(body.share, kCopies * most, check_current_client);
      std::optional<ApiError> given_up;  // and why
      std::string text;
      try {
        text = documents::document_text(std::move(body.text), name, limits_for(most, given_up));
      } catch (const Error&) {
        if (given_up) throw *given_up;
        throw;
      }
      write_json(response, {{"object", "document.text"}, {"name", name}, {"text", text}});
    } catch (...) {
      write_error(request, response, current_error());
    }
    --n_active_;
  });
}

}  // namespace snapkv::server
