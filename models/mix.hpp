#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hipress::models {

/// What kernels of training do, as far as it decides how much what runs beside them slows them.
enum class ComputeClass : std::uint8_t { kGemm, kAttention, kElementwise, kReduction, kNorm };
inline constexpr std::size_t kComputeClasses = 5;

struct ComputeClassRow {
  std::string_view name;  ///< in files
  std::string_view help;
  double assumed_share;  ///< of the computation of a model that does not say its mix
};

/// By class. The assumed shares are the shares of time, to the percent, of the 228 kernels of GPT-2
/// on an A100, each timed alone, that Echo publishes (arXiv 2412.12487). Echo names no attention;
/// its class `other`, 2 %, counts as attention.
inline constexpr std::array<ComputeClassRow, kComputeClasses> kComputeClassTable = {{
    {"gemm", "matrix products and convolutions", 0.46},
    {"attention", "attention in one kernel, as flash attention", 0.02},
    {"elementwise", "activations, additions, copies, optimizers", 0.45},
    {"reduction", "sums over rows, softmax, losses, pooling, sorting", 0.02},
    {"norm", "layer, batch and group norms", 0.05},
}};

constexpr const ComputeClassRow& row_of(ComputeClass what) {
  return kComputeClassTable[static_cast<std::size_t>(what)];
}

/// The names of all classes, for messages.
std::span<const std::string_view> compute_class_names();

/// The shares of a model's computation, by class, of its time while nothing else runs; their sum
/// is 1.
using Mix = std::array<double, kComputeClasses>;

/// What is assumed of a model that does not say its mix.
Mix assumed_mix();

/// How far the sum of a mix may be from 1.
inline constexpr double kMixTolerance = 1e-6;

/// Brings the shares to whole multiples of 10^-digits that add up to 1: each is rounded down, and
/// what is missing goes to those that lost most, the first of equals first. For writers.
Mix rounded(const Mix& mix, int digits);

/// "gemm 46 %, attention 2 %, elementwise 45 %"; classes that have no share are left out.
std::string describe(const Mix& mix);

/// "{gemm: 0.46, elementwise: 0.54}", as model YAMLs have it; classes without a share are left out.
std::string mix_yaml(const Mix& mix);

}  // namespace hipress::models
