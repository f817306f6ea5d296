#pragma once

#include <memory>
#include <string_view>

#include "kernels/codec/codec.hpp"

namespace hipress::bench::handwritten {

/// Hand-written codec of that name for the same frame, with default parameters; null if there is
/// none. Generated code is compared with it.
std::unique_ptr<kernels::Codec> make_codec(std::string_view name);

}  // namespace hipress::bench::handwritten
