#pragma once

#include <span>

#include "models/model.hpp"

namespace hipress::runtime {

/// Converts numbers of a type to fp32, exactly. `from` needs the alignment of its type only.
void widen(const void* from, models::Dtype type, std::span<float> to);

/// Converts fp32 numbers to a type, rounding to nearest even. True if all results are finite.
bool narrow(std::span<const float> from, models::Dtype type, void* to);

}  // namespace hipress::runtime
