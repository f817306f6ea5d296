#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/imported.hpp"
#include "traces/json_trace.hpp"

namespace hipress::traces {

/// True if the operator of that name changes its first argument, a tensor or a list of tensors:
/// "aten::add_", "aten::_foreach_mul_".
bool is_in_place(std::string_view name);

/// An operator in place, and the shapes of what it changes.
struct Update {
  std::string name = {};
  InputShapes::Shapes shapes = {};
};

/// Tensors that the optimizers of a trace update: parameters, and what an optimizer keeps for each.
/// A gradient that belongs to none of them is an input's: a job asks for it by x.requires_grad_()
/// (saliency, adversarial training, gradient penalties), and PyTorch accumulates it as it does
/// those of parameters.
class UpdatedTensors {
 public:
  /// Adds the operators of one step of an optimizer.
  void add_step(std::span<const Update> updates);
  /// Places of the gradients of inputs among those of a backward pass. `carried`: elements of the
  /// buckets that carry those of parameters; empty: not told. None if what optimizers update does
  /// not fit the other gradients, as where they update flat copies.
  std::vector<std::size_t> of_inputs(const std::vector<TracedGradient>& gradients,
                                     std::optional<std::int64_t> carried) const;

 private:
  using Shape = std::vector<std::int64_t>;
  using Counts = std::map<std::string, std::map<Shape, std::int64_t>>;  ///< by operator

  std::int64_t parameters_of(const Shape& shape,
                             const std::map<Shape, std::int64_t>& gradients) const;

  Counts counts_;      // of a step; the most of all steps
  bool alike_ = true;  // all steps have these counts, as those of one optimizer
};

/// Moves the gradients at those places, which increase, out of `gradients`.
std::vector<TracedGradient> taken_out(std::vector<TracedGradient>& gradients,
                                      std::span<const std::size_t> places);

}  // namespace hipress::traces
