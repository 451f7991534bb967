// SPDX-License-Identifier: MIT
#include "cli/program.h"

#include <fmt/core.h>

#include <exception>
#include <new>
#include <system_error>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/common/descriptors.h"
#include "cli/common/out_of_memory.h"
#include "cli/common/plain_text.h"
#include "cli/common/settings.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

int report(ErrorCode code, const std::string& message) {
  write_styled_stderr(fmt::format("snapkv: {} {}\n", paint(Style::red, "error:", colour_stderr()),
                                  message_text(message)));
  return static_cast<int>(code);
}

/// Reports an error. After a signal, any error is reported as its result, since even a failed read
/// may only have been interrupted.
int report_error(ErrorCode code, const std::string& message) {
  if (!interrupted() || message.starts_with("stopped by")) return report(code, message);
  return report(ErrorCode::kCancelled, fmt::format("stopped by {} ({})", interruption(), message));
}

int run_and_report(int argc, char** argv) {
  try {
    return CommandLine().run(argc, argv);
  } catch (const StdoutClosed&) {
    return StdoutClosed::kExitCode;
  } catch (const Error& e) {
    return report_error(e.code(), message_of(e));
  } catch (const std::bad_alloc&) {
    return report_error(ErrorCode::kDoesNotFit, "out of memory");
  } catch (const std::system_error& e) {
    const bool is_thread = e.code() == std::errc::resource_unavailable_try_again;  // std::thread's
    return report_error(is_thread ? ErrorCode::kDoesNotFit : ErrorCode::kRuntime,
                        is_thread ? "the system allows no more threads: see ulimit -u, and the "
                                    "container's limit of processes"
                                  : e.what());
  } catch (const std::exception& e) {
    return report_error(ErrorCode::kRuntime, e.what());
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  open_closed_standard_descriptors();  // before any file is opened
  end_cleanly_without_memory();
  install_signal_handlers();
  const int code = run_and_report(argc, argv);
  const bool cancelled = code == static_cast<int>(ErrorCode::kCancelled);
  return cancelled ? interrupted_exit_code() : code;
}

}  // namespace snapkv::cli
