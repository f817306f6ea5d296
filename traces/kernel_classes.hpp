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

/// What a kernel of that name computes, by what libraries call theirs: cuBLAS, cuDNN, CUTLASS,
/// PyTorch, Inductor, Tensile. None: the name says nothing. Case does not matter.
std::optional<models::ComputeClass> class_of_kernel(std::string_view name);

/// What a trace's kernels say of the model's computation.
struct TracedMix {
  models::Mix mix = {};                   ///< of the time of kernels whose names say a class
  double unrecognised = 0;                ///< share of the time of all kernels that compute
  std::string longest_unrecognised = {};  ///< name of the kernel that took most of that
};

/// Sums up the times of kernels that compute.
class KernelTimes {
 public:
  void add(std::string_view name, std::int64_t length_ns);
  /// None: there were no kernels, or they took no time.
  std::optional<TracedMix> mix() const;

 private:
  std::array<std::int64_t, models::kComputeClasses> ns_ = {};
  std::int64_t unrecognised_ns_ = 0;
  /// By name, as many as are worth remembering: most kernels run over and over.
  std::unordered_map<std::string, std::optional<models::ComputeClass>> known_;
  std::unordered_map<std::string, std::int64_t> unrecognised_;
};

}  // namespace hipress::traces
