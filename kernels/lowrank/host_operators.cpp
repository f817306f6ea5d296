#include <cstddef>
#include <vector>

#include "kernels/frames/typed_values.hpp"
#include "kernels/lowrank/loops.hpp"
#include "kernels/lowrank/operators.hpp"

namespace hipress::kernels::lowrank {

namespace {

const Loops& loops_of(Isa isa) {
  switch (isa) {
    case Isa::kScalar:
      return scalar_loops;
#ifdef __x86_64__
    case Isa::kAvx2:
      return avx2_loops;
    case Isa::kAvx512:
      return avx512_loops;
#endif
    default:
      return portable_loops;
  }
}

void fill_with_nan(float* numbers, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) numbers[i] = not_a_number();
}

/// Properties of an array: all numbers are finite; all are 0.
struct Kinds {
  bool finite = true, zero = true;
};

Kinds kinds_of(const float* numbers, std::int64_t count) {
  Kinds kinds;
  for (std::int64_t i = 0; i < count; ++i) {
    kinds.finite = kinds.finite && is_finite(numbers[i]);
    kinds.zero = kinds.zero && numbers[i] == 0;
  }
  return kinds;
}

/// Makes the columns of a factor orthonormal with the Cholesky factor of its Gram matrix, twice
/// (CholeskyQR2): the second pass removes the rounding errors of the first.
class Orthonormaliser {
 public:
  Orthonormaliser(const Loops& loops, const Orthonormalisation& item)
      : loops_(loops),
        item_(item),
        gram_(static_cast<std::size_t>(item.rank) * item.rank),
        inverse_(gram_.size()),
        lengths_(static_cast<std::size_t>(item.rank)) {}

  void run() {
    if (item_.drawn == Drawn::kMissing) pass();  // finds the missing columns
    if (item_.drawn != Drawn::kNone) draw_missing();
    const bool finite = pass();
    pass();
    if (!finite) fill_with_nan(item_.factor, item_.rows * item_.rank);
  }

 private:
  /// One pass. Returns false if an entry was not finite; all entries are 0 then.
  bool pass() {
    const int rank = item_.rank;
    loops_.multiply_by_own(item_.factor, item_.rows, rank, gram_.data());
    for (int k = 0; k < rank; ++k) lengths_[k] = gram_[k * rank + k];
    const bool finite = factorise(gram_.data(), lengths_.data(), rank, 0, 1, [] {});
    invert(gram_.data(), inverse_.data(), rank, 0, 1);
    loops_.multiply_by_inverse(item_.factor, item_.rows, rank, inverse_.data());
    return finite;
  }

  /// Draws the columns that the last pass set to 0; before any pass, all columns.
  void draw_missing() {
    const DrawStream stream = stream_of_factor(item_.key, item_.rows * item_.rank);
    for (int c = 0; c < item_.rank; ++c) {
      if (inverse_[c * item_.rank + c] != 0) continue;
      for (std::int64_t i = c * item_.rows; i < (c + 1) * item_.rows; ++i) {
        item_.factor[i] = draw_normal(stream, i);
      }
    }
  }

  const Loops& loops_;
  const Orthonormalisation& item_;
  std::vector<double> gram_, inverse_, lengths_;
};

class HostOperators : public Operators {
 public:
  explicit HostOperators(Isa isa) : loops_(loops_of(isa)) {}

  void orthonormalise(std::span<const Orthonormalisation> items, void* /*stream*/) const override {
    for (const Orthonormalisation& item : items) Orthonormaliser(loops_, item).run();
  }

  void multiply(std::span<const Product> items, void* /*stream*/) const override {
    for (const Product& item : items) run(loops_.multiply, item, item.matrix.rows);
  }

  void multiply_transposed(std::span<const Product> items, void* /*stream*/) const override {
    for (const Product& item : items) run(loops_.multiply_transposed, item, item.matrix.columns);
  }

  void reconstruct(std::span<const Reconstruction> items, void* /*stream*/) const override {
    for (const Reconstruction& item : items) {
      const Matrix& matrix = item.matrix;
      const Kinds mean = kinds_of(item.mean, item.mean_entries);
      if (!mean.finite) {
        for (std::int64_t i = 0; i < matrix.rows * matrix.columns; ++i) {
          store_value(matrix.values, matrix.type, i, not_a_number());
        }
        continue;
      }
      std::vector<float> room(static_cast<std::size_t>(room_floats(0)));
      loops_.reconstruct(item, room.data());
      if (item.kept == nullptr || mean.zero) continue;
      for (std::int64_t i = 0; i < item.mean_entries; ++i) item.kept[i] = item.mean[i];
    }
  }

 private:
  static void run(decltype(Loops::multiply) loop, const Product& item, std::int64_t length) {
    const std::int64_t entries = length * item.rank;
    std::vector<double> totals(static_cast<std::size_t>(entries));
    std::vector<float> room(static_cast<std::size_t>(room_floats(item.rank)));
    loop(item.matrix, item.factor, item.rank, totals.data(), room.data());
    bool finite = true;
    for (std::int64_t i = 0; i < entries; ++i) {
      item.product[i] = rounded_entry(totals[i], item.scale);
      finite = finite && is_finite(item.product[i]);
    }
    if (!finite) fill_with_nan(item.product, entries);
    if (item.copy == nullptr) return;
    for (std::int64_t i = 0; i < entries; ++i) item.copy[i] = item.product[i];
  }

  const Loops& loops_;
};

}  // namespace

std::unique_ptr<Operators> make_host_operators(Isa isa) {
  return std::make_unique<HostOperators>(isa);
}

}  // namespace hipress::kernels::lowrank
