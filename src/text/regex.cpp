// SPDX-License-Identifier: MIT
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/cpu_timer.h"
#include "base/error.h"

namespace snapkv {
namespace {

using Clock = std::chrono::steady_clock;

// A file may contain any pattern. Real tokenizers' patterns are below a kilobyte, and below 100 kB
// when compiled.
constexpr size_t kMaxPatternBytes = 1 << 16;
constexpr size_t kMaxCompiledBytes = 1 << 24;
// Backtracking steps per match: several times one step per byte, so that only patterns that take
// more than linear time reach the limit.
constexpr uint64_t kMatchLimit = 10'000'000;
constexpr uint64_t kMatchLimitPerByte = 16;
// For the interpreter, which runs where no machine code can be made.
constexpr uint32_t kHeapLimitKiB = 512 * 1024;
constexpr size_t kJitStackStart = 64 * 1024;
constexpr size_t kJitStackMax = 256 * 1024 * 1024;
// The match limit applies to each place where a match may begin, so the clock bounds the time as
// well. A search tries a window of places at a time, whose length is adapted to the time it takes,
// and looks at the clock after each window without a match and after a number of matches. This is
// the wall clock, which is quick to read; when it says that time is up, the thread's processor time
// decides, so that no error depends on what else the machine is doing.
constexpr size_t kFirstWindow = 1 << 6;
constexpr double kFastWindowSeconds = 0.002;
constexpr double kSlowWindowSeconds = 0.05;
constexpr int kFindsPerLook = 32;
constexpr double kSecondsAllowed = 2;
constexpr double kSecondsAllowedPerByte = 2e-6;  // real patterns take 2e-8

struct FreeCode {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct FreeJitStack {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Regex::Impl {
  std::string pattern;
  std::string origin;
  Alphabet alphabet = Alphabet::bytes;
  std::unique_ptr<pcre2_code, FreeCode> code;
  bool has_machine_code = false;
};

Regex::Regex(std::string_view pattern, Alphabet alphabet, std::string origin)
    : impl_(std::make_unique<Impl>()) {
  impl_->pattern = pattern;
  impl_->origin = std::move(origin);
  impl_->alphabet = alphabet;
  if (pattern.size() > kMaxPatternBytes) {
    fail(ErrorCode::kBadModel, "{}: the split pattern has {} bytes, more than {}", impl_->origin,
         pattern.size(), kMaxPatternBytes);
  }
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context.get(), kMaxPatternBytes);
  uint32_t options = PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY;
  if (alphabet == Alphabet::unicode) options |= PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE;
  int error = 0;
  PCRE2_SIZE at = 0;
  impl_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                  options, &error, &at, context.get()));
  if (!impl_->code) {
    fail(ErrorCode::kBadModel, "{}: the split pattern '{}' is not valid at byte {}: {}",
         impl_->origin, pattern, at, message_of(error));
  }
  size_t bytes = 0;
  pcre2_pattern_info(impl_->code.get(), PCRE2_INFO_SIZE, &bytes);
  if (bytes > kMaxCompiledBytes) {
    fail(ErrorCode::kBadModel, "{}: the split pattern '{}' takes {} bytes compiled, more than {}",
         impl_->origin, pattern, bytes, kMaxCompiledBytes);
  }
  // If the system allows no machine code to be made, PCRE2's interpreter finds the same matches.
  impl_->has_machine_code = pcre2_jit_compile(impl_->code.get(), PCRE2_JIT_COMPLETE) == 0;
}

Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;
const std::string& Regex::pattern() const { return impl_->pattern; }

struct Regex::Scanner::Impl {
  const Regex::Impl& regex;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
  std::unique_ptr<pcre2_match_data, FreeMatchData> data;
  std::unique_ptr<pcre2_jit_stack, FreeJitStack> stack;  // made when the default stack overflows
  std::string_view text;
  int finds = 0;                           // searches since the last look at the clock
  std::optional<Clock::time_point> began;  // the first look at the clock for this text
  CpuTimer cpu;                            // processor time since `began`

  explicit Impl(const Regex::Impl& r)
      : regex(r),
        context(pcre2_match_context_create(nullptr)),
        data(pcre2_match_data_create_from_pattern(r.code.get(), nullptr)) {
    if (!context || !data) throw std::bad_alloc();
    pcre2_set_heap_limit(context.get(), kHeapLimitKiB);
  }

  int match(size_t from) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    if (!regex.has_machine_code) {
      return pcre2_match(regex.code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                         data.get(), context.get());
    }
    const int result =
        pcre2_jit_match(regex.code.get(), subject, text.size(), from, 0, data.get(), context.get());
    if (result != PCRE2_ERROR_JIT_STACKLIMIT || stack) return result;
    stack.reset(pcre2_jit_stack_create(kJitStackStart, kJitStackMax, nullptr));
    if (!stack) throw std::bad_alloc();
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    return pcre2_jit_match(regex.code.get(), subject, text.size(), from, 0, data.get(),
                           context.get());
  }

  /// Looks at the clock, fails if time is up, and returns the time.
  Clock::time_point check_time() {
    finds = 0;
    const auto now = Clock::now();
    if (!began) {
      began = now;
      cpu = CpuTimer();
    }
    const double allowed =
        kSecondsAllowed + kSecondsAllowedPerByte * static_cast<double>(text.size());
    if (std::chrono::duration<double>(now - *began).count() > allowed && cpu.seconds() > allowed) {
      fail(ErrorCode::kRuntime,
           "{}: cutting a text of {} bytes at the split pattern '{}' takes too long: stopped after "
           "{:.0f} s",
           regex.origin, text.size(), regex.pattern, cpu.seconds());
    }
    return now;
  }

  [[noreturn]] void fail_match(int code, size_t from) const {
    fail(ErrorCode::kRuntime, "{}: the split pattern '{}' fails at byte {} of a text of {}: {}",
         regex.origin, regex.pattern, from, text.size(), message_of(code));
  }

  /// The next place after `at` where a match may begin.
  size_t next_place(size_t at) const {
    ++at;
    if (regex.alphabet == Alphabet::bytes) return at;
    while (at < text.size() && (text[at] & 0xc0) == 0x80) ++at;
    return at;
  }
};

Regex::Scanner::Scanner(const Regex& regex) : impl_(std::make_unique<Impl>(*regex.impl_)) {}
Regex::Scanner::Scanner(Scanner&&) noexcept = default;
Regex::Scanner::~Scanner() = default;

void Regex::Scanner::set_text(std::string_view text) {
  impl_->text = text;
  impl_->finds = 0;
  impl_->began.reset();
  const uint64_t limit = kMatchLimit + kMatchLimitPerByte * text.size();
  pcre2_set_match_limit(impl_->context.get(), static_cast<uint32_t>(std::min<uint64_t>(
                                                  limit, std::numeric_limits<uint32_t>::max())));
}

std::optional<RegexMatch> Regex::Scanner::find(size_t from) {
  Impl& scan = *impl_;
  if (++scan.finds >= kFindsPerLook) scan.check_time();
  size_t window = kFirstWindow;
  std::optional<Clock::time_point> window_began;
  while (from <= scan.text.size()) {
    const size_t last = from + std::min(scan.text.size() - from, window);
    pcre2_set_offset_limit(scan.context.get(), last);
    const int result = scan.match(from);
    if (result > 0) {
      const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(scan.data.get());
      // \K in a lookaround can put the match's beginning after its end, or before `from`.
      const size_t begin = std::max<size_t>(bounds[0], from);
      return RegexMatch{begin, std::max<size_t>(bounds[1], begin)};
    }
    if (result != PCRE2_ERROR_NOMATCH) scan.fail_match(result, from);
    if (last == scan.text.size()) break;
    from = scan.next_place(last);
    const auto now = scan.check_time();
    if (window_began) {
      const double seconds = std::chrono::duration<double>(now - *window_began).count();
      if (seconds < kFastWindowSeconds) window *= 2;
      if (seconds > kSlowWindowSeconds) window = std::max<size_t>(window / 2, 1);
    }
    window_began = now;
  }
  return std::nullopt;
}

}  // namespace snapkv
