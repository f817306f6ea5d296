#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.hpp"

namespace hipress::casync {

/// Gradients in the order in which backward completes them; equal ready times keep the input order.
std::vector<std::uint32_t> backward_order(const models::Model& model);

/// The layers of a model, in the order of forward. Schedules handle a layer's gradients together.
struct Layers {
  std::vector<std::string> names;
  std::vector<std::uint32_t> of_gradient;  ///< per gradient: its layer's place in `names`
};

/// Layers of a model. A gradient's layer is models::Gradient::layer if given, otherwise its name up
/// to the first component that is a number ("blocks.3.mlp.weight" is in "blocks.3"). Without such a
/// component the gradient is a layer alone. Layers are ordered by the gradient that forward needs
/// first, which backward completes last.
Layers layers_of(const models::Model& model);

}  // namespace hipress::casync
