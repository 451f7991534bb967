// SPDX-License-Identifier: MIT
// RunningServer: `snapkv serve` without its signals, for the command and for the library that runs
// it in another program's process (library/server_c_api.cpp).
#pragma once

#include <memory>
#include <string>

#include "cli/common/settings.h"
#include "cli/serve/options.h"
#include "server/document_store.h"

namespace snapkv::cli {

class RunningServer {
 public:
  /// Checks the settings and opens the port, where /health answers from now on. Throws Error.
  RunningServer(const ServeSettings& settings, const CommonSettings& common);
  /// Ends what is being computed.
  ~RunningServer();
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  /// Loads the model, after which requests are answered. Throws Error.
  void load();
  /// Refuses new requests; those that wait or run are finished.
  void drain();
  /// Whether nothing is being computed or sent.
  bool idle() const;
  /// Only after load().
  server::DocumentStore& documents();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace snapkv::cli
