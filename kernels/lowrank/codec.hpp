#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/codec/codec.hpp"
#include "kernels/lowrank/operators.hpp"

/// Base of the low-rank algorithms: the view of a gradient as a matrix, the decision whether
/// factors save bytes, and the state arrays.
namespace hipress::kernels::lowrank {

/// Definition of the error-feedback residual, kept for the next step.
enum class Feedback : std::uint8_t {
  kNone,
  kOwn,   ///< v minus the decoded message of this node
  kMean,  ///< v minus the decoded mean of all messages, as in PyTorch
};

/// A gradient as a matrix: its first dimension by all the others.
struct MatrixShape {
  std::int64_t rows = 1, columns = 1;
  int rank = 0;  ///< at most the smaller dimension
};

/// An algorithm's parameters, as parsed by registry/registry.cpp.
using Values = std::map<std::string, double>;

/// Parameters that all low-rank algorithms have.
std::vector<Parameter> parameters();

class LowRankCodec : public Codec {
 public:
  const CodecTraits& traits() const override { return traits_; }
  std::int64_t encoded_bytes(std::int64_t elements) const override;
  /// Throws std::logic_error, as decode() does.
  void encode(std::span<const EncodeItem> items, void* stream) const override;
  void decode(std::span<const DecodeItem> items, void* stream) const override;
  std::string refusal(Shape shape) const override;
  std::vector<StateArray> states(Shape shape) const override;
  void encode_stage(int stage, std::span<const StagedSlice> slices, void* stream) const override;
  void decode_stages(std::span<const StagedSlice> slices, void* stream) const override;

 protected:
  LowRankCodec(std::string_view name, int stages, const Values& values,
               std::unique_ptr<const Operators> operators);

  MatrixShape matrix_of(Shape shape) const;
  Feedback feedback() const { return feedback_; }
  const Operators& operators() const { return *operators_; }

  /// A slice as a matrix, with its states.
  struct Work {
    const StagedSlice& slice;
    MatrixShape shape;
    Matrix matrix;
    std::span<float* const> factors;  ///< the kept arrays of factors(), in order
    float* own = nullptr;             ///< a copy of this node's message, with Feedback::kOwn
  };

  /// Factors kept between steps. In states() they lie between the residual and the copy of the last
  /// message.
  virtual std::vector<StateArray> factors(const MatrixShape& shape) const = 0;
  /// Numbers in the message of the last stage.
  virtual std::int64_t last_entries(const MatrixShape& shape) const = 0;
  virtual void encode_matrices(int stage, std::span<const Work> works, void* stream) const = 0;
  virtual void decode_matrices(std::span<const Work> works, void* stream) const = 0;

 private:
  std::vector<Work> works_of(std::span<const StagedSlice> slices) const;

  const std::string_view name_;
  const int rank_;
  const Feedback feedback_;
  const CodecTraits traits_;
  const std::unique_ptr<const Operators> operators_;
};

/// The low-rank algorithms, one file each.
std::unique_ptr<Codec> make_powersgd(const Values& values, std::unique_ptr<const Operators> on);
std::unique_ptr<Codec> make_acpsgd(const Values& values, std::unique_ptr<const Operators> on);
std::unique_ptr<Codec> make_rsketch(const Values& values, std::unique_ptr<const Operators> on);

}  // namespace hipress::kernels::lowrank
