#pragma once

#include <string>
#include <string_view>

#include "models/tensor_list.hpp"

namespace hipress::models {

/// True if the first line of a text that is not blank is a tensor's name and shape.
bool begins_listing(std::string_view text);

/// Adds the tensors of a listing with one name and shape per line, as Python prints them:
/// "layers.0.weight torch.Size([4096, 4096])" and similar forms. Throws io::InputError with the
/// line for other lines.
void add_listing(const std::string& path, TensorList& tensors);

/// Adds the layers of a table with a column "Param #", as printed by torchinfo, torchsummary and
/// Keras, with their numbers of parameters. Returns a warning if these do not add up to the table's
/// total; else an empty text.
std::string add_table(const std::string& path, TensorList& tensors);

}  // namespace hipress::models
