// SPDX-License-Identifier: MIT
#include "cli/models/gguf_name.h"

#include <algorithm>
#include <cctype>

namespace snapkv::cli {
namespace {

constexpr std::string_view kGguf = ".gguf";

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

bool is_in(char c, std::string_view characters) {
  return characters.find(c) != std::string_view::npos;
}

/// Five digits as a number; 0 for anything else.
int five_digits(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 5 || !std::all_of(text.begin(), text.end(), is_digit)) return 0;
  int value = 0;
  for (const char c : text) value = value * 10 + (c - '0');
  return value;
}

}  // namespace

SplitName split_name(const std::string& path) {
  constexpr std::string_view kForm = "-00001-of-00003.gguf";
  SplitName whole = {.name = path};
  if (path.size() <= kForm.size() || !path.ends_with(kGguf)) return whole;
  const size_t begin = path.size() - kForm.size();
  const std::string_view ending = std::string_view(path).substr(begin);
  const int part = five_digits(ending.substr(1, 5)), count = five_digits(ending.substr(10, 5));
  if (ending[0] != '-' || ending.substr(6, 4) != "-of-" || part < 1 || part > count) return whole;
  return {path.substr(0, begin) + std::string(kGguf), part, count};
}

bool has_quant(std::string_view path, std::string_view quant, QuantPlace place) {
  std::string name = upper_case(path.substr(path.rfind('/') + 1));
  if (name.ends_with(".GGUF")) name.resize(name.size() - kGguf.size());
  const std::string wanted = upper_case(quant);
  if (wanted.empty()) return false;
  for (size_t at = name.find(wanted); at != std::string::npos; at = name.find(wanted, at + 1)) {
    const size_t end = at + wanted.size();
    if (at > 0 && !is_in(name[at - 1], "-._")) continue;
    if (place == QuantPlace::end ? end == name.size()
                                 : end < name.size() && is_in(name[end], "-.")) {
      return true;
    }
  }
  return false;
}

}  // namespace snapkv::cli
