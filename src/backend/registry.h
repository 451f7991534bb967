// SPDX-License-Identifier: MIT
// The registry of backends: the devices that models can run on, by name. Options, help, messages
// and plans learn here which there are and what they can do; only a backend's own folder knows
// more.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "snapkv/compute.h"

namespace snapkv {

/// A backend as it registers itself. A build may lack it (DeviceInfo::missing), and plans may still
/// be made for it.
struct BackendDefinition {
  DeviceInfo info;
  /// "auto" is the backend with the highest rank that can be made. 0: never.
  int auto_rank = 0;
  /// Throws as Backend::make(). Null in a build that lacks the backend.
  std::unique_ptr<Backend> (*make)(const BackendOptions& options) = nullptr;
  /// What plans ask, without a device; null: PlannedDevice's own answers.
  std::unique_ptr<PlannedDevice> (*plan)(const DeviceTraits& traits) = nullptr;
};

/// Adds a backend to those of the library (backends.def), or replaces the one of the same name.
/// Option tables list the names: call it before the first model is loaded, in one thread.
void register_backend(BackendDefinition definition);

/// In the order in which names are listed. References stay valid.
const std::deque<BackendDefinition>& backends();

/// Throws Error{kUsage} naming those that there are.
const BackendDefinition& find_backend(std::string_view device);

/// The device that a plan is for: of "auto", the one with the highest rank that computes in the
/// host's memory, since nobody knows yet whether another one can be made.
const BackendDefinition& planned_backend(std::string_view device);

/// "auto" and the names of all backends.
std::vector<std::string> device_names();
/// One line on each of them.
std::string device_help();

}  // namespace snapkv
