#pragma once

#include <span>

#include "kernels/codec/codec.hpp"

namespace hipress::profiler {

/// Size of the message of `values`, divided by that of the largest message of the same number of
/// elements. Requires at least one value. The codec runs on the CPU.
double message_share(const kernels::Codec& codec, std::span<const float> values);

}  // namespace hipress::profiler
