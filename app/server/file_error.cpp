// SPDX-License-Identifier: MIT
#include "server/file_error.h"

namespace snapkv::server {

std::string without_paths(const std::string& message) {
  constexpr const char* kBetween = " \t\n'\",;()";
  std::string text;
  for (size_t at = 0; at < message.size();) {
    size_t end = message.find_first_of(kBetween, at);
    if (end == std::string::npos) end = message.size();
    const size_t slash = message.rfind('/', end);
    const bool has_path = end > at && slash != std::string::npos && slash >= at && slash < end;
    const size_t begin = has_path ? slash + 1 : at;
    text.append(message, begin, end - begin);
    if (end < message.size()) text += message[end];
    at = end + 1;
  }
  return text;
}

std::string file_error_text(const Error& error) {
  std::string text = without_paths(error.what());
  if (error.code() != ErrorCode::kBadModel) return text;
  const size_t first = text.find('"'), last = text.rfind('"');
  if (first != last) text.replace(first + 1, last - first - 1, "...");
  return text;
}

}  // namespace snapkv::server
