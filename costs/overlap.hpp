#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "models/mix.hpp"

namespace hipress::costs {

/// Slowdown factors of one class of computation, and of other work on its node at the same time.
struct ClassOverlap {
  double beside_codec = 1;     ///< computation's, while a codec runs
  double beside_transfer = 1;  ///< computation's, during a transfer
  double slows_codec = 1;      ///< codec's, while the computation runs
  double slows_transfer = 1;   ///< transfer's, while the computation runs
  bool operator==(const ClassOverlap&) const = default;
};

/// Key of a factor in a class's row.
struct ClassOverlapKey {
  std::string_view name;
  double ClassOverlap::*factor;
};
inline constexpr std::array<ClassOverlapKey, 4> kClassOverlapKeys = {{
    {"beside_codec", &ClassOverlap::beside_codec},
    {"beside_transfer", &ClassOverlap::beside_transfer},
    {"slows_codec", &ClassOverlap::slows_codec},
    {"slows_transfer", &ClassOverlap::slows_transfer},
}};

/// Slowdown factors by class of computation and direction.
struct OverlapMatrix {
  std::array<ClassOverlap, models::kComputeClasses> classes = {};  ///< by models::ComputeClass
  double codec_beside_transfer = 1;
  double transfer_beside_codec = 1;
  bool operator==(const OverlapMatrix&) const = default;
};

/// Slowdown factors of two kinds of work that run on a node at the same time: constants, which are
/// equal for both kinds and all classes of computation, or a matrix in their place.
struct OverlapFactors {
  double compute_codec = 1;
  double compute_transfer = 1;
  double codec_transfer = 1;
  std::optional<OverlapMatrix> matrix = {};
  bool operator==(const OverlapFactors&) const = default;
};
inline constexpr double kMaxOverlap = 8;

/// A constant, and the matrix entries for which it stands.
struct OverlapConstant {
  std::string_view name;
  double OverlapFactors::*factor;
  /// Entries in the row of every class; null for codec_transfer.
  double ClassOverlap::*computation = nullptr;
  double ClassOverlap::*other = nullptr;
};
inline constexpr std::array<OverlapConstant, 3> kOverlapConstants = {{
    {"compute_codec", &OverlapFactors::compute_codec, &ClassOverlap::beside_codec,
     &ClassOverlap::slows_codec},
    {"compute_transfer", &OverlapFactors::compute_transfer, &ClassOverlap::beside_transfer,
     &ClassOverlap::slows_transfer},
    {"codec_transfer", &OverlapFactors::codec_transfer},
}};

/// Sets the constant and, if there is a matrix, all entries for which it stands.
void set_constant(OverlapFactors& factors, const OverlapConstant& constant, double value);

/// Replaces a matrix by the three constants. Each is the larger of two factors: that of either kind
/// of work beside the other. Factors by class of computation are first averaged with
/// models::assumed_mix(). Factors without a matrix are returned unchanged.
OverlapFactors constants_of(const OverlapFactors& factors);

/// True if any factor exceeds 1.
bool slows(const OverlapFactors& factors);

/// Finds a factor outside 1 … kMaxOverlap; nullopt if all are inside.
std::optional<double> out_of_range(const OverlapFactors& factors);

/// Slowdown factors of one model's computation, codecs and transfers on a node.
struct DirectedFactors {
  double compute_beside_codec = 1, compute_beside_transfer = 1;
  double codec_beside_compute = 1, codec_beside_transfer = 1;
  double transfer_beside_compute = 1, transfer_beside_codec = 1;
  bool operator==(const DirectedFactors&) const = default;
};

/// Slowdown factors of a model with that mix (default: models::assumed_mix()).
///
/// A computation of T seconds runs kernels of class c for m_c·T seconds. While a codec runs, class
/// c takes b_c times as long, so all classes take T·Σ m_c·b_c, and the factor is Σ m_c·b_c. A
/// codec's kernel or a message meets class c with probability m_c, and then takes s_c times as
/// long, which is Σ m_c·s_c on average. Each result is a mean of factors of at least 1, so no work
/// gets faster than alone. The constants (kOverlapConstants) do not depend on the mix.
DirectedFactors directed(const OverlapFactors& factors, const std::optional<models::Mix>& mix);

}  // namespace hipress::costs
