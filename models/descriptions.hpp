#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// Model from a description, such as a config.json.
struct Described {
  Model model;                         ///< model with shapes, without times
  std::string_view form;               ///< "config.json of Hugging Face"
  std::vector<std::string> said = {};  ///< sentences on data that the form lacks
};

/// Text for refusals: the readable forms, and a command that writes a listing of any PyTorch model.
std::string description_remedy();

/// Refusal of a path or name in a known but unreadable form, with the command that converts it. It
/// follows a complaint about a path that does not exist. Empty for unknown forms.
std::string other_form(const std::string& path);

/// Reads Hugging Face's config.json, model.safetensors.index.json (with config.json or the files
/// that it names beside it), the header of a *.safetensors, an ONNX model, a listing of names and
/// shapes, or a table of layers. nullopt for other forms. Throws io::InputError, with the line if
/// known, for a damaged file, an unknown model_type, or a form that other_form() refuses.
std::optional<Described> read_description(const std::string& path);

}  // namespace hipress::models
