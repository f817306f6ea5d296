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

/// By models::Gradient::layer where it is given; else by the name, up to its first component that
/// is a number ("blocks.3.mlp.weight" is of "blocks.3"); else every gradient is a layer of its own.
/// A layer stands where its first gradient in the order of forward, the last of backward, does.
Layers layers_of(const models::Model& model);

}  // namespace hipress::casync
