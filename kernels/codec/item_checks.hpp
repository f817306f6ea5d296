#pragma once

#include <span>
#include <string_view>

#include "kernels/codec/codec.hpp"

/// What codecs of every device check of their items before they do anything; what cannot be is
/// std::invalid_argument.
namespace hipress::kernels {

/// Slices have a length, and where it is not 0, values and room for the message.
void check_encodes(std::span<const EncodeItem> items);

/// Slices have a length, and where it is not 0, a place; there are as many lengths as messages, one
/// where they overwrite. `name` is the codec's, for what is said.
void check_decodes(std::span<const DecodeItem> items, std::string_view name);

}  // namespace hipress::kernels
