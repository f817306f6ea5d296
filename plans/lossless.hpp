#pragma once

#include <optional>

#include "kernels/codec/codec.hpp"
#include "models/model.hpp"

namespace hipress::plans {

/// True if the codec is lossless, bit for bit, for tensors of this dtype. Tests a few thousand
/// numbers on this CPU, in well below a millisecond: random bits, which include denormal and
/// infinite numbers but no NaN, and numbers of the magnitude of weights.
bool keeps_every_bit(const kernels::Codec& codec, models::Dtype dtype);

/// The widest dtype for which keeps_every_bit(): float32, float16 or bfloat16. Unset if lossy.
std::optional<models::Dtype> kept_dtype(const kernels::Codec& codec);

}  // namespace hipress::plans
