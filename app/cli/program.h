// SPDX-License-Identifier: MIT
// run_program: what main() does, in the program's own file or, in a Python wheel, in a library.
#pragma once

namespace snapkv::cli {

/// The `snapkv` program: runs the subcommand that the arguments of main() name, and turns errors
/// into messages and exit codes (snapkv/error.h). Only here are all exceptions caught. For a
/// process of its own: sets handlers of signals and of memory that runs out.
int run_program(int argc, char** argv);

}  // namespace snapkv::cli
