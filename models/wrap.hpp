#pragma once

#include <string_view>

#include "models/model.hpp"

namespace hipress::models {

/// The layer of what a rule wraps nowhere else.
inline constexpr std::string_view kRootLayer = "(root)";

/// Turns the modules that a rule wraps into the model's layers (Gradient::layer). Names of
/// gradients tell modules: `blocks.3.mlp.weight` is a parameter of module `blocks.3.mlp`. Gradients
/// outside all wrapped modules belong to kRootLayer.
///
/// Patterns with commas between them, "transformer.h.*, lm_head", wrap each module whose name they
/// match component by component, where * stands for any part of one. A parameter belongs to the
/// innermost wrapped module. A number of elements, "100M", wraps as FSDP1's
/// size_based_auto_wrap_policy does. From the inside out, it wraps each module that has this many
/// elements besides those wrapped within it. Lists are never wrapped; a list is a module whose
/// children are all numbers.
///
/// io::InputError that names `wrap` for a rule that is neither, and for one that wraps nothing.
void wrap(std::string_view rule, Model& model);

}  // namespace hipress::models
