#include "kernels/lowrank/codec.hpp"

namespace hipress::kernels::lowrank {

namespace {

/// PowerSGD (Vogels, Karimireddy, Jaggi 2019): one step of a power iteration for each gradient M.
///
///   stage 0   P = M·Q, where Q is the last step's mean Q with orthonormal columns
///   stage 1   Q = Mᵀ·P, where P is the mean P with orthonormal columns
///   decode    P·Qᵀ of the mean Q
///
/// Columns of Q that are 0 or dependent, at first all of them, are drawn alike on all nodes.
class PowerSgd : public LowRankCodec {
 public:
  PowerSgd(const Values& values, std::unique_ptr<const Operators> on)
      : LowRankCodec("powersgd", 2, values, std::move(on)) {}

  std::vector<Stage> stages(Shape shape) const override {
    const MatrixShape matrix = matrix_of(shape);
    const auto stage = [&](std::int64_t length) {
      return Stage{.bytes = length * matrix.rank * 4, .additive = true, .rank = matrix.rank};
    };
    return {stage(matrix.rows), stage(matrix.columns)};
  }

 private:
  std::vector<StateArray> factors(const MatrixShape& shape) const override {
    return {{.name = "q", .elements = shape.columns * shape.rank}};
  }
  std::int64_t last_entries(const MatrixShape& shape) const override {
    return shape.columns * shape.rank;
  }

  void encode_matrices(int stage, std::span<const Work> works, void* stream) const override {
    std::vector<Orthonormalisation> bases;
    std::vector<Product> products;
    for (const Work& work : works) {
      float* const p = work.slice.factors[0];
      float* const q = stage == 0 ? work.factors[0] : work.slice.factors[1];
      const int rank = work.shape.rank;
      if (stage == 0) {
        DrawKey key = work.slice.key;
        key.step = 0;
        key.role = 0;
        bases.push_back({.factor = q,
                         .rows = work.shape.columns,
                         .rank = rank,
                         .drawn = Drawn::kMissing,
                         .key = key});
        products.push_back({.matrix = work.matrix, .factor = q, .rank = rank, .product = p});
      } else {
        bases.push_back({.factor = p, .rows = work.shape.rows, .rank = rank});
        products.push_back(
            {.matrix = work.matrix, .factor = p, .rank = rank, .product = q, .copy = work.own});
      }
    }
    operators().orthonormalise(bases, stream);
    if (stage == 0) {
      operators().multiply(products, stream);
    } else {
      operators().multiply_transposed(products, stream);
    }
  }

  void decode_matrices(std::span<const Work> works, void* stream) const override {
    std::vector<Reconstruction> items;
    for (const Work& work : works) {
      const float *const p = work.slice.factors[0], *const q = work.slice.factors[1];
      items.push_back({.matrix = work.matrix,
                       .left = p,
                       .right = q,
                       .rank = work.shape.rank,
                       .own_left = p,
                       .own_right = work.own != nullptr ? work.own : q,
                       .mean = q,
                       .mean_entries = last_entries(work.shape),
                       .kept = work.factors[0]});
    }
    operators().reconstruct(items, stream);
  }
};

}  // namespace

std::unique_ptr<Codec> make_powersgd(const Values& values, std::unique_ptr<const Operators> on) {
  return std::make_unique<PowerSgd>(values, std::move(on));
}

}  // namespace hipress::kernels::lowrank
