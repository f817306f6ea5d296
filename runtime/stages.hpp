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

/// One node's Encodes and Decode of a unit that is sent as factors (low-rank algorithms).
class StagedUnit {
 public:
  /// Returns the state array of that name, which is unique per gradient and array. It has
  /// `elements` numbers, persists between iterations, is initially zero, and must stay in place.
  using StateOf = std::function<float*(const std::string& name, std::int64_t elements)>;

  /// `unit` is an index of the layout. `values` holds its values. `factors` holds the factors on
  /// the wire, one per stage, each as long as the layout says. Both must stay in place. A factor is
  /// stored slice by slice. In a step in which it is shorter, it fills the beginning of every
  /// slice. The model and the plan's codec must outlive the StagedUnit.
  StagedUnit(const casync::Layout& layout, std::uint32_t unit, const models::Model& model,
             const plans::ResolvedPlan& plan, std::span<float> values,
             std::vector<std::span<float>> factors, const StateOf& state_of);

  /// Runs a task. An Encode computes the factor of its stage from the values and the means of the
  /// preceding factors. The Decode writes the values decoded from all means.
  void run(const casync::Task& task, std::uint64_t seed, std::uint64_t iteration);

  /// Appends, for each of the unit's gradients, the factors that the last Decode used.
  void collect_factors(std::vector<Factor>& factors) const;

  /// Adds the residuals of the unit's gradients to `sums`, which has the unit's elements, and
  /// clears the residuals.
  void take_residuals(std::span<float> sums);

  /// The codec's state arrays, each with the range of the unit's elements that it belongs to.
  std::vector<Undo::Encoder> encoders() const;

  /// Number of values in use per slice of a stage's factor, since its last Encode.
  std::int64_t slice_values(std::uint32_t stage) const { return slices_[stage].used; }

 private:
  /// Layout of a stage's factor on the wire.
  struct Slices {
    std::int64_t count = 1;   ///< number of slices, K
    std::int64_t length = 0;  ///< capacity of a slice, in values
    std::int64_t used = 0;    ///< used values of a slice in this step
  };
  /// One gradient of the unit. The codec writes to `factors`, which are separate because Sends may
  /// still read the factors on the wire.
  struct Part {
    std::uint32_t gradient = 0;
    std::int64_t first = 0;  ///< first element in the unit
    std::vector<std::int64_t> shape;
    float* values = nullptr;
    std::vector<casync::FactorPart> on_wire;  ///< per stage, in this step; consecutive
    std::vector<float*> factors;              ///< per stage, in own_
    std::vector<float*> states;               ///< per array of the codec
  };

  void encode(std::uint32_t stage, std::uint64_t seed, std::uint64_t iteration);
  void decode(std::uint64_t seed, std::uint64_t iteration);
  void place(std::uint32_t stage, std::uint64_t iteration);
  /// Calls `copy` for each contiguous piece of a part's factor on the wire.
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
