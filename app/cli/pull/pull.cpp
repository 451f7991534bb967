// SPDX-License-Identifier: MIT
#include "cli/pull/pull.h"

#include <fmt/core.h>

#include <variant>

#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "cli/pull/hub_pull.h"
#include "cli/pull/url_pull.h"

namespace snapkv::cli {

std::unique_ptr<Pull> Pull::plan(const PullSettings& settings) {
  const ModelSource source = parse_source(settings.source);
  if (const auto* url = std::get_if<UrlSource>(&source)) return plan_url_pull(*url, settings);
  return plan_hub_pull(std::get<HubSource>(source), settings);
}

std::string pull_model(const PullSettings& settings, const CommonSettings& common) {
  const std::unique_ptr<Pull> pull = Pull::plan(settings);
  const bool is_there = pull->bytes_to_fetch() == 0;
  if (!is_there) {
    const uint64_t kept = pull->bytes() - pull->bytes_to_fetch();
    const std::string rest = kept == 0 ? "" : fmt::format(", {} of it there", format_bytes(kept));
    write_stderr(fmt::format("snapkv: fetching {} ({}{}) from {} into {}\n", pull->name(),
                             format_bytes(pull->bytes()), rest, pull->host(), pull->folder()));
  }
  std::string path = pull->run(common);
  write_stderr(fmt::format("snapkv: {} {}\n", pull->name(), is_there ? "is there" : "is complete"));
  return path;
}

}  // namespace snapkv::cli
