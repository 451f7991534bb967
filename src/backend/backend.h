// SPDX-License-Identifier: MIT
// Backend: a device's memory and the kernels that run on it. The model, the caches and the policies
// use only this interface and ops.h; registry.h says which backends there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "backend/device_memory.h"
#include "snapkv/compute.h"
#include "snapkv/dtype.h"

namespace snapkv {

class ArrangedWeights;
class Kernels;

/// Granularity at which n_kv is part of the shape of a decode step.
constexpr int32_t kStepRows = 256;

struct BackendOptions {
  std::string device = "cpu";  // a name of the registry, or "auto"
  int n_threads = 0;           // 0: cpu_threads()
  Compute compute = Compute::automatic;
  void* stream = nullptr;  // the caller's, on devices that have streams; nullptr: a new one
};

/// What plans must know of a device, which need not be there.
struct DeviceTraits {
  std::string device = "cpu";
  Compute asked = Compute::automatic;  // what the model was loaded with
  DType compute = DType::f32;          // what it came to
  int n_threads = 0;                   // 0: cpu_threads()
};

/// How a backend multiplies by weights of one type, which decides how prompts are read
/// (model/packing.h).
struct ProductTraits {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  /// The fewest rows for which project_packed() pays, or 1 where project() rounds activations
  /// otherwise: what a token computes must not depend on how many are read with it.
  int64_t packed_min_tokens = kNever;
  /// project_packed() rounds activations to 8 bits too, and reads the weights in the file's type.
  bool packed_in_bytes = false;
  /// project_packed() can pack a matrix itself, a piece at a time (PackedWeight::workspace).
  bool packs_at_use = false;
};

/// What plans ask of a device, which need not be there.
class PlannedDevice {
 public:
  virtual ~PlannedDevice() = default;

  virtual ProductTraits products(DType /*weight*/) const { return {}; }
  /// Whether attention_decode() takes DecodeAttention::chosen.
  virtual bool attends_to_chosen() const { return false; }
  /// Memory that the library for products of many rows takes for code and objects of its own while
  /// a prompt is read. `n_networks`: as many parts of the model get different numbers of tokens.
  virtual size_t library_bytes(int64_t /*n_networks*/) const { return 0; }
  /// Kernels that say what memory they would take; they must not be run. nullptr: nobody knows.
  virtual Kernels* kernels_to_ask() { return nullptr; }
};

class Backend : public DeviceMemory, public PlannedDevice {
 public:
  /// Throws Error{kUsage} if there is no such device in this build or the compute type is not
  /// available, Error{kRuntime} if the machine lacks the device.
  static std::unique_ptr<Backend> make(const BackendOptions& options);

  /// The name in the registry; never "auto".
  virtual std::string_view device() const = 0;
  /// For people: what computes, with how many threads and in which type.
  virtual std::string description() const = 0;
  /// bf16 or f32: the type of activations that project_packed() takes.
  virtual DType compute_dtype() const = 0;
  /// Whether project() may round activations, to 8 bits or bf16: not with Compute::f32.
  virtual bool rounds_activations() const { return compute_dtype() != DType::f32; }
  virtual int n_threads() const = 0;

  /// Where copies of weights are made that products read faster; nullptr: they read the file's.
  virtual ArrangedWeights* arranged_weights() { return nullptr; }

  /// Bracket the ops of a decode step. Steps of the same `shape` make the same calls with tensors
  /// at the same addresses. Only host data differs (ids, positions, HeadRows), with unchanged
  /// counts; n_kv may differ within a multiple of kStepRows. A device may then replay what it
  /// recorded. Only ops may come between the two calls, no copies. `completed`: false after an
  /// error.
  virtual void begin_step(uint64_t /*shape*/) {}
  virtual void end_step(bool /*completed*/ = true) {}

  /// The kernels, which trust their arguments: call them through ops.h, which validates.
  virtual Kernels& kernels() = 0;
};

}  // namespace snapkv
