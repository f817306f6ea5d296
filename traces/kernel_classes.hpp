#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "models/mix.hpp"

namespace hipress::traces {

/// Compute class by a kernel's name, as cuBLAS, cuDNN, CUTLASS, PyTorch, Inductor and Tensile name
/// theirs; empty if unrecognised. Case-insensitive.
std::optional<models::ComputeClass> class_of_kernel(std::string_view name);

/// Compute classes of a trace's kernels.
struct TracedMix {
  models::Mix mix = {};                   ///< shares of the time of recognised kernels
  double unrecognised = 0;                ///< share of the time of all computing kernels
  std::string longest_unrecognised = {};  ///< name of the longest unrecognised kernel
};

/// Adds up times of computing kernels.
class KernelTimes {
 public:
  void add(std::string_view name, std::int64_t length_ns);
  /// Mix of all times; empty if there is no time.
  std::optional<TracedMix> mix() const;

 private:
  std::array<std::int64_t, models::kComputeClasses> ns_ = {};
  std::int64_t unrecognised_ns_ = 0;
  /// Cache of classes by name, of bounded size: most kernels recur.
  std::unordered_map<std::string, std::optional<models::ComputeClass>> known_;
  std::unordered_map<std::string, std::int64_t> unrecognised_;
};

}  // namespace hipress::traces
