#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/time_options.hpp"

/// Models of broadcasts: tensors that wait for no computation. Their plan YAML describes them.
namespace hipress::plans {

/// The model with its tensors as parameters to broadcast, all ready at time 0, without computation.
models::Model as_parameters(models::Model model);

/// A model of one tensor, "tensor", of `bytes` bytes. Throws InputError that names the field
/// `bytes` if it is 0, no multiple of an element's size, or above models::kMaxElements elements.
models::Model one_tensor(std::int64_t bytes, models::Dtype dtype);

/// Parses "float32", "float16" or "bfloat16". For other names, InputError lists them.
models::Dtype parse_dtype(const std::string& name);

/// The model that a plan YAML of a broadcast describes: its tensors' names, elements and dtypes.
/// Unset for other plans. Throws InputError with file and line for a malformed plan.
std::optional<models::Model> model_of_plan(const std::string& path_or_name);

/// Model that a tool replays. With `input`, it is the model of that name: with `times` applied, or
/// as parameters if `topology` is a broadcast's. Without `input`, it is model_of_plan(). Adds
/// sentences to `diagnostics`. Throws InputError without a model, or for a broadcast with times.
models::Model read_input(const std::string& input, const std::string& plan,
                         const std::string& topology, const models::TimeOptions& times,
                         std::vector<std::string>& diagnostics);

}  // namespace hipress::plans
