#include <algorithm>

#include "kernels/lowrank/codec.hpp"

namespace hipress::kernels::lowrank {

namespace {

/// ACP-SGD (Zhang et al. 2023): PowerSGD that alternates between its two factors, one per step, so
/// that a step has one message.
///
///   odd steps    P = M·Q, where Q is the last mean Q with orthonormal columns; decodes to P·Qᵀ
///   even steps   Q = Mᵀ·P, where P is the last mean P with orthonormal columns; decodes to P·Qᵀ
///
/// Columns of the fixed (not sent) factor that are 0 or dependent, at first all of them, are drawn
/// alike on all nodes.
class AcpSgd : public LowRankCodec {
 public:
  AcpSgd(const Values& values, std::unique_ptr<const Operators> on)
      : LowRankCodec("acpsgd", 1, values, std::move(on)) {}

  std::vector<Stage> stages(Shape shape) const override {
    const MatrixShape matrix = matrix_of(shape);
    return {{.bytes = last_entries(matrix) * 4, .additive = true, .rank = matrix.rank}};
  }

  std::int64_t stage_bytes(Shape shape, int /*stage*/, std::uint64_t step) const override {
    return sent_entries(matrix_of(shape), sends_p(step)) * 4;
  }

 private:
  static bool sends_p(std::uint64_t step) { return step % 2 != 0; }

  static std::int64_t sent_entries(const MatrixShape& shape, bool of_p) {
    return (of_p ? shape.rows : shape.columns) * shape.rank;
  }

  std::vector<StateArray> factors(const MatrixShape& shape) const override {
    return {{.name = "p", .elements = shape.rows * shape.rank},
            {.name = "q", .elements = shape.columns * shape.rank}};
  }
  std::int64_t last_entries(const MatrixShape& shape) const override {
    return std::max(shape.rows, shape.columns) * shape.rank;
  }

  void encode_matrices(int /*stage*/, std::span<const Work> works, void* stream) const override {
    std::vector<Orthonormalisation> bases;
    std::vector<Product> of_p, of_q;
    for (const Work& work : works) {
      const bool p_is_sent = sends_p(work.slice.key.step);
      float* const fixed = work.factors[p_is_sent ? 1 : 0];
      DrawKey key = work.slice.key;
      key.step = 0;
      key.role = p_is_sent ? 1 : 0;  // separate draws for the two factors
      bases.push_back({.factor = fixed,
                       .rows = p_is_sent ? work.shape.columns : work.shape.rows,
                       .rank = work.shape.rank,
                       .drawn = Drawn::kMissing,
                       .key = key});
      (p_is_sent ? of_p : of_q)
          .push_back({.matrix = work.matrix,
                      .factor = fixed,
                      .rank = work.shape.rank,
                      .product = work.slice.factors[0],
                      .copy = work.own});
    }
    operators().orthonormalise(bases, stream);
    operators().multiply(of_p, stream);
    operators().multiply_transposed(of_q, stream);
  }

  void decode_matrices(std::span<const Work> works, void* stream) const override {
    std::vector<Reconstruction> items;
    for (const Work& work : works) {
      const bool p_is_sent = sends_p(work.slice.key.step);
      const float* const mean = work.slice.factors[0];
      const float* const own = work.own != nullptr ? work.own : mean;
      const float *const p = work.factors[0], *const q = work.factors[1];
      items.push_back({.matrix = work.matrix,
                       .left = p_is_sent ? mean : p,
                       .right = p_is_sent ? q : mean,
                       .rank = work.shape.rank,
                       .own_left = p_is_sent ? own : p,
                       .own_right = p_is_sent ? q : own,
                       .mean = mean,
                       .mean_entries = sent_entries(work.shape, p_is_sent),
                       .kept = work.factors[p_is_sent ? 0 : 1]});
    }
    operators().reconstruct(items, stream);
  }
};

}  // namespace

std::unique_ptr<Codec> make_acpsgd(const Values& values, std::unique_ptr<const Operators> on) {
  return std::make_unique<AcpSgd>(values, std::move(on));
}

}  // namespace hipress::kernels::lowrank
