// SPDX-License-Identifier: MIT
#include "text/jinja/strftime.h"

#include <locale.h>

#include <array>

#include "base/error.h"

namespace snapkv::jinja {
namespace {

constexpr size_t kMaxBytes = 4096;

/// The C locale, so that names are English whatever locale the program has set.
locale_t plain_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

}  // namespace

std::string format_time(std::string_view format, std::time_t time) {
  std::tm local = {};
  if (localtime_r(&time, &local) == nullptr) {
    fail(ErrorCode::kRuntime, "strftime_now(): the time can't be shown");
  }
  // Python prints no time zone here, and has %f for microseconds, which strftime does not know.
  std::string adapted;
  for (size_t i = 0; i < format.size(); ++i) {
    const char next = format[i] == '%' && i + 1 < format.size() ? format[i + 1] : '\0';
    if (next == 'f') adapted += "000000";
    if (next == '%') adapted += "%%";
    if (next == 'f' || next == 'z' || next == 'Z' || next == '%') {
      ++i;
    } else {
      adapted += format[i];
    }
  }
  adapted += '.';  // so that an empty result is not mistaken for a failure
  std::array<char, kMaxBytes> buffer;
  const size_t n =
      adapted.size() < kMaxBytes && adapted.find('\0') == std::string::npos
          ? strftime_l(buffer.data(), buffer.size(), adapted.c_str(), &local, plain_locale())
          : 0;
  if (n == 0) fail(ErrorCode::kRuntime, "strftime_now(): the format is too long");
  return {buffer.data(), n - 1};
}

}  // namespace snapkv::jinja
