#pragma once

#include "kernels/cast.hpp"
#include "kernels/onebit.hpp"
#include "kernels/tbq.hpp"
#include "kernels/terngrad.hpp"

/// The algorithms there are, in the order of the registry: one line each.
///
/// A quantiser is a struct like Onebit: it says which statistics it needs, what the header holds,
/// which levels a header means and which code a value gets; loops, packing, error feedback,
/// decoding and both devices come from the frame. A cast is a struct like Fp16.
#define HIPRESS_FOR_EACH_QUANTIZER(ROW) \
  ROW(Onebit)                           \
  ROW(Tbq)                              \
  ROW(Terngrad)

#define HIPRESS_FOR_EACH_CAST(ROW) \
  ROW(Fp16)                        \
  ROW(Bf16)
