// SPDX-License-Identifier: MIT
// snapkv documents: the documents that `snapkv run` has stored for further questions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/common/plain_text.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/document/stored_documents.h"

namespace snapkv::cli {
namespace {

struct DocumentsSettings {
  bool as_json = false;
  bool clear = false;
  std::vector<std::string> names;
};

double seconds_since(int64_t time) {
  return std::max<double>(0, std::difftime(std::time(nullptr), static_cast<std::time_t>(time)));
}

std::string ago(int64_t time) {
  constexpr double kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const double seconds = seconds_since(time);
  const auto count = [&](double unit, const char* noun) {
    return plural(static_cast<int64_t>(seconds / unit), noun) + " ago";
  };
  if (seconds < kMinute) return "just now";
  if (seconds < kHour) return count(kMinute, "minute");
  return seconds < kDay ? count(kHour, "hour") : count(kDay, "day");
}

std::string document_table(const std::vector<StoredDocument>& documents) {
  constexpr size_t kMostName = 50, kMostModel = 40;
  std::vector<std::array<std::string, 5>> rows = {{"name", "tokens", "size", "used", "model"}};
  uint64_t total = 0;
  for (const StoredDocument& d : documents) {
    total += d.bytes;
    rows.push_back({terminal_text(d.name.empty() ? d.path : d.name, kMostName),
                    d.problem.empty() ? std::to_string(d.n_tokens) : "-", format_bytes(d.bytes),
                    ago(d.used),
                    d.problem.empty() ? terminal_text(d.model, kMostModel)
                                      : "can't be used: " + terminal_text(d.problem, 80)});
  }
  size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, n_columns(row[0]));
  std::string text;
  for (const auto& row : rows) {
    text +=
        fmt::format("{}{}  {:>7}  {:>10}  {:<14}  {}\n", row[0],
                    std::string(widest - n_columns(row[0]), ' '), row[1], row[2], row[3], row[4]);
  }
  return text + fmt::format("\n{} in {}. snapkv documents --clear removes them.\n",
                            format_bytes(total), printable(StoredDocuments::default_folder()));
}

std::string documents_json(const std::vector<StoredDocument>& documents) {
  auto all = nlohmann::ordered_json::array();
  for (const StoredDocument& d : documents) {
    all.push_back({{"name", d.name},
                   {"path", d.path},
                   {"tokens", d.n_tokens},
                   {"bytes", d.bytes},
                   {"model", d.model},
                   {"used_seconds_ago", static_cast<int64_t>(seconds_since(d.used))},
                   {"problem", nullptr}});
    if (!d.problem.empty()) all.back()["problem"] = d.problem;
  }
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::vector<StoredDocument> named(std::vector<StoredDocument> documents,
                                  const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::none_of(documents.begin(), documents.end(),
                     [&](const StoredDocument& d) { return d.name == name; })) {
      fail(ErrorCode::kUsage, "no stored document has the name '{}'; snapkv documents lists them",
           name);
    }
  }
  if (names.empty()) return documents;
  std::erase_if(documents, [&](const StoredDocument& d) {
    return std::find(names.begin(), names.end(), d.name) == names.end();
  });
  return documents;
}

int run_documents(const DocumentsSettings& s) {
  const StoredDocuments store(StoredDocuments::default_folder());
  const std::vector<StoredDocument> documents = named(store.list(), s.names);
  if (!s.clear) {
    if (s.as_json) {
      write_stdout(documents_json(documents));
    } else if (documents.empty()) {
      write_stdout("No documents are stored. snapkv run MODEL FILE stores those that it reads.\n");
    } else {
      write_stdout(document_table(documents));
    }
    return 0;
  }
  uint64_t bytes = 0;
  int64_t n = 0;
  for (const StoredDocument& document : documents) {
    if (!StoredDocuments::remove(document.path)) continue;
    bytes += document.bytes;
    ++n;
  }
  store.remove_abandoned();
  write_stdout(fmt::format("{} removed, {}\n", plural(n, "document"), format_bytes(bytes)));
  return 0;
}

}  // namespace

Command add_documents_command(CLI::App& root) {
  auto s = std::make_shared<DocumentsSettings>();
  CLI::App* app =
      root.add_subcommand("documents", "List or clear the documents that run has stored");
  app->add_option("NAME", s->names, "Only the documents of this name")->type_name("[NAME...]");
  auto* const clear = app->add_flag("--clear", s->clear, "Remove them");
  app->add_flag("--json", s->as_json, "Print a JSON list instead of a table")->excludes(clear);
  app->footer(
      "snapkv run MODEL FILE stores what it has read of FILE in $XDG_CACHE_HOME/snapkv/documents\n"
      "(else ~/.cache), up to --store-limit, so that the next question about it need not read it\n"
      "again. --no-store does not.");
  return {app, [s] { return run_documents(*s); }};
}

}  // namespace snapkv::cli
