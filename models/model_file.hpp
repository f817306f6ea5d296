#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Schema of model YAMLs.
inline constexpr std::string_view kModelSchema = "hipress.model/1";

/// Names that read_model() takes: shipped models, and other architectures.
std::vector<std::string> model_names();

/// Model that read_model() takes by that name; nullopt for files, and for unknown names.
std::optional<Model> named_model(const std::string& name);

/// Suffix for a complaint about a missing file: ", and no model has that name; near ones: resnet50,
/// resnet18", with up to three names. Empty if no name is near.
std::string near_models(std::string_view name);

/// File that read_model() reads for `path`: the shipped model of that name, or `path` itself.
/// Throws io::InputError if it is neither a file nor a shipped model.
std::string model_file(const std::string& path);

}  // namespace hipress::models
