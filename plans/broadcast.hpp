#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/time_options.hpp"

/// What plans of broadcasts say that others do not: they are of tensors that wait for no
/// computation, and bring their own model.
namespace hipress::plans {

/// The model's tensors as a broadcast finds them, parameters: there from the start, without forward
/// and backward.
models::Model as_parameters(models::Model model);

/// A model of one tensor, "tensor", of so many bytes. InputError, which names the field `bytes`,
/// for 0 and for a number that is not a multiple of an element's size.
models::Model one_tensor(std::int64_t bytes, models::Dtype dtype);

/// "float32" …; InputError that lists them.
models::Dtype parse_dtype(const std::string& name);

/// The model that a plan YAML of a broadcast describes: its tensors' names, elements and dtypes.
/// None for other plans. InputError with file and line for a malformed one.
std::optional<models::Model> model_of_plan(const std::string& path_or_name);

/// What a tool replays. With `input`, the model of that name: with `times` applied, or as
/// parameters if `topology` is a broadcast's. Without, what the plan of a broadcast describes, as
/// it is. Sentences for the user go to `diagnostics`. InputError where nothing says what is sent,
/// or where times are given for a broadcast.
models::Model read_input(const std::string& input, const std::string& plan,
                         const std::string& topology, const models::TimeOptions& times,
                         std::vector<std::string>& diagnostics);

}  // namespace hipress::plans
