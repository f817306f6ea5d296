#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/time_options.hpp"

/// Models of broadcasts. Their tensors wait for no computation, and a broadcast's plan contains its
/// own model.
namespace hipress::plans {

/// The model with its tensors as parameters to broadcast: ready at time 0, without forward and
/// backward.
models::Model as_parameters(models::Model model);

/// A model of one tensor, "tensor", of `bytes` bytes. Throws InputError, which names the field
/// `bytes`, for 0, for a number that is not a multiple of an element's size, and for more than
/// models::kMaxElements elements.
models::Model one_tensor(std::int64_t bytes, models::Dtype dtype);

/// Parses "float32", "float16" or "bfloat16". Throws InputError, which lists them, for any other
/// name.
models::Dtype parse_dtype(const std::string& name);

/// The model that a plan YAML of a broadcast describes: its tensors' names, elements and dtypes.
/// Unset for other plans. Throws InputError with file and line for a malformed plan.
std::optional<models::Model> model_of_plan(const std::string& path_or_name);

/// The model that a tool replays. With `input`, it is the model of that name: with `times` applied,
/// or as parameters if `topology` is a broadcast's. Without `input`, it is model_of_plan().
/// Sentences for the user go to `diagnostics`. Throws InputError if neither gives a model, or if
/// times are given for a broadcast.
models::Model read_input(const std::string& input, const std::string& plan,
                         const std::string& topology, const models::TimeOptions& times,
                         std::vector<std::string>& diagnostics);

}  // namespace hipress::plans
