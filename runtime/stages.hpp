#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "casync/layout.hpp"
#include "kernels/codec/codec.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "runtime/rank_runtime.hpp"
#include "runtime/undo.hpp"

namespace hipress::runtime {

/// One node's work on a unit that factors stand for: what its Encodes and its Decode do.
class StagedUnit {
 public:
  /// Gives an array of so many numbers that are kept between iterations, zero when new, by a name
  /// that is of one gradient and array. The memory must stay in place.
  using StateOf = std::function<float*(const std::string& name, std::int64_t elements)>;

  /// `unit` is an index of the layout. `values` are the unit's; `factors` are those on the wire,
  /// one per stage, each as long as its unit. Both must stay in place. A factor lies there slice by
  /// slice. In a step in which it is shorter than in others, it fills the beginning of every slice.
  /// The model and the plan's codec must outlive the StagedUnit.
  StagedUnit(const casync::Layout& layout, std::uint32_t unit, const models::Model& model,
             const plans::ResolvedPlan& plan, std::span<float> values,
             std::vector<std::span<float>> factors, const StateOf& state_of);

  /// An Encode makes the factor of its stage, of the values and the means of the factors before it.
  /// The Decode leaves what the means of all decode to in the values.
  void run(const casync::Task& task, std::uint64_t seed, std::uint64_t iteration);

  /// Appends what the last Decode used of its gradients' factors.
  void collect_factors(std::vector<Factor>& factors) const;

  /// Each array that is kept between iterations, with the elements of the unit that it belongs to.
  std::vector<Undo::Encoder> encoders() const;

  /// How much of each slice of a stage's factor is in use since its last Encode.
  std::int64_t slice_values(std::uint32_t stage) const { return slices_[stage].used; }

 private:
  /// How a stage's factor lies on the wire.
  struct Slices {
    std::int64_t count = 1;   ///< K
    std::int64_t length = 0;  ///< of each, at most
    std::int64_t used = 0;    ///< of each, in this step
  };
  /// One gradient of the unit. Its own factors are where its codec may keep what it makes of the
  /// means, while those on the wire are still read.
  struct Part {
    std::uint32_t gradient = 0;
    std::int64_t first = 0;  ///< of the unit's elements
    std::vector<std::int64_t> shape;
    float* values = nullptr;
    std::vector<casync::FactorPart> on_wire;  ///< per stage, in this step; one after the other
    std::vector<float*> factors;              ///< per stage, in own_
    std::vector<float*> states;               ///< per array of the codec
  };

  void encode(std::uint32_t stage, std::uint64_t seed, std::uint64_t iteration);
  void decode(std::uint64_t seed, std::uint64_t iteration);
  void place(std::uint32_t stage, std::uint64_t iteration);
  /// Calls `copy` with each stretch of a part's factor that lies in one piece on the wire.
  template <class Copy>
  void for_each_piece(std::uint32_t stage, const Copy& copy) const;
  void take_mean(std::uint32_t stage);
  std::vector<kernels::StagedSlice> slices(std::uint64_t seed, std::uint64_t iteration) const;

  const kernels::Codec& codec_;
  std::vector<std::span<float>> factors_;
  std::vector<Slices> slices_;  ///< per stage
  std::vector<float> own_;
  std::vector<Part> parts_;
};

}  // namespace hipress::runtime
