#pragma once

#include <optional>

#include "kernels/codec/codec.hpp"
#include "models/model.hpp"

namespace hipress::plans {

/// Whether the codec gives back, to the bit, all numbers that a tensor of this dtype can hold.
/// Found out by encoding and decoding thousands of them on this CPU: denormal, infinite and
/// ordinary ones, and such as weights are, but no NaN. Takes well below a millisecond.
bool keeps_every_bit(const kernels::Codec& codec, models::Dtype dtype);

/// The widest dtype whose numbers the codec gives back to the bit: float32, else one of the halves;
/// none for a lossy codec.
std::optional<models::Dtype> kept_dtype(const kernels::Codec& codec);

}  // namespace hipress::plans
