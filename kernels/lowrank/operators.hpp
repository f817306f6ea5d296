#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/codec/item.hpp"
#include "kernels/host/isa.hpp"

/// The operators that low-rank algorithms are made of, in batches, on one device. order.hpp fixes
/// the order in which sums are added: all devices use the same order and get the same bits.
///
/// A factor is `rank` columns, each contiguous, one after the other. Pointers are to memory of the
/// device; on CUDA an operator enqueues on its stream and returns.
namespace hipress::kernels::lowrank {

/// A gradient as a matrix: its first dimension by all the others. Its entries are v = x, or v = x +
/// residual, never beyond the largest float, where there is a residual.
struct Matrix {
  void* values = nullptr;
  ValueType type = ValueType::kFloat32;
  std::int64_t rows = 0, columns = 0;
  float* residual = nullptr;
};

/// Which columns an operator draws before it makes them orthonormal.
enum class Drawn : std::uint8_t {
  kNone,
  kMissing,  ///< those that are 0 or depend on the others; all, if an entry is not finite
  kAll,
};

struct Orthonormalisation {
  float* factor = nullptr;
  std::int64_t rows = 0;
  int rank = 0;
  Drawn drawn = Drawn::kNone;
  DrawKey key = {};  ///< what is drawn depends on `seed`, `step`, `gradient` and `role`
};

/// product = M·factor, or Mᵀ·factor, times `scale`. All of it is NaN if an entry of M or of the
/// factor is not finite; else it is finite.
struct Product {
  Matrix matrix;
  const float* factor = nullptr;  ///< of `rank` columns, each with `columns` or `rows` entries
  int rank = 0;
  float* product = nullptr;
  float* copy = nullptr;  ///< null: none
  double scale = 1;
};

/// values = left·rightᵀ and, where there is a residual, residual = v − own_left·own_rightᵀ.
///
/// If an entry of `mean` is not finite, all values become NaN, and residual and `kept` stay as they
/// are.
struct Reconstruction {
  Matrix matrix;
  const float* left = nullptr;
  const float* right = nullptr;
  int rank = 0;
  const float* own_left = nullptr;   ///< what the residual is told by
  const float* own_right = nullptr;  ///< likewise
  const float* mean = nullptr;       ///< the factor that was averaged last: `left` or `right`
  std::int64_t mean_entries = 0;
  float* kept = nullptr;  ///< becomes `mean`, unless all of that is 0; null: nothing does
};

class Operators {
 public:
  virtual ~Operators() = default;
  /// Makes columns orthonormal, in order. One that depends on those before it becomes 0, or is
  /// drawn. If an entry is not finite and nothing is drawn, all of the factor becomes NaN.
  virtual void orthonormalise(std::span<const Orthonormalisation> items, void* stream) const = 0;
  virtual void multiply(std::span<const Product> items, void* stream) const = 0;
  virtual void multiply_transposed(std::span<const Product> items, void* stream) const = 0;
  virtual void reconstruct(std::span<const Reconstruction> items, void* stream) const = 0;
};

std::unique_ptr<Operators> make_host_operators(Isa isa);
std::unique_ptr<Operators> make_cuda_operators();  ///< for the current GPU

}  // namespace hipress::kernels::lowrank
