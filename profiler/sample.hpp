#pragma once

#include <span>

#include "kernels/codec/codec.hpp"

namespace hipress::profiler {

/// Bytes of the message of `values`, of which there is at least one, as a share of the most that a
/// message of so many has. The codec runs on the CPU.
double message_share(const kernels::Codec& codec, std::span<const float> values);

}  // namespace hipress::profiler
