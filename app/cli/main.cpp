// SPDX-License-Identifier: MIT
#include "cli/program.h"

int main(int argc, char** argv) { return snapkv::cli::run_program(argc, argv); }
