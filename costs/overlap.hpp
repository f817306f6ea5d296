#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "models/mix.hpp"

namespace hipress::costs {

/// How many times as long computation of one class, and what runs beside it, take on one node while
/// both are under way.
struct ClassOverlap {
  double beside_codec = 1;     ///< the computation, while a codec runs
  double beside_transfer = 1;  ///< the same, while a transfer is under way
  double slows_codec = 1;      ///< the codec, while the computation runs
  double slows_transfer = 1;   ///< the transfer
  bool operator==(const ClassOverlap&) const = default;
};

/// A key of a class's row.
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

/// The factors by class of computation, and in each direction.
struct OverlapMatrix {
  std::array<ClassOverlap, models::kComputeClasses> classes = {};  ///< by models::ComputeClass
  double codec_beside_transfer = 1;
  double transfer_beside_codec = 1;
  bool operator==(const OverlapMatrix&) const = default;
};

/// How many times as long two kinds of work take on one node while both are under way: constants,
/// the same in both directions and for all computation, or a matrix, which replaces them.
struct OverlapFactors {
  double compute_codec = 1;
  double compute_transfer = 1;
  double codec_transfer = 1;
  std::optional<OverlapMatrix> matrix = {};
  bool operator==(const OverlapFactors&) const = default;
};
inline constexpr double kMaxOverlap = 8;

/// A constant, and what it stands for in a matrix.
struct OverlapConstant {
  std::string_view name;
  double OverlapFactors::*factor;
  /// Of every class's row; null for codec_transfer.
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

/// Sets the constant, and where there is a matrix all that it stands for there.
void set_constant(OverlapFactors& factors, const OverlapConstant& constant, double value);

/// Constants in place of a matrix: for the assumed mix, the larger of both directions. Others are
/// returned as they are.
OverlapFactors constants_of(const OverlapFactors& factors);

/// Whether any of the factors slows anything.
bool slows(const OverlapFactors& factors);

/// One that is not in 1 … kMaxOverlap; none: all are.
std::optional<double> out_of_range(const OverlapFactors& factors);

/// What computation, codecs and transfers do to each other on a node, of one model.
struct DirectedFactors {
  double compute_beside_codec = 1, compute_beside_transfer = 1;
  double codec_beside_compute = 1, codec_beside_transfer = 1;
  double transfer_beside_compute = 1, transfer_beside_codec = 1;
  bool operator==(const DirectedFactors&) const = default;
};

/// The factors of a model whose computation has that mix; none: models::assumed_mix().
///
/// A computation that takes T seconds alone runs kernels of class c for m_c·T of them. Beside a
/// codec, class c takes b_c times as long: T·Σ m_c·b_c together, so the factor is Σ m_c·b_c. A
/// codec's kernel or a message beside the computation meets class c with probability m_c and then
/// takes s_c times as long: Σ m_c·s_c times in the mean. Every factor is a mean of factors of at
/// least 1, so nothing gets faster than alone. The constants (kOverlapConstants) do not depend on
/// the mix.
DirectedFactors directed(const OverlapFactors& factors, const std::optional<models::Mix>& mix);

}  // namespace hipress::costs
