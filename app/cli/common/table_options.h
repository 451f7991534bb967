// SPDX-License-Identifier: MIT
// The command's options for the rows of option tables (snapkv/option_table.h).
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "cli/common/cli_types.h"
#include "snapkv/option_table.h"

namespace snapkv::cli {

/// The command's names for an option of the engine: "-t,--threads" for n_threads, "--kv-kernel" for
/// kv_kernel_size; "--top-k" for top_k, as for every name without one of its own.
std::string flag_names(std::string_view option);
/// The long one of them, for messages: "--threads". What is not an option of the engine stays as it
/// is.
std::string flag_of(std::string_view option);

/// What the help says of the values: "N", "X", "SIZE", "max|avg".
std::string type_text(const OptionInfo& info);

/// Adds one option with the checks, the help and the type of its row. `value`: what it is if nobody
/// sets it. `info` must outlive the command, as a table's rows do.
CLI::Option* add_table_option(CLI::App& command, const OptionInfo& info, const OptionValue& value,
                              std::function<void(const OptionValue&)> set);
/// The same under these names, as in "-m,--model,MODEL": the last one for an argument without a
/// flag.
CLI::Option* add_table_option(CLI::App& command, const std::string& names, const OptionInfo& info,
                              const OptionValue& value,
                              std::function<void(const OptionValue&)> set);

/// Adds one option of a table; it sets `options`, which must outlive the command.
template <typename Struct>
CLI::Option* add_table_option(CLI::App& command, const OptionTable<Struct>& table,
                              std::string_view name, Struct& options) {
  return add_table_option(command, *table.find(name), table.get(options, name),
                          [&table, &options, name = std::string(name)](const OptionValue& value) {
                            table.set(options, name, value);
                          });
}

/// Moves an option to a group of the help.
void set_group(CLI::Option& option, const std::string& group);

/// Adds the options of a table, except some, to a group of the help.
template <typename Struct>
void add_table_options(CLI::App& command, const OptionTable<Struct>& table, Struct& options,
                       const std::string& group,
                       std::initializer_list<std::string_view> except = {}) {
  for (const OptionInfo& info : table.infos()) {
    if (std::find(except.begin(), except.end(), info.name) != except.end()) continue;
    set_group(*add_table_option(command, table, info.name, options), group);
  }
}

}  // namespace snapkv::cli
