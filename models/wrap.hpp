#pragma once

#include <string_view>

#include "models/model.hpp"

namespace hipress::models {

/// Layer of gradients outside all wrapped modules.
inline constexpr std::string_view kRootLayer = "(root)";

/// Sets the model's layers (Gradient::layer) to the modules that a rule wraps. Gradient names
/// contain the modules: `blocks.3.mlp.weight` is a parameter of module `blocks.3.mlp`. Gradients
/// outside all wrapped modules belong to kRootLayer.
///
/// A rule is a comma-separated list of patterns, such as "transformer.h.*, lm_head". Each wraps the
/// modules whose names it matches component by component, where * matches any part of a component.
/// A parameter belongs to the innermost wrapped module.
///
/// Or a rule is a number of elements, such as "100M", as in FSDP1's size_based_auto_wrap_policy.
/// From the inside out, it wraps each module with at least that many elements besides those wrapped
/// within it. Lists (modules whose children are all numbers) are never wrapped.
///
/// io::InputError names `wrap` for an invalid rule, and for one that wraps no module.
void wrap(std::string_view rule, Model& model);

}  // namespace hipress::models
