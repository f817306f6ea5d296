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

/// True if the operator changes its first argument, which is a tensor or a list of tensors, as
/// "aten::add_" and "aten::_foreach_mul_" do.
bool is_in_place(std::string_view name);

/// An in-place operator, with the shapes of the tensors that it changes.
struct Update {
  std::string name = {};
  InputShapes::Shapes shapes = {};
};

/// Tensors that optimizers update: the parameters, and state for each of them. Gradients of other
/// tensors belong to inputs. A job requests those by x.requires_grad_() (saliency, adversarial
/// training, gradient penalties), and PyTorch accumulates them like those of parameters.
class UpdatedTensors {
 public:
  /// Adds the operators of one optimizer step.
  void add_step(std::span<const Update> updates);
  /// Indices of the gradients of a backward pass that belong to inputs. `carried` is the number of
  /// elements in the buckets, which carry the gradients of parameters; empty: unknown. The result
  /// is empty if the optimizers' updates do not match the other gradients, as with flat copies.
  std::vector<std::size_t> of_inputs(const std::vector<TracedGradient>& gradients,
                                     std::optional<std::int64_t> carried) const;

 private:
  using Shape = std::vector<std::int64_t>;
  using Counts = std::map<std::string, std::map<Shape, std::int64_t>>;  ///< by operator

  std::int64_t parameters_of(const Shape& shape,
                             const std::map<Shape, std::int64_t>& gradients) const;

  Counts counts_;      // per step: the maximum over steps
  bool alike_ = true;  // false if steps differ, as with several optimizers
};

/// Moves the gradients at `places`, which must ascend, out of `gradients`.
std::vector<TracedGradient> taken_out(std::vector<TracedGradient>& gradients,
                                      std::span<const std::size_t> places);

}  // namespace hipress::traces
