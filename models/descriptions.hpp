#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace hipress::models {

/// A model from what people have of one.
struct Described {
  Model model;                         ///< with shapes, without times
  std::string_view form;               ///< "config.json of Hugging Face"
  std::vector<std::string> said = {};  ///< sentences: what the form leaves out
};

/// Forms that are read, and the command that makes one of any PyTorch model: for refusals.
std::string description_remedy();

/// Reads Hugging Face's config.json, model.safetensors.index.json (with config.json or the files
/// that it names beside it), the header of a *.safetensors, a listing of names and shapes, or
/// torchinfo's table. None for a file that has none of these forms, and for what is no regular
/// file. io::InputError, with the line where there is one, for one that is damaged, or whose
/// model_type is not known.
std::optional<Described> read_description(const std::string& path);

}  // namespace hipress::models
