// SPDX-License-Identifier: MIT
// The classes of CLI11 that headers name; sources that add or read options include <CLI/CLI.hpp>.
#pragma once

namespace CLI {
class App;
class Option;
class ParseError;
class Validator;
}  // namespace CLI
