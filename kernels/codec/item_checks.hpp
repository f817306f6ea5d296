#pragma once

#include <span>
#include <string_view>

#include "kernels/codec/codec.hpp"

/// Checks of items that codecs of every device share, made before any work. They throw
/// std::invalid_argument.
namespace hipress::kernels {

/// Requires of each item a length ≥ 0 and, unless it is 0, values and memory for the message.
void check_encodes(std::span<const EncodeItem> items);

/// Requires of each item a length ≥ 0 and, unless it is 0, memory for the values; one length per
/// message; exactly one message when overwriting. `name` is the codec's, for error messages.
void check_decodes(std::span<const DecodeItem> items, std::string_view name);

}  // namespace hipress::kernels
