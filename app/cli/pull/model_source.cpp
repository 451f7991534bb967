// SPDX-License-Identifier: MIT
#include "cli/pull/model_source.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/pull/http_client.h"

namespace snapkv::cli {
namespace {

constexpr const char* kExpected =
    "expected org/repo[:QUANT] of Hugging Face, such as Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M, or "
    "the https URL of a .gguf file";

bool begins_with(std::string_view text, std::string_view beginning) {
  return text.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

bool ends_in_gguf(std::string_view name) {
  constexpr std::string_view kEnding = ".gguf";
  return name.size() > kEnding.size() &&
         begins_with(name.substr(name.size() - kEnding.size()), kEnding);
}

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

/// A name of an owner or a repository, as Hugging Face allows them.
bool is_hub_word(std::string_view word) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !word.empty() && word.size() <= 96 && word.front() != '.' && word.front() != '-' &&
         word.find("..") == std::string_view::npos && std::all_of(word.begin(), word.end(), fits);
}

[[noreturn]] void refuse_ollama(const std::string& name) {
  fail(ErrorCode::kUsage,
       "'{}': a name of ollama's registry, which serves ollama alone: its interface is not "
       "documented for other programs. After ollama pull, snapkv run finds the model in ollama's "
       "folder; or {}",
       name, kExpected);
}

std::string joined(const std::vector<std::string>& parts, size_t begin) {
  std::string path;
  for (size_t i = begin; i < parts.size(); ++i) path += (i == begin ? "" : "/") + parts[i];
  return path;
}

/// org/repo[:QUANT] and what may follow: a file's path, or .../resolve/REVISION/FILE.
HubSource hub_source(const std::string& name, std::string path) {
  while (path.ends_with('/')) path.pop_back();
  std::vector<std::string> parts = split_at(path, '/');
  HubSource source;
  if (parts.size() < 2) fail(ErrorCode::kUsage, "'{}': {}", name, kExpected);
  if (const size_t colon = parts.back().find(':'); colon != std::string::npos) {
    source.quant = parts.back().substr(colon + 1);
    parts.back().erase(colon);
    if (source.quant == "latest") source.quant.clear();  // ollama's word for it
    if (source.quant.find('/') != std::string::npos) source.quant.clear();
  }
  if (begins_with(parts[0], "library") && parts[0].size() == 7) refuse_ollama(name);
  if (!is_hub_word(parts[0]) || !is_hub_word(parts[1])) {
    fail(ErrorCode::kUsage, "'{}': {}", name, kExpected);
  }
  source.repo = parts[0] + "/" + parts[1];
  size_t next = 2;
  const bool is_page = parts.size() > 3 && (parts[2] == "resolve" || parts[2] == "blob" ||
                                            parts[2] == "raw" || parts[2] == "tree");
  if (is_page) {
    source.revision = parts[3];
    if (!is_hub_word(source.revision)) {
      fail(ErrorCode::kUsage, "'{}': expected a revision's name, found '{}'", name, parts[3]);
    }
    next = 4;
  }
  source.file = joined(parts, next);
  if (ends_in_gguf(source.quant)) std::swap(source.file, source.quant);
  if (!source.file.empty() && !ends_in_gguf(source.file)) {
    fail(ErrorCode::kUsage, "'{}': expected a .gguf file, found {}", name, source.file);
  }
  return source;
}

/// %20 is a blank.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) -> int {
      if (at >= text.size()) return -1;
      const char c = static_cast<char>(std::tolower(static_cast<unsigned char>(text[at])));
      return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    const int high = digit(i + 1), low = digit(i + 2);
    if (text[i] == '%' && high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

ModelSource url_source(const std::string& name) {
  UrlParts url;
  if (!split_url(name, url)) fail(ErrorCode::kUsage, "'{}': {}", name, kExpected);
  if (url.host == "ollama.com" || url.host.ends_with(".ollama.ai")) refuse_ollama(name);
  const bool is_hub = url.host == "huggingface.co" || url.host == "www.huggingface.co" ||
                      url.host == "hf.co" || same_server(name, hub_endpoint());
  const std::string path = unescaped(url.path);
  if (is_hub) return hub_source(name, path.substr(1));
  const std::string file = path.substr(path.rfind('/') + 1);
  if (!ends_in_gguf(file) || file.front() == '.') {
    fail(ErrorCode::kUsage, "'{}': expected the URL of a .gguf file, found one of '{}'", name,
         file);
  }
  return UrlSource{name.substr(0, name.find('#')), file};
}

/// The name without hf.co/ or huggingface.co/; an empty text if it begins with neither.
std::string after_hub_host(const std::string& name) {
  for (const std::string_view host : {"hf.co/", "huggingface.co/", "hf://"}) {
    if (begins_with(name, host)) return name.substr(host.size());
  }
  return "";
}

}  // namespace

std::string hub_endpoint() {
  const char* const set = std::getenv("HF_ENDPOINT");
  std::string endpoint = set == nullptr || *set == '\0' ? "https://huggingface.co" : set;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

ModelSource parse_source(const std::string& name) {
  if (begins_with(name, "ollama:") || begins_with(name, "ollama.com/") ||
      begins_with(name, "registry.ollama.ai/")) {
    refuse_ollama(name);
  }
  if (const std::string path = after_hub_host(name); !path.empty()) return hub_source(name, path);
  if (name.find("://") != std::string::npos) return url_source(name);
  std::error_code error;
  if (std::filesystem::exists(name, error)) {
    fail(ErrorCode::kUsage, "{} is on this machine already: snapkv run {}", name, name);
  }
  if (name.find('/') == std::string::npos && !name.empty() && !ends_in_gguf(name)) {
    refuse_ollama(name);
  }
  return hub_source(name, name);
}

bool is_source(const std::string& name) {
  if (name.find("://") != std::string::npos || !after_hub_host(name).empty()) return true;
  const std::vector<std::string> parts = split_at(name.substr(0, name.find(':')), '/');
  return parts.size() == 2 && is_hub_word(parts[0]) && is_hub_word(parts[1]) &&
         !ends_in_gguf(parts[1]);
}

}  // namespace snapkv::cli
