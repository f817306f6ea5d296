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

/// Compute class of a kernel, recognised by names that cuBLAS, cuDNN, CUTLASS, PyTorch, Inductor
/// and Tensile use. Empty if the name is not recognised. Case does not matter.
std::optional<models::ComputeClass> class_of_kernel(std::string_view name);

/// Compute classes of a trace's kernels.
struct TracedMix {
  models::Mix mix = {};                   ///< shares in the time of recognised kernels
  double unrecognised = 0;                ///< share in the time of all computing kernels
  std::string longest_unrecognised = {};  ///< name of the longest unrecognised kernel
};

/// Adds up times of computing kernels.
class KernelTimes {
 public:
  void add(std::string_view name, std::int64_t length_ns);
  /// Mix of all times; empty without any time.
  std::optional<TracedMix> mix() const;

 private:
  std::array<std::int64_t, models::kComputeClasses> ns_ = {};
  std::int64_t unrecognised_ns_ = 0;
  /// Classes of names seen before; most kernels recur. Its size is bounded.
  std::unordered_map<std::string, std::optional<models::ComputeClass>> known_;
  std::unordered_map<std::string, std::int64_t> unrecognised_;
};

}  // namespace hipress::traces
