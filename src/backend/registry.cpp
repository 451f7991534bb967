// SPDX-License-Identifier: MIT
#include "backend/registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "snapkv/option_table.h"

namespace snapkv {

#define SNAPKV_BACKEND(name)      \
  namespace name {                \
  BackendDefinition definition(); \
  }
#include "backend/backends.def"

namespace {

constexpr const char* kAuto = "auto";

std::deque<BackendDefinition>& registry() {
  static std::deque<BackendDefinition> all = {
#define SNAPKV_BACKEND(name) name::definition(),
#include "backend/backends.def"
  };
  return all;
}

/// Those that "auto" may choose, the highest rank first.
std::vector<const BackendDefinition*> automatic_backends() {
  std::vector<const BackendDefinition*> all;
  for (const BackendDefinition& b : registry()) {
    if (b.auto_rank > 0) all.push_back(&b);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->auto_rank > b->auto_rank; });
  return all;
}

std::unique_ptr<Backend> make_automatic(const BackendOptions& options) {
  const std::vector<const BackendDefinition*> all = automatic_backends();
  for (const BackendDefinition* b : all) {
    if (b->make == nullptr) continue;
    if (b == all.back()) return b->make(options);
    try {
      return b->make(options);
    } catch (const Error& e) {
      log_info("{} is not used: {}", b->info.name, e.what());
    }
  }
  SNAPKV_CHECK(false);  // the processor is always there
}

}  // namespace

void register_backend(BackendDefinition definition) {
  std::deque<BackendDefinition>& all = registry();
  const auto at = std::find_if(all.begin(), all.end(), [&](const BackendDefinition& b) {
    return b.info.name == definition.info.name;
  });
  if (at == all.end()) {
    all.push_back(std::move(definition));
  } else {
    *at = std::move(definition);
  }
}

const std::deque<BackendDefinition>& backends() { return registry(); }

const BackendDefinition& find_backend(std::string_view device) {
  OptionInfo names;
  names.type = OptionInfo::Type::word;
  for (const BackendDefinition& b : registry()) {
    if (b.info.name == device) return b;
    names.words.push_back(b.info.name);
  }
  fail(ErrorCode::kUsage, "{} is {}; it must be {}", OptionName("device"), device,
       range_text(names));
}

const BackendDefinition& planned_backend(std::string_view device) {
  if (device != kAuto) return find_backend(device);
  for (const BackendDefinition* b : automatic_backends()) {
    if (!b->info.own_memory) return *b;
  }
  SNAPKV_CHECK(false);
}

std::vector<std::string> device_names() {
  std::vector<std::string> names = {kAuto};
  for (const BackendDefinition& b : registry()) names.push_back(b.info.name);
  return names;
}

std::string device_help() {
  std::string first;
  for (const BackendDefinition* b : automatic_backends()) {
    first += first.empty() ? b->info.name : ", else " + b->info.name;
  }
  std::string help = fmt::format("{}: {}", kAuto, first);
  for (const BackendDefinition& b : registry()) {
    help += fmt::format("; {}: {}", b.info.name, b.info.help);
  }
  return help;
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> all;
  for (const BackendDefinition& b : registry()) all.push_back(b.info);
  return all;
}

std::unique_ptr<Backend> Backend::make(const BackendOptions& options) {
  if (options.device == kAuto) return make_automatic(options);
  const BackendDefinition& backend = find_backend(options.device);
  if (backend.make == nullptr) fail(ErrorCode::kUsage, "{}", backend.info.missing);
  return backend.make(options);
}

}  // namespace snapkv
