#pragma once

#include <string>

#include "io/document.hpp"
#include "models/model.hpp"

namespace hipress::models {

/// Model of a Hugging Face config.json, without times. Throws io::InputError for missing or invalid
/// sizes, and for an unknown model_type; the latter's message ends in `remedy`.
Model model_of_config(const io::Document& config, const std::string& file,
                      const std::string& remedy);

}  // namespace hipress::models
