#pragma once

#include <memory>
#include <string_view>

#include "kernels/codec/codec.hpp"

namespace hipress::bench::handwritten {

/// Makes the hand-written codec of that name, with default parameters and the frame of the
/// generated one, which is compared with it. Null if no such codec exists.
std::unique_ptr<kernels::Codec> make_codec(std::string_view name);

}  // namespace hipress::bench::handwritten
