// SPDX-License-Identifier: MIT
// The files that questions are made about, and the part of each that is used.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "eval/make_qa/make_qa.h"
#include "eval/make_qa/sentences.h"

namespace snapkv::eval {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<fs::path> files_below(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file()) {
      files.push_back(entry->path());
    }
  }
  if (error) fail(ErrorCode::kRuntime, "{}: can't be read: {}", folder, error.message());
  if (files.empty()) fail(ErrorCode::kUsage, "{}: no files in this folder", folder);
  return files;
}

// The beginning that both paths share.
fs::path common_folder(const fs::path& a, const fs::path& b) {
  fs::path common;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end() && *i == *j; ++i, ++j) {
    common /= *i;
  }
  return common;
}

// The bytes of the sentences from `first` on that have at most n_tokens tokens together.
TextPart fit_tokens(std::string_view text, const std::vector<Sentence>& sentences, size_t first,
                    const MakeQaOptions& options) {
  const size_t begin = sentences[first].begin;
  const auto fits = [&](size_t n) {
    return options.count_tokens(text.substr(begin, sentences[first + n - 1].end - begin)) <=
           options.n_tokens;
  };
  size_t low = 0, high = sentences.size() - first + 1;  // `low` sentences fit, `high` do not
  while (high - low > 1) {
    const size_t middle = (low + high) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return {begin, low == 0 ? begin : sentences[first + low - 1].end};
}

}  // namespace

MakeQaFiles list_texts(const std::vector<std::string>& paths) {
  std::vector<fs::path> found;
  fs::path folder;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path whole = fs::canonical(path, error);
    if (error) fail(ErrorCode::kRuntime, "{}: can't be read: {}", path, error.message());
    const bool is_folder = fs::is_directory(whole);
    const fs::path here = is_folder ? whole : whole.parent_path();
    folder = folder.empty() ? here : common_folder(folder, here);
    const std::vector<fs::path> files =
        is_folder ? files_below(whole.string()) : std::vector<fs::path>{whole};
    found.insert(found.end(), files.begin(), files.end());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  MakeQaFiles out;
  out.folder = folder.string();
  for (const fs::path& file : found) {
    out.files.push_back({file.lexically_relative(folder).generic_string(), file.string()});
  }
  return out;
}

TextPart cut_text(const std::string& text, bool is_code, const MakeQaOptions& options,
                  Random& random) {
  const bool by_tokens = options.n_tokens > 0;
  const int64_t size = by_tokens ? options.count_tokens(text) : std::ssize(text);
  const int64_t most = by_tokens ? options.n_tokens : options.n_bytes;
  if (size <= most) return {0, text.size()};
  // If tokens count, about as many bytes.
  const auto n_bytes = static_cast<size_t>(static_cast<double>(text.size()) *
                                           static_cast<double>(most) / static_cast<double>(size));
  const std::vector<Sentence> sentences = split_sentences(text, is_code);
  size_t n_begins = 0;  // sentences followed by enough text, except those inside longer ones
  std::vector<size_t> begins;
  for (; n_begins < sentences.size() && sentences[n_begins].begin + n_bytes <= text.size();
       ++n_begins) {
    const bool is_inside = n_begins > 0 && sentences[n_begins - 1].after == SentenceEnd::inside;
    if (!is_inside) begins.push_back(n_begins);
  }
  if (begins.empty()) return {};
  const size_t first = begins[random.below(begins.size())];
  if (by_tokens) return fit_tokens(text, sentences, first, options);
  TextPart part{sentences[first].begin, sentences[first].begin};
  for (size_t i = first; i < sentences.size() && sentences[i].end <= part.begin + n_bytes; ++i) {
    part.end = sentences[i].end;
  }
  return part;
}

}  // namespace snapkv::eval
