#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/codec/item.hpp"
#include "kernels/host/isa.hpp"

/// Operators of the low-rank algorithms, in batches, on one device. order.hpp fixes the order of
/// sums, so all devices get the same bits.
///
/// A factor is `rank` contiguous columns, one after the other. Pointers are to memory of the
/// device; on CUDA an operator enqueues on its stream and returns.
namespace hipress::kernels::lowrank {

/// A gradient as a matrix: its first dimension by all the others. Its entries v are the values x
/// or, with a residual, x + residual, clamped to finite floats.
struct Matrix {
  void* values = nullptr;
  ValueType type = ValueType::kFloat32;
  std::int64_t rows = 0, columns = 0;
  float* residual = nullptr;
};

/// Columns that are drawn at random before orthonormalisation.
enum class Drawn : std::uint8_t {
  kNone,
  kMissing,  ///< columns that are 0 or depend on earlier ones; all if an entry is not finite
  kAll,
};

struct Orthonormalisation {
  float* factor = nullptr;
  std::int64_t rows = 0;
  int rank = 0;
  Drawn drawn = Drawn::kNone;
  DrawKey key = {};  ///< draws depend on `seed`, `step`, `gradient` and `role`
};

/// Operation product = M·factor, or Mᵀ·factor, times `scale`. The product is NaN everywhere if an
/// entry of M or of the factor is not finite; otherwise it is finite.
struct Product {
  Matrix matrix;
  const float* factor = nullptr;  ///< `rank` columns, each with `columns` or `rows` entries
  int rank = 0;
  float* product = nullptr;
  float* copy = nullptr;  ///< optional second output
  double scale = 1;
};

/// Operation values = left·rightᵀ and, if there is a residual, residual = v − own_left·own_rightᵀ.
///
/// If an entry of `mean` is not finite, all values become NaN, and the residual and `kept` are
/// unchanged.
struct Reconstruction {
  Matrix matrix;
  const float* left = nullptr;
  const float* right = nullptr;
  int rank = 0;
  const float* own_left = nullptr;   ///< left factor that the residual is computed from
  const float* own_right = nullptr;  ///< right factor that the residual is computed from
  const float* mean = nullptr;       ///< the factor that was averaged last: `left` or `right`
  std::int64_t mean_entries = 0;
  float* kept = nullptr;  ///< optional output: becomes `mean` unless `mean` is all 0
};

class Operators {
 public:
  virtual ~Operators() = default;
  /// Makes columns orthonormal, in order. A column that depends on earlier ones becomes 0, or is
  /// drawn. If an entry is not finite and nothing is drawn, the whole factor becomes NaN.
  virtual void orthonormalise(std::span<const Orthonormalisation> items, void* stream) const = 0;
  virtual void multiply(std::span<const Product> items, void* stream) const = 0;
  virtual void multiply_transposed(std::span<const Product> items, void* stream) const = 0;
  virtual void reconstruct(std::span<const Reconstruction> items, void* stream) const = 0;
};

std::unique_ptr<Operators> make_host_operators(Isa isa);
std::unique_ptr<Operators> make_cuda_operators();  ///< for the current GPU

}  // namespace hipress::kernels::lowrank
