#pragma once

#include "kernels/frames/cast.hpp"

/// All casts, in the order of the registry: one line each. A cast is a struct like Fp16.
#define HIPRESS_FOR_EACH_CAST(ROW) \
  ROW(Fp16)                        \
  ROW(Bf16)
