#pragma once

#include <span>

#include "models/model.hpp"

namespace hipress::runtime {

/// Copies numbers of a type to fp32, which is exact. `from` needs no more alignment than its type.
void widen(const void* from, models::Dtype type, std::span<float> to);

/// Copies fp32 numbers to a type, each rounded to nearest even. Whether all came out finite.
bool narrow(std::span<const float> from, models::Dtype type, void* to);

}  // namespace hipress::runtime
