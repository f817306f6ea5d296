#pragma once

#include <string>

namespace hipress::models {

/// The file that read_model() reads for `path`: the shipped model of that name, or itself.
/// io::InputError for a name that is neither a file's nor a shipped model's.
std::string model_file(const std::string& path);

}  // namespace hipress::models
