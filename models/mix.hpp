#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hipress::models {

/// Class of a training kernel, which determines its slowdown by concurrent work.
enum class ComputeClass : std::uint8_t { kGemm, kAttention, kElementwise, kReduction, kNorm };
inline constexpr std::size_t kComputeClasses = 5;

struct ComputeClassRow {
  std::string_view name;  ///< name in files
  std::string_view help;
  double assumed_share;  ///< default share of a model's computation
};

/// Rows by class. Assumed shares are rounded shares of the time of GPT-2's 228 kernels on an A100,
/// each timed alone, as Echo (arXiv 2412.12487) publishes them. Echo has no class for attention;
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

/// Names of all classes, for messages.
std::span<const std::string_view> compute_class_names();

/// Shares of a model's computation time by class, without concurrent work; their sum is 1.
using Mix = std::array<double, kComputeClasses>;

/// Mix of a model without its own.
Mix assumed_mix();

/// Tolerance of a mix's sum around 1.
inline constexpr double kMixTolerance = 1e-6;

/// Rounds the shares to multiples of 10^-digits that add up to 1, by the largest remainder; ties go
/// to the first class. Writers of files use it.
Mix rounded(const Mix& mix, int digits);

/// Text such as "gemm 46 %, attention 2 %, elementwise 45 %", without empty classes.
std::string describe(const Mix& mix);

/// Text for model YAMLs, such as "{gemm: 0.46, elementwise: 0.54}", without empty classes.
std::string mix_yaml(const Mix& mix);

}  // namespace hipress::models
