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

/// True if the operator changes its first argument, a tensor or a list of tensors: "aten::add_",
/// "aten::_foreach_mul_".
bool is_in_place(std::string_view name);

/// An in-place operator and the shapes that it changes.
struct Update {
  std::string name = {};
  InputShapes::Shapes shapes = {};
};

/// Tensors that optimizers update: parameters, and the optimizer's state for each. Other gradients
/// belong to inputs: a job requests them by x.requires_grad_() (saliency, adversarial training,
/// gradient penalties), and PyTorch accumulates them as it does those of parameters.
class UpdatedTensors {
 public:
  /// Adds the operators of one optimizer step.
  void add_step(std::span<const Update> updates);
  /// Indices of the gradients of inputs among those of a backward pass. `carried` is the number of
  /// elements in the buckets, which carry those of parameters; empty: unknown. Empty result if the
  /// optimizers' updates do not fit the other gradients, as with flat copies.
  std::vector<std::size_t> of_inputs(const std::vector<TracedGradient>& gradients,
                                     std::optional<std::int64_t> carried) const;

 private:
  using Shape = std::vector<std::int64_t>;
  using Counts = std::map<std::string, std::map<Shape, std::int64_t>>;  ///< by operator

  std::int64_t parameters_of(const Shape& shape,
                             const std::map<Shape, std::int64_t>& gradients) const;

  Counts counts_;      // per step; the maximum over steps
  bool alike_ = true;  // true if all steps have equal counts, as with one optimizer
};

/// Moves the gradients at `places`, which increase, out of `gradients`.
std::vector<TracedGradient> taken_out(std::vector<TracedGradient>& gradients,
                                      std::span<const std::size_t> places);

}  // namespace hipress::traces
