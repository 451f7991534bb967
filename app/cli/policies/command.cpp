// SPDX-License-Identifier: MIT
// snapkv policies: lists the policies and their parameters, from the tables that define the
// options: as text, as JSON, and as the Markdown tables of docs/policies.md, which a test compares.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/common/policy_options.h"
#include "cli/common/table_options.h"
#include "cli/common/terminal.h"

namespace snapkv::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string paper_text(const std::string& paper) {
  return paper.empty() ? "" : fmt::format(" (arXiv {})", paper);
}

/// Returns the parameters that are not common to all policies.
std::vector<const PolicyParam*> own_params(const PolicyInfo& info) {
  std::vector<const PolicyParam*> own;
  for (const SharedParam& shared : shared_params()) {
    const PolicyParam* param = info.find(shared.param->name);
    if (param != nullptr && !is_common(shared)) own.push_back(param);
  }
  return own;
}

// ---------------------------------------------------------------- text

std::string param_line(const PolicyParam& param, const std::string& default_value) {
  return fmt::format("  {:<20} {}{}; {} [{}]\n", flag_of(param.option), param.help,
                     paper_text(param.paper), range_text(param), default_value);
}

std::string to_text() {
  std::string text = "Of every policy that drops rows:\n";
  for (const SharedParam& shared : shared_params()) {
    if (is_common(shared)) text += param_line(*shared.param, default_text(shared));
  }
  for (const PolicyInfo& info : all_policies()) {
    text += fmt::format("\n{}: {}{}\n", info.name, info.score, paper_text(info.paper));
    if (!info.reads.empty()) text += fmt::format("  reads: {}\n", info.reads);
    for (const PolicyParam* param : own_params(info)) {
      text += param_line(*param, value_text(param->default_value));
    }
  }
  return text;
}

// ---------------------------------------------------------------- Markdown

std::string to_markdown() {
  std::string text =
      "| name | the score of a row before the window | paper | reads | own parameters |\n"
      "|---|---|---|---|---|\n";
  for (const PolicyInfo& info : all_policies()) {
    std::vector<std::string> params;
    for (const PolicyParam* param : own_params(info)) {
      params.push_back(fmt::format("`{}`", param->name));
    }
    text += fmt::format("| `{}` | {} | {} | {} | {} |\n", info.name, info.score, info.paper,
                        info.reads, fmt::join(params, ", "));
  }
  text +=
      "\n| parameter | option | default | range | what it is | of |\n"
      "|---|---|---|---|---|---|\n";
  for (const SharedParam& shared : shared_params()) {
    const PolicyParam& param = *shared.param;
    std::vector<std::string> names;
    for (const PolicyInfo* info : shared.policies) names.push_back(info->name);
    const std::string of = is_common(shared) ? "every policy that drops rows"
                                             : fmt::format("{}", fmt::join(names, ", "));
    text += fmt::format("| `{}` | `{}` | {} | {} | {}{} | {} |\n", param.name,
                        flag_of(param.option), default_text(shared), range_text(param), param.help,
                        paper_text(param.paper), of);
  }
  return text;
}

// ---------------------------------------------------------------- JSON

Json to_json(const PolicyParam& param) {
  Json json = {{"name", param.name},
               {"option", flag_of(param.option)},
               {"type", name(param.type)},
               {"range", range_text(param)}};
  std::visit([&](const auto& v) { json["default"] = v; }, param.default_value);
  if (param.type == PolicyParam::Type::integer || param.type == PolicyParam::Type::real) {
    json["least"] = param.least;
    json["most"] = param.most;
    json["odd"] = param.odd;
  }
  if (param.type == PolicyParam::Type::word) json["words"] = param.words;
  json["help"] = param.help;
  if (!param.paper.empty()) json["paper"] = param.paper;
  return json;
}

std::string to_json() {
  Json policies = Json::array();
  for (const PolicyInfo& info : all_policies()) {
    Json params = Json::array();
    for (const PolicyParam& param : info.params) params.push_back(to_json(param));
    policies.push_back({{"name", info.name},
                        {"score", info.score},
                        {"paper", info.paper},
                        {"reads", info.reads},
                        {"has_budget", info.has_budget},
                        {"observes", info.observes},
                        {"shares_budget", info.shares_budget},
                        {"parameters", params}});
  }
  return policies.dump(2) + "\n";
}

}  // namespace

Command add_policies_command(CLI::App& root, const CommonSettings&) {
  struct Settings {
    bool json = false, markdown = false;
  };
  auto s = std::make_shared<Settings>();
  CLI::App* app =
      root.add_subcommand("policies", "List what can be kept of a prompt, and the parameters");
  CLI::Option* json = app->add_flag("--json", s->json, "Print one JSON array");
  app->add_flag("--markdown", s->markdown, "Print Markdown tables")->excludes(json);
  return {app, [s] {
            write_stdout(s->json ? to_json() : s->markdown ? to_markdown() : to_text());
            return 0;
          }};
}

}  // namespace snapkv::cli
