// SPDX-License-Identifier: MIT
// MeasuringBackend: a device that counts allocations and computes nothing. Code that runs on it
// makes the same calls with tensors of the same shapes as on the device that it stands for, and
// what it would allocate there is known without the memory, the weights or the device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/kernels.h"
#include "backend/registry.h"

namespace snapkv {

/// The label (a Buffer's `what`) of the memory that packed weights take.
inline constexpr const char* kPackedWeights = "packed weights";

class MeasuringBackend final : public Backend {
 public:
  /// `traits.device` "auto": planned_backend(). Buffers allocated as one of the labels in `apart`
  /// are counted apart from all others. Buffers must not outlive this object.
  MeasuringBackend(const DeviceTraits& traits, std::span<const char* const> apart);
  ~MeasuringBackend() override;

  /// The most bytes at one time of buffers with this label, which is one of `apart`.
  size_t peak(std::string_view what) const;
  /// The most bytes at one time of all buffers that are not counted apart.
  size_t peak_of_others() const { return accounts_.back().peak; }
  /// The most memory of its own that any kernel takes. On devices whose kernels do not say it: 0.
  size_t most_workspace() const { return most_workspace_; }

  std::string_view device() const override { return definition_.info.name; }
  bool is_device() const override { return definition_.info.own_memory; }
  std::string description() const override { return "a dry run"; }
  DType compute_dtype() const override { return traits_.compute; }
  int n_threads() const override { return traits_.n_threads; }
  ProductTraits products(DType weight) const override { return planned_->products(weight); }
  bool attends_to_chosen() const override { return planned_->attends_to_chosen(); }
  size_t library_bytes(int64_t n_networks) const override {
    return planned_->library_bytes(n_networks);
  }
  bool computes() const override { return false; }

  Buffer allocate(size_t bytes, const char* what) override;
  /// On a device host memory is not counted.
  Buffer allocate_pinned(size_t bytes, const char* what) override;
  Buffer allocate_host(size_t bytes, const char* what) override;
  /// Counts what is in memory.
  Buffer allocate_in_file(const std::string& dir, size_t bytes, size_t resident,
                          const char* what) override;
  size_t free_memory() const override;
  size_t peak_memory() const override { return 0; }
  void reset_peak_memory() override {}

  // Nothing is moved: what is downloaded stays as it was.
  void upload(void*, const void*, size_t) override {}
  void download(void*, const void*, size_t) override {}
  void copy(void*, const void*, size_t) override {}
  void synchronize() override {}
  Mark mark() override { return 0; }
  double seconds_between(Mark, Mark) const override { return 0; }
  void place_weights(std::span<const Tensor>) override {}
  Kernels& kernels() override { return *kernels_; }

 private:
  struct Account {
    std::string_view what;
    size_t now = 0, peak = 0;
  };
  Account& account_of(std::string_view what);
  /// A buffer without memory that counts as `counted` bytes.
  Buffer make_buffer(size_t bytes, size_t counted, const char* what);

  const DeviceTraits traits_;
  const BackendDefinition& definition_;
  std::unique_ptr<PlannedDevice> planned_;
  std::vector<Account> accounts_;  // the last one: all others. Buffers point to them
  size_t most_workspace_ = 0;
  uintptr_t next_address_;
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace snapkv
