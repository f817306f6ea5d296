#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.hpp"

namespace hipress::casync {

/// Gradients in the order in which backward completes them; equal ready times keep the input order.
std::vector<std::uint32_t> backward_order(const models::Model& model);

/// The layers of a model, as its forward pass computes them. What schedules handle as one.
struct Layers {
  std::vector<std::string> names;
  std::vector<std::uint32_t> of_gradient;  ///< per gradient: its layer's place in `names`
};

/// A gradient's layer is models::Gradient::layer if given; else its name up to the first component
/// that is a number ("blocks.3.mlp.weight" is in "blocks.3"); else the gradient alone. A layer's
/// place is that of its first gradient in the order of forward, the last in that of backward.
Layers layers_of(const models::Model& model);

}  // namespace hipress::casync
