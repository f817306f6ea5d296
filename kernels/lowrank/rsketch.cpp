#include "kernels/lowrank/codec.hpp"

namespace hipress::kernels::lowrank {

namespace {

/// A random sketch: P = M·S, where S has orthonormal columns that are drawn in every step, alike on
/// all nodes. Decodes to P·Sᵀ, the projection of M on a random subspace.
///
/// With error feedback the sketch is a contraction: on average a message leaves out the share
/// 1 − rank / columns of |M|², which the residual carries into later steps. Without error feedback,
/// P is multiplied by columns / rank. The result is then unbiased, because the mean of S·Sᵀ over
/// the draws is rank / columns times the identity.
class RandomSketch : public LowRankCodec {
 public:
  RandomSketch(const Values& values, std::unique_ptr<const Operators> on)
      : LowRankCodec("rsketch", 1, values, std::move(on)) {}

  std::vector<Stage> stages(Shape shape) const override {
    const MatrixShape matrix = matrix_of(shape);
    return {{.bytes = last_entries(matrix) * 4, .additive = true, .rank = matrix.rank}};
  }

 private:
  std::vector<StateArray> factors(const MatrixShape& shape) const override {
    return {{.name = "sketch", .elements = shape.columns * shape.rank}};
  }
  std::int64_t last_entries(const MatrixShape& shape) const override {
    return shape.rows * shape.rank;
  }

  void encode_matrices(int /*stage*/, std::span<const Work> works, void* stream) const override {
    std::vector<Orthonormalisation> bases;
    std::vector<Product> products;
    for (const Work& work : works) {
      const MatrixShape& shape = work.shape;
      const bool unbiased = feedback() == Feedback::kNone;
      DrawKey key = work.slice.key;
      key.role = 0;
      bases.push_back({.factor = work.factors[0],
                       .rows = shape.columns,
                       .rank = shape.rank,
                       .drawn = Drawn::kAll,
                       .key = key});
      products.push_back(
          {.matrix = work.matrix,
           .factor = work.factors[0],
           .rank = shape.rank,
           .product = work.slice.factors[0],
           .copy = work.own,
           .scale = unbiased ? static_cast<double>(shape.columns) / shape.rank : 1.0});
    }
    operators().orthonormalise(bases, stream);
    operators().multiply(products, stream);
  }

  void decode_matrices(std::span<const Work> works, void* stream) const override {
    std::vector<Reconstruction> items;
    for (const Work& work : works) {
      const float* const mean = work.slice.factors[0];
      const float* const sketch = work.factors[0];
      items.push_back({.matrix = work.matrix,
                       .left = mean,
                       .right = sketch,
                       .rank = work.shape.rank,
                       .own_left = work.own != nullptr ? work.own : mean,
                       .own_right = sketch,
                       .mean = mean,
                       .mean_entries = last_entries(work.shape)});
    }
    operators().reconstruct(items, stream);
  }
};

}  // namespace

std::unique_ptr<Codec> make_rsketch(const Values& values, std::unique_ptr<const Operators> on) {
  return std::make_unique<RandomSketch>(values, std::move(on));
}

}  // namespace hipress::kernels::lowrank
