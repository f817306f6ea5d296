#pragma once

#include <memory>
#include <string_view>

#include "kernels/codec/codec.hpp"

namespace hipress::bench::handwritten {

/// The codec of that name as a person wrote it for the same frame, with default parameters; null if
/// nobody did. What generated code is held against.
std::unique_ptr<kernels::Codec> make_codec(std::string_view name);

}  // namespace hipress::bench::handwritten
