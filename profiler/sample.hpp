#pragma once

#include <span>

#include "kernels/codec/codec.hpp"

namespace hipress::profiler {

/// Ratio of the size of the message of `values` to that of the largest message of as many elements.
/// Requires at least one value. The codec runs on the CPU.
double message_share(const kernels::Codec& codec, std::span<const float> values);

}  // namespace hipress::profiler
